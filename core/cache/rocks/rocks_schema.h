#pragma once

#include <string>

#include "core/base/logging.h"
#include "core/base/status.h"

namespace fusion {

class RocksDatabase;

/// Version of the layout on disk that this build reads and writes. Raise it when a key or a value
/// changes its meaning, and say in rocks_schema.cc how the version before becomes this one.
inline constexpr int kSchemaVersion = 2;

/// Migrates an open database of an older version, step by step; whoever is killed meanwhile begins
/// the step again. FailedPrecondition, naming both versions, if it is of a newer one; DataLoss if
/// its version is none. `dir` is for messages.
absl::Status BringToOurSchema(const RocksDatabase& database, std::string_view dir, Logger& logger);

/// OK if an open database, which cannot be written, is of our version already.
absl::Status CheckOurSchema(const RocksDatabase& database, std::string_view dir);

/// FailedPrecondition, naming both versions, if the database in `dir`, which did not open, is sound
/// and of a newer version. OK if it is not, or cannot be read.
absl::Status RefuseNewerSchema(const std::string& dir);

}  // namespace fusion
