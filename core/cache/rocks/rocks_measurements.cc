#include "core/cache/rocks/rocks_measurements.h"

#include <rocksdb/write_batch.h>

#include <cstring>

#include "core/base/unix_time.h"
#include "core/cache/rocks/frame.h"
#include "core/cache/rocks/rocks_database.h"
#include "core/wire/measurements.h"

namespace fusion {
namespace {

// Records of the meta family for measurements. Key: "m", digest of the plan. Value: bytes,
// last_report_ms (8 bytes each, little endian).
constexpr char kMeasurementPrefix = 'm';
constexpr size_t kMeasurementKeyBytes = 1 + 32;
constexpr size_t kFactsBytes = size_t{2} * 8;

std::string FactsKey(const Digest& plan) {
  return std::string(1, kMeasurementPrefix).append(BytesOf(plan));
}

std::string FactsValue(const MeasurementIndex::Facts& facts) {
  std::string value(kFactsBytes, '\0');
  std::memcpy(value.data(), &facts.bytes, 8);
  std::memcpy(value.data() + 8, &facts.last_report_ms, 8);
  return value;
}

// False if malformed; `plan` is set nevertheless if the key is valid.
bool ReadFacts(std::string_view key, std::string_view value, Digest* plan,
               MeasurementIndex::Facts* facts) {
  if (key.size() != kMeasurementKeyBytes) return false;
  std::memcpy(plan->bytes.data(), key.data() + 1, 32);
  if (value.size() != kFactsBytes) return false;
  std::memcpy(&facts->bytes, value.data(), 8);
  std::memcpy(&facts->last_report_ms, value.data() + 8, 8);
  return facts->bytes >= 0;
}

void LogDropped(Logger& logger, const Digest& plan, std::string_view reason) {
  logger.Error(
      "cache_entry_dropped",
      {{"tier", "disk"}, {"kind", "measurements"}, {"key", plan.ToHex()}, {"reason", reason}});
}

void Delete(const RocksDatabase& database, const Digest& plan, rocksdb::WriteBatch* batch) {
  batch->Delete(database.family(Family::kMeasurements), AsSlice(BytesOf(plan)));
  batch->Delete(database.family(Family::kMeta), FactsKey(plan));
}

}  // namespace

RocksMeasurements::RocksMeasurements(RocksMeasurementsOptions options,
                                     std::shared_ptr<RocksDatabase> database, Logger& logger,
                                     const Clock& clock)
    : options_(std::move(options)),
      database_(std::move(database)),
      logger_(logger),
      index_(options_.budget_bytes) {
  LoadIndex(clock);
}

void RocksMeasurements::LoadIndex(const Clock& clock) {
  int64_t oldest = UnixMilliseconds(clock) - options_.max_age / std::chrono::milliseconds(1);
  rocksdb::WriteBatch batch;
  std::unique_ptr<rocksdb::Iterator> it(
      database_->db().NewIterator({}, database_->family(Family::kMeta)));
  MutexLock lock(&mutex_);
  for (it->Seek(rocksdb::Slice(&kMeasurementPrefix, 1)); it->Valid(); it->Next()) {
    if (!it->key().starts_with(rocksdb::Slice(&kMeasurementPrefix, 1))) break;
    Digest plan;
    MeasurementIndex::Facts facts;
    if (!ReadFacts(AsView(it->key()), AsView(it->value()), &plan, &facts)) {
      LogDropped(logger_, plan, "its record in the index cannot be read");
      ++dropped_;
      Delete(*database_, plan, &batch);
      batch.Delete(database_->family(Family::kMeta), it->key());  // its key may be invalid
    } else if (facts.last_report_ms < oldest) {
      Delete(*database_, plan, &batch);
    } else {
      index_.Add(plan, facts);
    }
  }
  for (const Digest& plan : index_.Excess()) {
    index_.Remove(plan);
    ++evicted_;
    Delete(*database_, plan, &batch);
  }
  if (batch.Count() > 0) Write(&batch);
  // Not an error: the store can be used without measurements.
  if (!it->status().ok()) {
    logger_.Error("store_read_failed",
                  {{"kind", "measurements"}, {"reason", it->status().ToString()}});
  }
}

// Writes deletions. They fail on a full disk; then the entries stay on disk but are misses.
void RocksMeasurements::Write(rocksdb::WriteBatch* deletes) {
  rocksdb::Status deleted = database_->db().Write({}, deletes);
  if (!deleted.ok()) logger_.Warning("store_delete_failed", {{"reason", deleted.ToString()}});
}

std::optional<PlanMeasurements> RocksMeasurements::Get(const Digest& plan) {
  rocksdb::PinnableSlice framed;
  rocksdb::Status read = database_->db().Get({}, database_->family(Family::kMeasurements),
                                             AsSlice(BytesOf(plan)), &framed);
  if (read.IsNotFound()) return std::nullopt;
  if (!read.ok() && !read.IsCorruption()) {
    logger_.Error("store_read_failed",
                  {{"kind", "measurements"}, {"key", plan.ToHex()}, {"reason", read.ToString()}});
    return std::nullopt;
  }
  absl::StatusOr<std::string_view> payload =
      read.ok() ? Unframe(AsView(framed))
                : absl::StatusOr<std::string_view>(DataLoss(read.ToString()));
  absl::StatusOr<PlanMeasurements> out = payload.ok()
                                             ? DecodeMeasurements(plan, *payload)
                                             : absl::StatusOr<PlanMeasurements>(payload.status());
  if (out.ok()) return *std::move(out);
  Drop(plan, Message(out.status()));
  return std::nullopt;
}

void RocksMeasurements::Drop(const Digest& plan, std::string_view reason) {
  LogDropped(logger_, plan, reason);
  Remove(plan);
  MutexLock lock(&mutex_);
  ++dropped_;
}

void RocksMeasurements::Remove(const Digest& plan) {
  rocksdb::WriteBatch batch;
  Delete(*database_, plan, &batch);
  MutexLock writing(&write_mutex_);
  {
    MutexLock lock(&mutex_);
    index_.Remove(plan);
  }
  Write(&batch);
}

absl::Status RocksMeasurements::Put(const Digest& plan, const PlanMeasurements& measurements) {
  if (options_.check_space) RETURN_IF_ERROR(options_.check_space());
  std::string framed = Frame(EncodeMeasurements(plan, measurements));
  MeasurementIndex::Facts facts{.bytes = static_cast<int64_t>(framed.size()),
                                .last_report_ms = measurements.last_report_unix_ms};
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
    victims = index_.Victims(plan, facts.bytes);
  }
  for (const Digest& victim : victims) Delete(*database_, victim, &batch);
  batch.Put(database_->family(Family::kMeasurements), AsSlice(BytesOf(plan)), framed);
  batch.Put(database_->family(Family::kMeta), FactsKey(plan), FactsValue(facts));
  rocksdb::WriteOptions unsynced;
  unsynced.protection_bytes_per_key = 8;
  rocksdb::Status written = database_->db().Write(unsynced, &batch);
  if (!written.ok()) database_->NoteFailedWrite(written);
  RETURN_IF_ERROR(RocksDatabase::ToStatus(written, "writing measurements"));
  MutexLock lock(&mutex_);
  for (const Digest& victim : victims) index_.Remove(victim);
  evicted_ += static_cast<int64_t>(victims.size());
  index_.Add(plan, facts);
  return absl::OkStatus();
}

std::vector<Digest> RocksMeasurements::Plans() const {
  MutexLock lock(&mutex_);
  return index_.Plans();
}

MeasurementStats RocksMeasurements::Stats() const {
  MutexLock lock(&mutex_);
  return {.plans = index_.plans(),
          .bytes = index_.bytes(),
          .limit_bytes = index_.budget_bytes(),
          .evicted = evicted_,
          .dropped = dropped_};
}

}  // namespace fusion
