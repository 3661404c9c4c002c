#include "core/cache/rocks/rocks_records.h"

#include <rocksdb/write_batch.h>

#include <cstring>

#include "core/base/unix_time.h"
#include "core/cache/rocks/frame.h"
#include "core/cache/rocks/rocks_database.h"
#include "core/wire/kernel_timings.h"
#include "core/wire/measurements.h"

namespace fusion {
namespace {

// How a kind of record is stored. All kinds share two families. In kMeasurements the key is
// Stored::Name of the record's key. In kMeta it is the prefix and the record's key; the value is
// bytes, last_report_ms and, unless it is 0, owner (8 bytes each, little endian).
template <typename Record>
struct Stored;

template <>
struct Stored<PlanMeasurements> {
  static constexpr char kPrefix = 'm';
  static constexpr std::string_view kKind = "measurements";
  static std::string Name(const Digest& key) { return std::string(BytesOf(key)); }
  static std::string Encode(const Digest& key, const PlanMeasurements& record) {
    return EncodeMeasurements(key, record);
  }
  static absl::StatusOr<PlanMeasurements> Decode(const Digest& key, std::string_view bytes) {
    return DecodeMeasurements(key, bytes);
  }
};

template <>
struct Stored<KernelTimings> {
  static constexpr char kPrefix = 't';
  static constexpr std::string_view kKind = "timings";
  // So that no key of a plan names timings.
  static std::string Name(const Digest& key) {
    return std::string(1, kPrefix).append(BytesOf(key));
  }
  static std::string Encode(const Digest& /*key*/, const KernelTimings& record) {
    return EncodeTimings(record);
  }
  static absl::StatusOr<KernelTimings> Decode(const Digest& key, std::string_view bytes) {
    return DecodeTimings(key, bytes);
  }
};

constexpr size_t kFactsKeyBytes = 1 + 32;
constexpr size_t kFactsBytes = size_t{2} * 8;
constexpr size_t kOwnedFactsBytes = size_t{3} * 8;

std::string FactsKey(char prefix, const Digest& key) {
  return std::string(1, prefix).append(BytesOf(key));
}

std::string FactsValue(const RecordIndex::Facts& facts) {
  std::string value(facts.owner == 0 ? kFactsBytes : kOwnedFactsBytes, '\0');
  std::memcpy(value.data(), &facts.bytes, 8);
  std::memcpy(value.data() + 8, &facts.last_report_ms, 8);
  if (facts.owner != 0) std::memcpy(value.data() + 16, &facts.owner, 8);
  return value;
}

// False if malformed; `key` is set nevertheless if the record of the index names one.
bool ReadFacts(std::string_view name, std::string_view value, Digest* key,
               RecordIndex::Facts* facts) {
  if (name.size() != kFactsKeyBytes) return false;
  std::memcpy(key->bytes.data(), name.data() + 1, 32);
  if (value.size() != kFactsBytes && value.size() != kOwnedFactsBytes) return false;
  std::memcpy(&facts->bytes, value.data(), 8);
  std::memcpy(&facts->last_report_ms, value.data() + 8, 8);
  if (value.size() == kOwnedFactsBytes) std::memcpy(&facts->owner, value.data() + 16, 8);
  return facts->bytes >= 0;
}

void LogDropped(Logger& logger, std::string_view kind, const Digest& key, std::string_view reason) {
  logger.Error("cache_entry_dropped",
               {{"tier", "disk"}, {"kind", kind}, {"key", key.ToHex()}, {"reason", reason}});
}

template <typename Record>
void Delete(const RocksDatabase& database, const Digest& key, rocksdb::WriteBatch* batch) {
  batch->Delete(database.family(Family::kMeasurements), Stored<Record>::Name(key));
  batch->Delete(database.family(Family::kMeta), FactsKey(Stored<Record>::kPrefix, key));
}

}  // namespace

template <typename Record>
RocksRecords<Record>::RocksRecords(RocksRecordsOptions options,
                                   std::shared_ptr<RocksDatabase> database, Logger& logger,
                                   const Clock& clock)
    : options_(std::move(options)),
      database_(std::move(database)),
      logger_(logger),
      index_(options_.budget_bytes) {
  LoadIndex(clock);
}

template <typename Record>
void RocksRecords<Record>::LoadIndex(const Clock& clock) {
  constexpr char prefix = Stored<Record>::kPrefix;
  int64_t oldest = UnixMilliseconds(clock) - options_.max_age / std::chrono::milliseconds(1);
  rocksdb::WriteBatch batch;
  std::unique_ptr<rocksdb::Iterator> it(
      database_->db().NewIterator({}, database_->family(Family::kMeta)));
  MutexLock lock(&mutex_);
  for (it->Seek(rocksdb::Slice(&prefix, 1)); it->Valid(); it->Next()) {
    if (!it->key().starts_with(rocksdb::Slice(&prefix, 1))) break;
    Digest key;
    RecordIndex::Facts facts;
    if (!ReadFacts(AsView(it->key()), AsView(it->value()), &key, &facts)) {
      LogDropped(logger_, Stored<Record>::kKind, key, "its record in the index cannot be read");
      ++dropped_;
      Delete<Record>(*database_, key, &batch);
      batch.Delete(database_->family(Family::kMeta), it->key());  // its key may be invalid
    } else if (facts.last_report_ms < oldest) {
      Delete<Record>(*database_, key, &batch);
    } else {
      index_.Add(key, facts);
    }
  }
  for (const Digest& key : index_.Excess()) {
    index_.Remove(key);
    ++evicted_;
    Delete<Record>(*database_, key, &batch);
  }
  if (batch.Count() > 0) Write(&batch);
  // Not an error: the store can be used without records.
  if (!it->status().ok()) {
    logger_.Error("store_read_failed",
                  {{"kind", Stored<Record>::kKind}, {"reason", it->status().ToString()}});
  }
}

// Writes deletions. They fail on a full disk; then the entries stay on disk but are misses.
template <typename Record>
void RocksRecords<Record>::Write(rocksdb::WriteBatch* deletes) {
  rocksdb::Status deleted = database_->db().Write({}, deletes);
  if (!deleted.ok()) logger_.Warning("store_delete_failed", {{"reason", deleted.ToString()}});
}

template <typename Record>
std::optional<Record> RocksRecords<Record>::Get(const Digest& key) {
  rocksdb::PinnableSlice framed;
  rocksdb::Status read = database_->db().Get({}, database_->family(Family::kMeasurements),
                                             Stored<Record>::Name(key), &framed);
  if (read.IsNotFound()) return std::nullopt;
  if (!read.ok() && !read.IsCorruption()) {
    logger_.Error(
        "store_read_failed",
        {{"kind", Stored<Record>::kKind}, {"key", key.ToHex()}, {"reason", read.ToString()}});
    return std::nullopt;
  }
  absl::StatusOr<std::string_view> payload =
      read.ok() ? Unframe(AsView(framed))
                : absl::StatusOr<std::string_view>(DataLoss(read.ToString()));
  absl::StatusOr<Record> out = payload.ok() ? Stored<Record>::Decode(key, *payload)
                                            : absl::StatusOr<Record>(payload.status());
  if (out.ok()) return *std::move(out);
  Drop(key, Message(out.status()));
  return std::nullopt;
}

template <typename Record>
void RocksRecords<Record>::Drop(const Digest& key, std::string_view reason) {
  LogDropped(logger_, Stored<Record>::kKind, key, reason);
  Remove(key);
  MutexLock lock(&mutex_);
  ++dropped_;
}

template <typename Record>
void RocksRecords<Record>::Remove(const Digest& key) {
  rocksdb::WriteBatch batch;
  Delete<Record>(*database_, key, &batch);
  MutexLock writing(&write_mutex_);
  {
    MutexLock lock(&mutex_);
    index_.Remove(key);
  }
  Write(&batch);
}

template <typename Record>
absl::Status RocksRecords<Record>::Put(const Digest& key, const Record& record) {
  if (options_.check_space) RETURN_IF_ERROR(options_.check_space());
  std::string framed = Frame(Stored<Record>::Encode(key, record));
  RecordIndex::Facts facts{.bytes = static_cast<int64_t>(framed.size()),
                           .last_report_ms = record.last_report_unix_ms,
                           .owner = OwnerOf(record)};
  if (facts.bytes > options_.budget_bytes) {
    return ResourceExhausted("measurements of ", HumanBytes(facts.bytes), " exceed the budget of ",
                             HumanBytes(options_.budget_bytes));
  }
  rocksdb::WriteBatch batch(/*reserved_bytes=*/0, /*max_bytes=*/0, /*protection_bytes_per_key=*/8,
                            /*default_cf_ts_sz=*/0);
  MutexLock writing(&write_mutex_);
  std::vector<Digest> victims;
  {
    MutexLock lock(&mutex_);
    victims = index_.Victims(key, facts);
  }
  for (const Digest& victim : victims) Delete<Record>(*database_, victim, &batch);
  batch.Put(database_->family(Family::kMeasurements), Stored<Record>::Name(key), framed);
  batch.Put(database_->family(Family::kMeta), FactsKey(Stored<Record>::kPrefix, key),
            FactsValue(facts));
  rocksdb::WriteOptions unsynced;
  unsynced.protection_bytes_per_key = 8;
  rocksdb::Status written = database_->db().Write(unsynced, &batch);
  if (!written.ok()) database_->NoteFailedWrite(written);
  RETURN_IF_ERROR(RocksDatabase::ToStatus(written, "writing measurements"));
  MutexLock lock(&mutex_);
  for (const Digest& victim : victims) index_.Remove(victim);
  evicted_ += static_cast<int64_t>(victims.size());
  index_.Add(key, facts);
  return absl::OkStatus();
}

template <typename Record>
std::vector<Digest> RocksRecords<Record>::Keys() const {
  MutexLock lock(&mutex_);
  return index_.Keys();
}

template <typename Record>
RecordStats RocksRecords<Record>::Stats() const {
  MutexLock lock(&mutex_);
  return {.records = index_.records(),
          .bytes = index_.bytes(),
          .limit_bytes = index_.budget_bytes(),
          .evicted = evicted_,
          .dropped = dropped_};
}

template class RocksRecords<PlanMeasurements>;
template class RocksRecords<KernelTimings>;

}  // namespace fusion
