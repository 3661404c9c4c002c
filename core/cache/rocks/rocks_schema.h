#pragma once

#include <string>

#include "core/base/logging.h"
#include "core/base/status.h"

namespace fusion {

class RocksDatabase;

/// Version of the layout on disk that this build reads and writes. When the meaning of a key or
/// value changes, raise it and add a migration from the previous version to rocks_schema.cc.
inline constexpr int kSchemaVersion = 2;

/// Migrates an open database to kSchemaVersion, one version at a time. A step that is interrupted
/// starts over at the next open. A new database gets the current version. FailedPrecondition,
/// naming both versions, if the database is newer; DataLoss if its version is invalid. `dir`: for
/// messages.
absl::Status BringToOurSchema(const RocksDatabase& database, std::string_view dir, Logger& logger);

/// For a read-only database. FailedPrecondition, naming both versions, unless it has
/// kSchemaVersion.
absl::Status CheckOurSchema(const RocksDatabase& database, std::string_view dir);

/// For a database that failed to open. FailedPrecondition, naming both versions, if it is readable
/// and has a newer version; else OK.
absl::Status RefuseNewerSchema(const std::string& dir);

}  // namespace fusion
