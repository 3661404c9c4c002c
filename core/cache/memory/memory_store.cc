#include "core/cache/memory/memory_store.h"

#include <algorithm>
#include <iterator>

namespace fusion {

namespace {

PlanPlace PlaceOf(const StoredPlan& plan) { return {plan.created_unix_ms, plan.key}; }

}  // namespace

MemoryStore::MemoryStore(int64_t budget_bytes, int64_t largest_bytes, Logger& logger)
    : logger_(logger), entries_(budget_bytes, largest_bytes) {}

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
  // Entries were checked when inserted. Only the full key can differ.
  if (key.full_key.empty() || key.full_key == value->full_key) return {value, Tier::kMemory};
  logger_.Error("cache_entry_dropped",
                {{"tier", "memory"},
                 {"kind", EntryKindName(kind)},
                 {"key", key.digest.ToHex()},
                 {"reason", WhyNotTheEntry(key, key.digest, value->full_key)}});
  MutexLock lock(&mutex_);
  Remove({kind, key.digest});
  ++dropped_;
  return {};
}

Found<StoredPlan> MemoryStore::GetPlan(const EntryKey& key) {
  return Get(EntryKind::kPlan, key, &Entry::plan);
}

Found<KernelArtifact> MemoryStore::GetKernel(const EntryKey& key) {
  return Get(EntryKind::kKernel, key, &Entry::kernel);
}

std::shared_ptr<const StoredPlan> MemoryStore::PeekPlan(const Digest& key) {
  MutexLock lock(&mutex_);
  const Entry* entry = entries_.Peek({EntryKind::kPlan, key});
  return entry == nullptr ? nullptr : entry->plan;
}

bool MemoryStore::HasPlan(const Digest& key) const {
  MutexLock lock(&mutex_);
  return entries_.Contains({EntryKind::kPlan, key});
}

bool MemoryStore::HasKernel(const Digest& key) const {
  MutexLock lock(&mutex_);
  return entries_.Contains({EntryKind::kKernel, key});
}

void MemoryStore::Remove(const Id& id) {
  const Entry* entry = entries_.Peek(id);
  if (entry == nullptr) return;
  if (entry->plan != nullptr) plans_.erase(PlaceOf(*entry->plan));
  ++removals_;
  entries_.Erase(id);
}

void MemoryStore::Count(const Evicted& evicted) {
  for (const auto& [id, entry] : evicted) {
    if (entry.plan != nullptr) plans_.erase(PlaceOf(*entry.plan));
  }
  evicted_ += static_cast<int64_t>(evicted.size());
  removals_ += static_cast<int64_t>(evicted.size());
}

void MemoryStore::TrimMemory() {
  Evicted evicted;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  evicted = entries_.MakeRoom();
  Count(evicted);
}

void MemoryStore::Insert(const Id& id, Entry entry, int64_t bytes, Evicted* evicted) {
  Remove(id);
  std::shared_ptr<const StoredPlan> plan = entry.plan;
  Evicted old = entries_.Insert(id, std::move(entry), bytes);
  Count(old);
  std::move(old.begin(), old.end(), std::back_inserter(*evicted));
  if (plan != nullptr && entries_.Contains(id)) plans_.insert(PlaceOf(*plan));
}

std::optional<Digest> MemoryStore::ContentOf(EntryKind kind, const Digest& key) const {
  MutexLock lock(&mutex_);
  const Entry* entry = entries_.Peek({kind, key});
  if (entry == nullptr) return std::nullopt;
  return entry->plan != nullptr ? entry->plan->content : entry->kernel->content;
}

bool MemoryStore::Touch(const Digest& plan, const std::vector<Digest>& kernels) {
  MutexLock lock(&mutex_);
  bool all = entries_.Find({EntryKind::kPlan, plan}) != nullptr;
  for (const Digest& kernel : kernels) {
    all = entries_.Find({EntryKind::kKernel, kernel}) != nullptr && all;
  }
  return all;
}

int64_t MemoryStore::CachedBytes() const {
  MutexLock lock(&mutex_);
  return entries_.cost();
}

int64_t MemoryStore::removals() const {
  MutexLock lock(&mutex_);
  return removals_;
}

absl::Status MemoryStore::PutBundle(const Bundle& bundle) {
  absl::Status sound = CheckBundle(bundle);
  Evicted evicted;  // destroyed after the lock is released
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

PlanPage MemoryStore::ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                                  size_t limit) {
  std::vector<std::shared_ptr<const StoredPlan>> plans;
  PlanPage page;
  {
    MutexLock lock(&mutex_);
    PlacePage found = PlacesAfter(plans_, after, filter.shows ? kLookedAtPlaces : limit,
                                  [](const PlanPlace&) { return true; });
    for (const PlanPlace& place : found.places) {
      plans.push_back(entries_.Peek({EntryKind::kPlan, place.key})->plan);
    }
    page.last = found.last;
  }
  for (size_t i = 0; i < plans.size() && page.plans.size() < limit; ++i) {
    if (!filter.Shows(*plans[i])) continue;
    page.plans.push_back(Summarise(*plans[i], [this](const Digest& kernel) {
      MutexLock lock(&mutex_);  // per kernel: there may be 100,000
      return entries_.Contains({EntryKind::kKernel, kernel});
    }));
    const bool more = i + 1 < plans.size();
    if (more && page.plans.size() == limit) {
      page.last = {plans[i]->created_unix_ms, plans[i]->key};
    }
  }
  return page;
}

std::shared_ptr<const KernelArtifact> MemoryStore::PeekKernel(const Digest& key) {
  MutexLock lock(&mutex_);
  const Entry* entry = entries_.Peek({EntryKind::kKernel, key});
  return entry == nullptr ? nullptr : entry->kernel;
}

absl::StatusOr<Forgotten> MemoryStore::Forget(const ForgetQuery& query) {
  Forgotten gone;
  MutexLock lock(&mutex_);
  if (query.all) {
    gone.plans = static_cast<int64_t>(plans_.size());
    gone.kernels = static_cast<int64_t>(entries_.size()) - gone.plans;
    removals_ += gone.plans + gone.kernels;
    entries_.Clear();
    plans_.clear();
    return gone;
  }
  for (const Digest& key : query.plans) {
    gone.plans += entries_.Contains({EntryKind::kPlan, key});
    Remove({EntryKind::kPlan, key});
  }
  for (const Digest& key : query.kernels) {
    gone.kernels += entries_.Contains({EntryKind::kKernel, key});
    Remove({EntryKind::kKernel, key});
  }
  return gone;
}

std::vector<StoreStats> MemoryStore::Stats() const {
  MutexLock lock(&mutex_);
  StoreStats stats;
  stats.tier = Tier::kMemory;
  stats.plans = static_cast<int64_t>(plans_.size());
  stats.kernels = static_cast<int64_t>(entries_.size()) - stats.plans;
  stats.bytes = entries_.cost();
  stats.limit_bytes = entries_.budget();
  stats.evicted = evicted_;
  stats.dropped = dropped_;
  stats.write_failures = refused_;
  return {stats};
}

}  // namespace fusion
