#pragma once

#include <map>

#include "core/base/threads/mutex.h"
#include "core/cache/record_store.h"

namespace fusion {

/// Records in memory, for a server without a disk store. They are lost when the process ends.
/// Thread-safe.
template <typename Record>
class MemoryRecords final : public RecordStore<Record> {
 public:
  explicit MemoryRecords(int64_t budget_bytes = int64_t{64} << 20) : index_(budget_bytes) {}

  std::optional<Record> Get(const Digest& key) override {
    MutexLock lock(&mutex_);
    auto it = records_.find(key);
    if (it == records_.end()) return std::nullopt;
    return it->second;
  }

  absl::Status Put(const Digest& key, const Record& record) override {
    const int64_t bytes = ChargedBytes(record);
    MutexLock lock(&mutex_);
    if (bytes > index_.budget_bytes()) {
      return ResourceExhausted("measurements of ", HumanBytes(bytes), " exceed the budget of ",
                               HumanBytes(index_.budget_bytes()));
    }
    const RecordIndex::Facts facts{
        .bytes = bytes, .last_report_ms = record.last_report_unix_ms, .owner = OwnerOf(record)};
    for (const Digest& victim : index_.Victims(key, facts)) {
      index_.Remove(victim);
      records_.erase(victim);
      ++evicted_;
    }
    index_.Add(key, facts);
    records_.insert_or_assign(key, record);
    return absl::OkStatus();
  }

  void Remove(const Digest& key) override {
    MutexLock lock(&mutex_);
    index_.Remove(key);
    records_.erase(key);
  }

  std::vector<Digest> Keys() const override {
    MutexLock lock(&mutex_);
    return index_.Keys();
  }

  RecordStats Stats() const override {
    MutexLock lock(&mutex_);
    return {.records = index_.records(),
            .bytes = index_.bytes(),
            .limit_bytes = index_.budget_bytes(),
            .evicted = evicted_};
  }

 private:
  mutable Mutex mutex_;
  RecordIndex index_ ABSL_GUARDED_BY(mutex_);
  std::map<Digest, Record> records_ ABSL_GUARDED_BY(mutex_);
  int64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
};

using MemoryMeasurements = MemoryRecords<PlanMeasurements>;
using MemoryTimings = MemoryRecords<KernelTimings>;

}  // namespace fusion
