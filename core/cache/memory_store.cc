#include "core/cache/memory_store.h"

namespace fusion {

MemoryStore::MemoryStore(int64_t budget_bytes, Logger& logger)
    : logger_(logger), entries_(budget_bytes) {}

template <typename T>
Found<T> MemoryStore::Get(EntryKind kind, const EntryKey& key,
                          std::shared_ptr<const T> Entry::*member) {
  std::shared_ptr<const T> value;
  {
    MutexLock lock(&mutex_);
    Entry* entry = entries_.Find({kind, key.digest});
    if (entry == nullptr) return {};
    value = entry->*member;
  }
  // Checked on insertion and not damaged since: only the full key can differ.
  if (key.full_key.empty() || key.full_key == value->full_key) return {value, Tier::kMemory};
  logger_.Error("cache_entry_dropped",
                {{"tier", "memory"},
                 {"kind", EntryKindName(kind)},
                 {"key", key.digest.ToHex()},
                 {"reason", WhyNotTheEntry(key, key.digest, value->full_key)}});
  MutexLock lock(&mutex_);
  if (entries_.Erase({kind, key.digest})) plans_ -= kind == EntryKind::kPlan ? 1 : 0;
  ++dropped_;
  return {};
}

Found<StoredPlan> MemoryStore::GetPlan(const EntryKey& key) {
  return Get(EntryKind::kPlan, key, &Entry::plan);
}

Found<KernelArtifact> MemoryStore::GetKernel(const EntryKey& key) {
  return Get(EntryKind::kKernel, key, &Entry::kernel);
}

void MemoryStore::Insert(const Id& id, Entry entry, int64_t bytes, Evicted* evicted) {
  auto is_plan = [](const Id& i) { return i.first == EntryKind::kPlan ? 1 : 0; };
  if (entries_.Erase(id)) plans_ -= is_plan(id);
  for (auto& old : entries_.Insert(id, std::move(entry), bytes)) {
    plans_ -= is_plan(old.first);
    ++evicted_;
    evicted->push_back(std::move(old));
  }
  if (entries_.Contains(id)) plans_ += is_plan(id);
}

absl::Status MemoryStore::PutBundle(const Bundle& bundle) {
  absl::Status sound = CheckBundle(bundle);
  Evicted evicted;  // dies after the lock
  MutexLock lock(&mutex_);
  if (!sound.ok()) {
    ++refused_;
    return sound;
  }
  for (const auto& kernel : bundle.kernels) {
    Insert({EntryKind::kKernel, kernel->key}, {nullptr, kernel}, ChargedBytes(*kernel), &evicted);
  }
  if (bundle.plan != nullptr) {
    Insert({EntryKind::kPlan, bundle.plan->key}, {bundle.plan, nullptr}, ChargedBytes(*bundle.plan),
           &evicted);
  }
  return absl::OkStatus();
}

std::vector<StoreStats> MemoryStore::Stats() const {
  MutexLock lock(&mutex_);
  StoreStats stats;
  stats.tier = Tier::kMemory;
  stats.plans = plans_;
  stats.kernels = static_cast<int64_t>(entries_.size()) - plans_;
  stats.bytes = entries_.cost();
  stats.limit_bytes = entries_.budget();
  stats.evicted = evicted_;
  stats.dropped = dropped_;
  stats.write_failures = refused_;
  return {stats};
}

}  // namespace fusion
