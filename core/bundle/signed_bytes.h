#pragma once

#include <string>
#include <vector>

#include "core/bundle/answer.h"

namespace fusion {

/// What the signature of a PlanFusion answer is over, as fusion_service.proto says: the plan's key,
/// the SHA-256 of its bytes as they are sent, and key and content of each kernel that is ready.
std::string SignedPlanBytes(const Digest& plan_key, const Digest& plan_sha256,
                            const std::vector<KernelStatus>& kernels);

/// What the signature of a kernel is over.
std::string SignedKernelBytes(const Digest& key, const Digest& content);

/// What the signature of an entry of an archive is over: its kind (the type of its frame, see
/// core/cache/store_archive.h) and the SHA-256 of its bytes.
std::string SignedEntryBytes(char type, const Digest& payload);

}  // namespace fusion
