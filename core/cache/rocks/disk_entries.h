#pragma once

#include <string>
#include <vector>

#include "core/cache/rocks/rocks_database.h"
#include "core/cache/store.h"

namespace fusion {

// Functions shared by the parts of RocksStore.

/// The column family of entries of a kind.
Family FamilyOf(EntryKind kind);

/// Bytes that the files of the database in `dir` occupy on disk, write-ahead log included.
int64_t DiskBytes(const std::string& dir);

/// Keys of Plan::kernels, in their order.
std::vector<Digest> KernelsOf(const Plan& plan);

inline const Digest& KeyOf(const StoredPlan& plan) { return plan.key; }
inline const Digest& KeyOf(const KernelArtifact& kernel) { return kernel.key; }

}  // namespace fusion
