#pragma once

#include <string>
#include <vector>

#include "core/bundle/answer.h"

namespace fusion {

/// The bytes that the signature of a PlanFusion reply covers (fusion_service.proto): the plan's
/// key, the SHA-256 of its bytes on the wire, and key and content of each kernel that is ready.
std::string SignedPlanBytes(const Digest& plan_key, const Digest& plan_sha256,
                            const std::vector<KernelStatus>& kernels);

/// The bytes that the signature of a kernel covers.
std::string SignedKernelBytes(const Digest& key, const Digest& content);

/// The bytes that the signature of an archive entry covers: the type of its frame
/// (core/cache/store_archive.h) and the SHA-256 of its payload.
std::string SignedEntryBytes(char type, const Digest& payload);

}  // namespace fusion
