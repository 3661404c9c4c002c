#include "core/cache/rocks/rocks_schema.h"

#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <charconv>
#include <vector>

#include "core/cache/rocks/entry_facts.h"
#include "core/cache/rocks/rocks_database.h"

namespace fusion {
namespace {

constexpr std::string_view kSchemaKey = "schema";
// Facts rewritten in one batch.
constexpr int kFactsPerBatch = 10000;

absl::Status WriteVersion(const RocksDatabase& database, int version) {
  rocksdb::WriteOptions durable;
  durable.sync = true;
  return RocksDatabase::ToStatus(database.db().Put(durable, database.family(Family::kMeta),
                                                   AsSlice(kSchemaKey), StrCat(version)),
                                 "writing the schema");
}

// Rewrites facts with a mark, an empty tenant, and created_ms, 0 if absent. Skips those that are
// rewritten already, and malformed ones, which LoadIndex counts.
absl::Status MigrateFrom1(const RocksDatabase& database) {
  rocksdb::ColumnFamilyHandle* meta = database.family(Family::kMeta);
  std::unique_ptr<rocksdb::Iterator> it(database.db().NewIterator({}, meta));
  rocksdb::WriteBatch batch;
  const rocksdb::Slice prefix(&kFactsPrefix, 1);
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    EntryId id;
    EntryFacts facts, old;
    if (ReadFacts(AsView(it->key()), AsView(it->value()), &id, &facts)) continue;
    if (!ReadFactsOfSchema1(AsView(it->value()), &old)) continue;
    batch.Put(meta, it->key(), FactsValue(old));
    if (batch.Count() < kFactsPerBatch) continue;
    RETURN_IF_ERROR(
        RocksDatabase::ToStatus(database.db().Write({}, &batch), "migrating the store"));
    batch.Clear();
  }
  RETURN_IF_ERROR(RocksDatabase::ToStatus(it->status(), "migrating the store"));
  return RocksDatabase::ToStatus(database.db().Write({}, &batch), "migrating the store");
}

struct Migration {
  int from;  // to from + 1
  absl::Status (*run)(const RocksDatabase& database);
};
constexpr Migration kMigrations[] = {{1, MigrateFrom1}};

absl::StatusOr<int> ParseVersion(std::string_view text) {
  int version = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error == std::errc() && end == text.data() + text.size() && version > 0) return version;
  return DataLoss("schema version ", QuoteShort(text), " is no number");
}

absl::Status Newer(std::string_view dir, int version) {
  return FailedPrecondition("store ", Quote(dir), " has schema version ", version,
                            ", written by a newer server; this one reads 1 to ", kSchemaVersion,
                            ": start a newer server, or give another directory");
}

}  // namespace

absl::Status BringToOurSchema(const RocksDatabase& database, std::string_view dir, Logger& logger) {
  std::string text;
  rocksdb::Status read =
      database.db().Get({}, database.family(Family::kMeta), AsSlice(kSchemaKey), &text);
  if (read.IsNotFound()) return WriteVersion(database, kSchemaVersion);
  if (!read.ok()) return RocksDatabase::ToStatus(read, "reading the schema");
  ASSIGN_OR_RETURN(int version, ParseVersion(text));
  if (version > kSchemaVersion) return Newer(dir, version);
  for (const Migration& migration : kMigrations) {
    if (migration.from != version) continue;
    RETURN_IF_ERROR(migration.run(database));
    RETURN_IF_ERROR(WriteVersion(database, ++version));
    logger.Info("store_migrated", {{"dir", dir}, {"schema_version", version}});
  }
  if (version == kSchemaVersion) return absl::OkStatus();
  return DataLoss("schema version ", version, " cannot be migrated to ", kSchemaVersion);
}

absl::Status CheckOurSchema(const RocksDatabase& database, std::string_view dir) {
  std::string text;
  rocksdb::Status read =
      database.db().Get({}, database.family(Family::kMeta), AsSlice(kSchemaKey), &text);
  RETURN_IF_ERROR(RocksDatabase::ToStatus(read, "reading the schema"));
  ASSIGN_OR_RETURN(int version, ParseVersion(text));
  if (version > kSchemaVersion) return Newer(dir, version);
  if (version == kSchemaVersion) return absl::OkStatus();
  return FailedPrecondition("store ", Quote(dir), " has schema version ", version,
                            ", which cannot be brought to ", kSchemaVersion, " now");
}

absl::Status RefuseNewerSchema(const std::string& dir) {
  std::vector<std::string> names;
  if (!rocksdb::DB::ListColumnFamilies({}, dir, &names).ok()) return absl::OkStatus();
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string& name : names) {
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::OpenForReadOnly({}, dir, families, &handles, &opened).ok()) {
    return absl::OkStatus();
  }
  std::unique_ptr<rocksdb::DB> db(opened);
  absl::Status newer;
  for (size_t i = 0; i < handles.size(); ++i) {
    std::string text;
    if (names[i] == "meta" && db->Get({}, handles[i], AsSlice(kSchemaKey), &text).ok()) {
      absl::StatusOr<int> version = ParseVersion(text);
      if (version.ok() && *version > kSchemaVersion) newer = Newer(dir, *version);
    }
    db->DestroyColumnFamilyHandle(handles[i]).PermitUncheckedError();
  }
  return newer;
}

}  // namespace fusion
