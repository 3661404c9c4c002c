#include "core/cache/rocks/rocks_store.h"

#include <rocksdb/write_batch.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "core/base/files/server_state.h"
#include "core/base/unix_time.h"
#include "core/cache/rocks/disk_entries.h"
#include "core/cache/rocks/entry_facts.h"
#include "core/cache/rocks/frame.h"
#include "core/cache/rocks/rocks_database.h"
#include "core/cache/rocks/rocks_records.h"
#include "core/cache/rocks/set_aside.h"
#include "core/wire/kernel.h"

namespace fusion {
namespace {

// Maximum number of use times written with one bundle. The rest is written with later ones.
constexpr size_t kUseTimesPerBatch = 1000;
// Maximum stored bytes of the plans that one call of ListPlansOf reads, except for a single plan.
constexpr int64_t kListedBytes = int64_t{32} << 20;
// Assumed cost of planning again: about that of one compilation.
constexpr double kPlanCostMs = 100;

absl::StatusOr<int64_t> StatvfsFreeBytes(const std::string& dir) {
  struct statvfs info = {};
  if (statvfs(dir.c_str(), &info) != 0) {
    return Unavailable("free space of ", Quote(dir), ": ", std::generic_category().message(errno));
  }
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

// An entry to be written.
struct Pending {
  EntryId id;
  std::string framed;
  EntryFacts facts;
};

Pending MakePending(EntryKind kind, const Digest& key, const Digest& content,
                    std::string_view payload, double cost_ms, int64_t now_ms) {
  Pending entry;
  entry.id = {kind, key};
  entry.framed = Frame(payload);
  entry.facts.bytes = static_cast<int64_t>(entry.framed.size());
  entry.facts.cost_ms = cost_ms;
  entry.facts.last_use_ms = now_ms;
  entry.facts.payload = FrameDigest(entry.framed);
  entry.facts.content = content;
  return entry;
}

std::vector<Pending> PendingEntries(const Bundle& bundle, int64_t now_ms) {
  std::vector<Pending> entries;
  for (const auto& kernel : bundle.kernels) {
    entries.push_back(MakePending(EntryKind::kKernel, kernel->key, kernel->content,
                                  EncodeArtifact(*kernel), kernel->compile_ms + kernel->check_ms,
                                  now_ms));
  }
  if (bundle.plan != nullptr) {
    entries.push_back(MakePending(EntryKind::kPlan, bundle.plan->key, bundle.plan->content,
                                  EncodeStoredPlan(*bundle.plan), kPlanCostMs, now_ms));
    entries.back().facts.created_ms = bundle.plan->created_unix_ms;
  }
  for (Pending& entry : entries) entry.facts.tenant = bundle.tenant;
  return entries;
}

absl::Status CheckSpace(const RocksStoreOptions& options) {
  ASSIGN_OR_RETURN(int64_t free, options.free_bytes(options.dir));
  if (free >= options.min_free_bytes) return absl::OkStatus();
  return OfServerState(ResourceExhausted("store ", Quote(options.dir), ": ", HumanBytes(free),
                                         " free, nothing is written below ",
                                         HumanBytes(options.min_free_bytes)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RocksStore>> RocksStore::Open(RocksStoreOptions options,
                                                             Logger& logger, const Clock& clock) {
  if (options.dir.empty()) return InvalidArgument("store: no directory given");
  while (options.dir.size() > 1 && options.dir.back() == '/') options.dir.pop_back();
  if (!options.free_bytes) options.free_bytes = StatvfsFreeBytes;
  if (options.lock == nullptr) {
    ASSIGN_OR_RETURN(options.lock, LockStore(options.dir));
  }
  if (options.read_only) return OpenToRead(std::move(options), logger, clock);
  std::string aside;
  for (bool first : {true, false}) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<RocksDatabase> database,
        RocksDatabase::Open(options.dir, options.block_cache_bytes, options.lock, logger, clock));
    if (!aside.empty()) database->NoteSetAside(aside);
    std::unique_ptr<RocksStore> store(new RocksStore(options, std::move(database), logger, clock));
    absl::Status loaded = store->LoadIndex();
    if (loaded.ok()) return store;
    // Without its index the content of the database is unknown.
    if (!absl::IsDataLoss(loaded) || !first) return loaded;
    store.reset();
    ASSIGN_OR_RETURN(aside, SetAside(options.dir, Message(loaded), logger, clock));
  }
  return Internal("opening the store ", Quote(options.dir), ": no attempt was made");
}

absl::StatusOr<std::unique_ptr<RocksStore>> RocksStore::OpenToRead(RocksStoreOptions options,
                                                                   Logger& logger,
                                                                   const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<RocksDatabase> database,
                   RocksDatabase::OpenToRead(options.dir, options.block_cache_bytes, options.lock,
                                             logger, clock));
  std::unique_ptr<RocksStore> store(
      new RocksStore(std::move(options), std::move(database), logger, clock));
  RETURN_IF_ERROR(store->LoadIndex());
  return store;
}

RocksStore::RocksStore(RocksStoreOptions options, std::shared_ptr<RocksDatabase> database,
                       Logger& logger, const Clock& clock)
    : options_(std::move(options)),
      database_(std::move(database)),
      logger_(logger),
      clock_(clock) {}

RocksStore::~RocksStore() { WriteUseTimes(); }

bool RocksStore::started_empty_after_damage() const { return !database_->set_aside().empty(); }

absl::Status RocksStore::LoadIndex() {
  std::unique_ptr<rocksdb::Iterator> it(
      database_->db().NewIterator({}, database_->family(Family::kMeta)));
  rocksdb::WriteBatch batch;
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(LoadPins());
  dropped_ = database_->log_damage();
  for (it->Seek(rocksdb::Slice(&kFactsPrefix, 1)); it->Valid(); it->Next()) {
    if (!it->key().starts_with(rocksdb::Slice(&kFactsPrefix, 1))) break;
    EntryId id;
    EntryFacts facts;
    if (ReadFacts(AsView(it->key()), AsView(it->value()), &id, &facts)) {
      index_.AddInOrder(id, facts);
    } else {
      DropUnlisted(it->key().ToString(), &batch);
    }
  }
  index_.FinishAdding();
  if (batch.Count() > 0) WriteDeletes(&batch);
  logger_.Info("store_opened", {{"dir", options_.dir},
                                {"plans", index_.plans()},
                                {"kernels", index_.kernels()},
                                {"bytes", index_.bytes()},
                                {"pinned", index_.pinned_plans()},
                                {"dropped", dropped_}});
  return RocksDatabase::ToStatus(it->status(), "reading the index of the store");
}

// Deletes an entry with malformed facts. It is not in the index, so it would neither be evicted nor
// counted.
void RocksStore::DropUnlisted(const std::string& facts_key, rocksdb::WriteBatch* batch) {
  EntryId id;
  ++dropped_;
  batch->Delete(database_->family(Family::kMeta), facts_key);
  if (!ReadFactsKey(facts_key, &id)) {
    logger_.Error("cache_entry_dropped", {{"tier", "disk"}, {"reason", "its key is none"}});
    return;
  }
  LogDropped(id, "its record in the index cannot be read");
  batch->Delete(database_->family(FamilyOf(id.kind)), AsSlice(BytesOf(id.key)));
}

absl::Status RocksStore::LoadPins() {
  std::unique_ptr<rocksdb::Iterator> it(
      database_->db().NewIterator({}, database_->family(Family::kMeta)));
  const rocksdb::Slice prefix(&kPinPrefix, 1);
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    Digest plan;
    std::vector<Digest> kernels;
    if (!ReadPin(AsView(it->key()), AsView(it->value()), &plan, &kernels)) continue;
    index_.Pin(plan, std::move(kernels));
  }
  return RocksDatabase::ToStatus(it->status(), "reading the pins of the store");
}

// NotFound; DataLoss: damaged, or another entry than requested; Unavailable: read error.
template <typename T>
absl::StatusOr<T> RocksStore::Look(EntryKind kind, const EntryKey& asked,
                                   absl::StatusOr<T> (*decode)(std::string_view bytes)) {
  rocksdb::PinnableSlice framed;
  rocksdb::Status read = database_->db().Get({}, database_->family(FamilyOf(kind)),
                                             AsSlice(BytesOf(asked.digest)), &framed);
  if (read.IsNotFound()) return NotFound("listed, but not there");
  if (read.IsCorruption()) return DataLoss(read.ToString());
  if (!read.ok()) return Unavailable(read.ToString());
  absl::StatusOr<std::string_view> payload = Unframe(AsView(framed));
  if (!payload.ok()) return DataLoss(Message(payload.status()));
  absl::StatusOr<T> value = decode(*payload);
  if (!value.ok()) return DataLoss(Message(value.status()));
  std::string reason = WhyNotTheEntry(asked, KeyOf(*value), value->full_key);
  if (!reason.empty()) return DataLoss(reason);
  return value;
}

// Repeats a failed Look under the write lock, and deletes the entry if it is still bad: another
// reader may have deleted it since, or a writer replaced it.
template <typename T>
absl::StatusOr<T> RocksStore::LookAgain(EntryKind kind, const EntryKey& asked,
                                        absl::StatusOr<T> (*decode)(std::string_view bytes)) {
  MutexLock writing(&write_mutex_);
  return LookToWrite(kind, asked, decode);
}

template <typename T>
absl::StatusOr<T> RocksStore::LookToWrite(EntryKind kind, const EntryKey& asked,
                                          absl::StatusOr<T> (*decode)(std::string_view bytes)) {
  const EntryId id{kind, asked.digest};
  absl::StatusOr<T> value = Look(kind, asked, decode);
  if (absl::IsDataLoss(value.status()) || (absl::IsNotFound(value.status()) && IsListed(id))) {
    Delete(id, Message(value.status()));
  }
  return value;
}

absl::StatusOr<StoredPlan> RocksStore::PlanToPin(const Digest& plan) {
  absl::StatusOr<StoredPlan> stored = LookToWrite(EntryKind::kPlan, {plan}, DecodeStoredPlan);
  if (absl::IsDataLoss(stored.status()) || absl::IsNotFound(stored.status())) {
    return DataLoss("plan ", plan.ToHex(), " was damaged (", Message(stored.status()),
                    ") and is dropped; the next request makes it again. Nothing was pinned");
  }
  if (!stored.ok()) return Annotate(stored.status(), StrCat("plan ", plan.ToHex()));
  return stored;
}

template <typename T>
std::shared_ptr<const T> RocksStore::Read(EntryKind kind, const EntryKey& asked,
                                          absl::StatusOr<T> (*decode)(std::string_view bytes)) {
  const EntryId id{kind, asked.digest};
  absl::StatusOr<T> value = Look(kind, asked, decode);
  if (absl::IsDataLoss(value.status()) || (absl::IsNotFound(value.status()) && IsListed(id))) {
    value = LookAgain(kind, asked, decode);
  }
  if (value.ok()) return std::make_shared<const T>(*std::move(value));
  if (absl::IsUnavailable(value.status())) {
    logger_.Error("store_read_failed", {{"kind", EntryKindName(kind)},
                                        {"key", asked.digest.ToHex()},
                                        {"reason", Message(value.status())}});
  }
  return nullptr;
}

template <typename T>
Found<T> RocksStore::Get(EntryKind kind, const EntryKey& asked,
                         absl::StatusOr<T> (*decode)(std::string_view bytes)) {
  std::shared_ptr<const T> value = Read<T>(kind, asked, decode);
  if (value == nullptr) return {};
  MutexLock lock(&mutex_);
  index_.Touch({kind, asked.digest}, UnixMilliseconds(clock_));
  index_.NoteContent({kind, asked.digest}, fusion::ContentOf(*value));
  return {std::move(value), Tier::kDisk};
}

Found<StoredPlan> RocksStore::GetPlan(const EntryKey& key) {
  return Get<StoredPlan>(EntryKind::kPlan, key, DecodeStoredPlan);
}

Found<KernelArtifact> RocksStore::GetKernel(const EntryKey& key) {
  return Get<KernelArtifact>(EntryKind::kKernel, key, DecodeArtifact);
}

std::shared_ptr<const StoredPlan> RocksStore::PeekPlan(const Digest& key) {
  if (!HasPlan(key)) return nullptr;
  return Read<StoredPlan>(EntryKind::kPlan, {key}, DecodeStoredPlan);
}

std::shared_ptr<const KernelArtifact> RocksStore::PeekKernel(const Digest& key) {
  return Read<KernelArtifact>(EntryKind::kKernel, {key}, DecodeArtifact);
}

bool RocksStore::HasPlan(const Digest& key) const { return IsListed({EntryKind::kPlan, key}); }
bool RocksStore::HasKernel(const Digest& key) const { return IsListed({EntryKind::kKernel, key}); }

bool RocksStore::IsListed(const EntryId& id) const {
  MutexLock lock(&mutex_);
  return index_.Find(id) != nullptr;
}

PlanPage RocksStore::ListPlansOf(const PlanFilter& filter, const std::optional<PlanPlace>& after,
                                 size_t limit) {
  PlacePage found;
  {
    MutexLock lock(&mutex_);
    auto may_be_wanted = [&](const PlanPlace& place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (!filter.tenant.has_value()) return true;
      const std::string& tenant = index_.Find({EntryKind::kPlan, place.key})->tenant;
      return tenant.empty() || tenant == *filter.tenant;
    };
    found = PlacesAfter(index_.places(), after, limit, may_be_wanted);
    int64_t bytes = 0;
    for (size_t i = 0; i < found.places.size(); ++i) {
      bytes += index_.Find({EntryKind::kPlan, found.places[i].key})->bytes;
      if (i == 0 || bytes <= kListedBytes) continue;
      found.places.resize(i);
      found.last = found.places.back();
    }
  }
  PlanPage page;
  page.last = found.last;
  for (const PlanPlace& place : found.places) {
    auto plan = Read<StoredPlan>(EntryKind::kPlan, {place.key}, DecodeStoredPlan);
    if (plan == nullptr || !filter.Shows(*plan)) continue;  // dropped, evicted, or filtered out
    page.plans.push_back(Summarise(*plan, [this](const Digest& kernel) {
      MutexLock lock(&mutex_);  // per kernel: there may be 100,000
      return index_.Find({EntryKind::kKernel, kernel}) != nullptr;
    }));
    MutexLock lock(&mutex_);
    const EntryId id{EntryKind::kPlan, place.key};
    page.plans.back().pinned = index_.IsPinned(id);
    if (const EntryFacts* facts = index_.Find(id)) page.plans.back().tenant = facts->tenant;
  }
  return page;
}

template <typename Record>
std::unique_ptr<RecordStore<Record>> RocksStore::OpenRecords(int64_t budget_bytes) {
  return std::make_unique<RocksRecords<Record>>(
      RocksRecordsOptions{.budget_bytes = budget_bytes,
                          .check_space = [options = options_] { return CheckSpace(options); }},
      database_, logger_, clock_);
}
template std::unique_ptr<MeasurementStore> RocksStore::OpenRecords(int64_t budget_bytes);
template std::unique_ptr<TimingStore> RocksStore::OpenRecords(int64_t budget_bytes);

void RocksStore::LogDropped(const EntryId& id, std::string_view reason) const {
  logger_.Error("cache_entry_dropped", {{"tier", "disk"},
                                        {"kind", EntryKindName(id.kind)},
                                        {"key", id.key.ToHex()},
                                        {"reason", reason}});
}

void RocksStore::Delete(const EntryId& id, std::string_view reason) {
  LogDropped(id, reason);
  {
    MutexLock lock(&mutex_);
    index_.Remove(id);
    ++dropped_;
  }
  rocksdb::WriteBatch batch;
  batch.Delete(database_->family(FamilyOf(id.kind)), AsSlice(BytesOf(id.key)));
  batch.Delete(database_->family(Family::kMeta), FactsKey(id));
  WriteDeletes(&batch);
}

// Deletions fail on a full disk. Then the entry is still a miss, and is found again later.
void RocksStore::WriteDeletes(rocksdb::WriteBatch* batch) {
  rocksdb::Status deleted = database_->db().Write({}, batch);
  if (!deleted.ok()) logger_.Warning("store_delete_failed", {{"reason", deleted.ToString()}});
}

std::optional<Digest> RocksStore::ContentOf(EntryKind kind, const Digest& key) const {
  MutexLock lock(&mutex_);
  const EntryFacts* facts = index_.Find({kind, key});
  return facts != nullptr ? facts->content : std::nullopt;
}

bool RocksStore::Touch(const Digest& plan, const std::vector<Digest>& kernels) {
  const int64_t now_ms = UnixMilliseconds(clock_);
  MutexLock lock(&mutex_);
  std::vector<EntryId> ids = {{EntryKind::kPlan, plan}};
  for (const Digest& kernel : kernels) ids.push_back({EntryKind::kKernel, kernel});
  for (const EntryId& id : ids) {
    if (index_.Find(id) == nullptr) return false;
  }
  for (const EntryId& id : ids) index_.Touch(id, now_ms);
  return true;
}

int64_t RocksStore::CachedBytes() const { return database_->CachedBytes(); }

int64_t RocksStore::removals() const {
  MutexLock lock(&mutex_);
  return index_.removals();
}

absl::Status RocksStore::PutBundle(const Bundle& bundle) {
  absl::Status status = CheckBundle(bundle);
  if (status.ok()) status = CheckWritable();
  if (!status.ok()) return Refused(status);
  status = Write(bundle);
  if (status.ok()) return status;
  CheckWritable().IgnoreError();  // logs if writes fail in general
  return Refused(status);
}

absl::Status RocksStore::Refused(absl::Status why) {
  MutexLock lock(&mutex_);
  ++write_failures_;
  return why;
}

absl::Status RocksStore::CheckWritable() const {
  absl::Status status = CheckSpace(options_);
  if (status.ok() && !database_->CheckWritable().ok()) database_->TryToResume();
  if (status.ok()) status = database_->CheckWritable();
  MutexLock lock(&mutex_);
  if (status.ok() != writable_) {
    writable_ = status.ok();
    logger_.Log(writable_ ? LogLevel::kInfo : LogLevel::kError, "store_writable",
                {{"writable", writable_}, {"reason", Message(status)}});
  }
  return status;
}

// Writes with sync. After a failure CheckWritable fails until RocksDB has recovered. The recovery
// is left to CheckWritable: it is slow, and readers that find a bad entry wait for write_mutex_.
absl::Status RocksStore::Commit(rocksdb::WriteBatch* batch, std::string_view what) {
  rocksdb::WriteOptions durable;
  durable.sync = true;
  durable.protection_bytes_per_key = 8;
  rocksdb::Status written = database_->db().Write(durable, batch);
  if (!written.ok()) database_->NoteFailedWrite(written);
  return RocksDatabase::ToStatus(written, what);
}

// Evicts entries to make room for a bundle. If that is not possible, evicts nothing and returns
// ResourceExhausted.
absl::Status RocksStore::MakeRoom(const BundleSize& size, const std::string& tenant,
                                  const std::set<EntryId>& keep,
                                  std::vector<EvictionIndex::Entry>* victims) {
  const int64_t own = options_.tenant_budget ? options_.tenant_budget(tenant) : 0;
  if (size.bytes > options_.budget_bytes) {
    return ResourceExhausted("store: bundle of ", HumanBytes(size.bytes), " exceeds the budget of ",
                             HumanBytes(options_.budget_bytes));
  }
  if (size.pinned > 0 && index_.pinned_bytes() + size.pinned > MostPinned()) {
    return ResourceExhausted("store: no room for a bundle of ", HumanBytes(size.bytes),
                             " that is pinned: pinned plans and their kernels would take ",
                             HumanBytes(index_.pinned_bytes() + size.pinned), "; at most ",
                             HumanBytes(MostPinned()), " may be pinned");
  }
  if (own > 0 && size.charged > own) {
    return ResourceExhausted("store: bundle of ", HumanBytes(size.charged), " exceeds the ",
                             HumanBytes(own), " of tenant ", QuoteShort(tenant));
  }
  if (own > 0) *victims = index_.MakeTenantRoom(tenant, size.charged, own, keep);
  std::vector<EvictionIndex::Entry> more = index_.MakeRoom(size.bytes, options_.budget_bytes, keep);
  std::move(more.begin(), more.end(), std::back_inserter(*victims));
  absl::Status room;
  if (size.bytes > 0 && index_.bytes() + size.bytes > options_.budget_bytes) {
    room = ResourceExhausted("store: no room for a bundle of ", HumanBytes(size.bytes), ": of ",
                             HumanBytes(options_.budget_bytes), " ",
                             HumanBytes(index_.pinned_bytes()), " are pinned");
  } else if (own > 0 && size.charged > 0 && index_.TenantBytes(tenant) + size.charged > own) {
    room =
        ResourceExhausted("store: no room for a bundle of ", HumanBytes(size.charged), ": tenant ",
                          QuoteShort(tenant), " may keep ", HumanBytes(own), ", of which ",
                          HumanBytes(index_.TenantBytes(tenant)), " are pinned or in use");
  }
  if (room.ok()) return room;
  for (const auto& [id, facts] : *victims) index_.Add(id, facts);
  return room;
}

absl::Status RocksStore::Write(const Bundle& bundle) {
  std::vector<Pending> entries = PendingEntries(bundle, UnixMilliseconds(clock_));
  rocksdb::WriteBatch batch(/*reserved_bytes=*/0, /*max_bytes=*/0, /*protection_bytes_per_key=*/8,
                            /*default_cf_ts_sz=*/0);
  // Held until the index reflects the batch: other batches decide by the index.
  MutexLock writing(&write_mutex_);
  std::vector<const Pending*> written;
  std::vector<EvictionIndex::Entry> victims;
  bool pinned = false;  // its kernels may have changed
  {
    MutexLock lock(&mutex_);
    std::set<EntryId> keep;
    if (bundle.plan != nullptr) {  // also stored kernels that are not in the bundle
      for (const Digest& kernel : KernelsOf(bundle.plan->plan)) {
        keep.insert({EntryKind::kKernel, kernel});
      }
    }
    BundleSize size;
    pinned = bundle.plan != nullptr && index_.IsPinned({EntryKind::kPlan, bundle.plan->key});
    for (const EntryId& id : keep) {
      const EntryFacts* shared = index_.Find(id);
      if (pinned && shared != nullptr && !index_.IsPinned(id)) size.pinned += shared->bytes;
    }
    for (Pending& entry : entries) {
      keep.insert(entry.id);
      const EntryFacts* old = index_.Find(entry.id);
      if (old != nullptr && old->payload == entry.facts.payload) {  // shared, stored already
        index_.NoteContent(entry.id, *entry.facts.content);
        continue;
      }
      if (old != nullptr) entry.facts.tenant = old->tenant;
      written.push_back(&entry);
      const int64_t more = entry.facts.bytes - (old != nullptr ? old->bytes : 0);
      size.bytes += more;
      if (entry.facts.tenant == bundle.tenant) size.charged += more;
      if (pinned || index_.IsPinned(entry.id)) size.pinned += more;
    }
    RETURN_IF_ERROR(MakeRoom(size, bundle.tenant, keep, &victims));
    for (const auto& [id, facts] : index_.TakeTouched(kUseTimesPerBatch)) {
      batch.Put(database_->family(Family::kMeta), FactsKey(id), FactsValue(facts));
    }
  }
  for (const auto& [id, facts] : victims) {
    batch.Delete(database_->family(FamilyOf(id.kind)), AsSlice(BytesOf(id.key)));
    batch.Delete(database_->family(Family::kMeta), FactsKey(id));
  }
  for (const Pending* entry : written) {
    batch.Put(database_->family(FamilyOf(entry->id.kind)), AsSlice(BytesOf(entry->id.key)),
              entry->framed);
    batch.Put(database_->family(Family::kMeta), FactsKey(entry->id), FactsValue(entry->facts));
  }
  std::vector<Digest> kernels;
  if (pinned) {
    kernels = KernelsOf(bundle.plan->plan);
    batch.Put(database_->family(Family::kMeta), PinKey(bundle.plan->key), PinValue(kernels));
  }
  absl::Status status = Commit(&batch, "writing a bundle");
  if (status.ok()) database_->TendGarbage();
  MutexLock lock(&mutex_);
  if (!status.ok()) {
    for (const auto& [id, facts] : victims) index_.Add(id, facts);
    return status;
  }
  evicted_ += static_cast<int64_t>(victims.size());
  for (const Pending* entry : written) index_.Add(entry->id, entry->facts);
  if (pinned) index_.Pin(bundle.plan->key, std::move(kernels));
  return status;
}

void RocksStore::WriteUseTimes() {
  if (options_.read_only) return;
  rocksdb::WriteBatch batch;
  MutexLock writing(&write_mutex_);
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, facts] : index_.TakeTouched(std::numeric_limits<size_t>::max())) {
      batch.Put(database_->family(Family::kMeta), FactsKey(id), FactsValue(facts));
    }
  }
  if (batch.Count() == 0) return;
  rocksdb::Status written = database_->db().Write({}, &batch);
  if (!written.ok()) logger_.Warning("store_use_times_lost", {{"reason", written.ToString()}});
}

std::vector<StoreStats> RocksStore::Stats() const {
  int64_t on_disk = DiskBytes(options_.dir);
  absl::Status writable = CheckWritable();
  MutexLock lock(&mutex_);
  StoreStats stats;
  stats.tier = Tier::kDisk;
  stats.plans = index_.plans();
  stats.kernels = index_.kernels();
  stats.bytes = index_.bytes();
  stats.limit_bytes = options_.budget_bytes;
  stats.disk_bytes = on_disk;
  stats.evicted = evicted_;
  stats.dropped = dropped_;
  stats.write_failures = write_failures_;
  stats.pinned_plans = index_.pinned_plans();
  stats.pinned_bytes = index_.pinned_bytes();
  stats.writable = writable.ok();
  stats.not_writable = Message(writable);
  return {stats};
}

}  // namespace fusion
