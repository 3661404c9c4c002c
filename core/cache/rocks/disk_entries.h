#pragma once

#include <string>
#include <vector>

#include "core/cache/rocks/rocks_database.h"
#include "core/cache/store.h"

namespace fusion {

// What the parts of RocksStore share.

/// Where entries of a kind lie.
Family FamilyOf(EntryKind kind);

/// Bytes that the files of a database occupy, its log included.
int64_t DiskBytes(const std::string& dir);

/// Keys of the kernels of a plan, in its order.
std::vector<Digest> KernelsOf(const Plan& plan);

inline const Digest& KeyOf(const StoredPlan& plan) { return plan.key; }
inline const Digest& KeyOf(const KernelArtifact& kernel) { return kernel.key; }

}  // namespace fusion
