// Maintenance operations of RocksStore.
#include <fcntl.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

#include "core/base/files/server_state.h"
#include "core/base/files/unique_fd.h"
#include "core/base/threads/named_thread.h"
#include "core/cache/rocks/disk_entries.h"
#include "core/cache/rocks/entry_facts.h"
#include "core/cache/rocks/frame.h"
#include "core/cache/rocks/rocks_schema.h"
#include "core/cache/rocks/rocks_store.h"
#include "core/cache/rocks/set_aside.h"
#include "core/wire/kernel.h"

namespace fusion {
namespace {

std::vector<Digest> WithoutDoubles(const std::vector<Digest>& keys) {
  std::set<Digest> seen;
  std::vector<Digest> out;
  for (const Digest& key : keys) {
    if (seen.insert(key).second) out.push_back(key);
  }
  return out;
}

absl::Status NotStored(const Digest& plan) {
  return NotFound("no plan ", plan.ToHex(), " is stored; nothing was changed");
}

void Note(StoreDamage damage, StoreCheck* check) {
  ++check->damaged;
  if (check->damage.size() < kMaxNamedDamage) check->damage.push_back(std::move(damage));
}

// Sets a flag for RocksDB when a request is cancelled or its deadline passes.
class CancelFlag {
 public:
  explicit CancelFlag(const CancelToken& cancel)
      : watcher_(NamedThread("store-cancel", [this, &cancel] {
          constexpr std::chrono::milliseconds kLook(20);
          while (!done_ && !flag_) {
            if (!cancel.Check().ok()) flag_ = true;
            std::this_thread::sleep_for(kLook);
          }
        })) {}
  ~CancelFlag() {
    done_ = true;
    watcher_.join();
  }
  CancelFlag(const CancelFlag&) = delete;
  CancelFlag& operator=(const CancelFlag&) = delete;

  std::atomic<bool>* flag() { return &flag_; }

 private:
  std::atomic<bool> done_{false};
  std::atomic<bool> flag_{false};
  std::thread watcher_;
};

// Why a file does not match its checksum; empty if it does. Sets `there` to whether it exists.
std::string WhyNotTheFile(const std::string& path, const std::string& expected,
                          const CancelToken& cancel, bool* there) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  *there = fd.valid() || errno != ENOENT;
  if (!fd.valid()) return "it cannot be opened";
  auto generator = rocksdb::GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator(
      {.file_name = path, .requested_checksum_func_name = {}});
  std::string buffer(1 << 20, '\0');
  for (;;) {
    if (!cancel.Check().ok()) return "";
    ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0) return "it cannot be read";
    if (n == 0) break;
    generator->Update(buffer.data(), static_cast<size_t>(n));
  }
  generator->Finalize();
  return generator->GetChecksum() == expected ? "" : "its bytes do not have their checksum";
}

}  // namespace

absl::Status RocksStore::PinAll(const std::vector<Digest>& plans, rocksdb::WriteBatch* batch,
                                std::map<Digest, std::vector<Digest>>* pins) {
  for (const Digest& plan : plans) {
    ASSIGN_OR_RETURN(StoredPlan stored, PlanToPin(plan));
    (*pins)[plan] = KernelsOf(stored.plan);
    batch->Put(database_->family(Family::kMeta), PinKey(plan), PinValue((*pins)[plan]));
  }
  MutexLock lock(&mutex_);
  std::set<EntryId> more;
  for (const auto& [plan, kernels] : *pins) {
    more.insert({EntryKind::kPlan, plan});
    for (const Digest& kernel : kernels) more.insert({EntryKind::kKernel, kernel});
  }
  int64_t bytes = index_.pinned_bytes();
  for (const EntryId& id : more) {
    const EntryFacts* facts = index_.Find(id);
    if (facts != nullptr && !index_.IsPinned(id)) bytes += facts->bytes;
  }
  if (bytes <= MostPinned()) return absl::OkStatus();
  return ResourceExhausted("pinned plans and their kernels would take ", HumanBytes(bytes),
                           "; at most ", HumanBytes(MostPinned()), ", ", kPinnedQuarters,
                           " quarters of --store-limit, can be pinned; nothing was changed");
}

absl::StatusOr<PinOutcome> RocksStore::SetPinned(const std::vector<Digest>& plans, bool pinned) {
  RETURN_IF_ERROR(CheckWritable());
  MutexLock writing(&write_mutex_);
  std::vector<Digest> changed;
  {
    MutexLock lock(&mutex_);
    for (const Digest& plan : WithoutDoubles(plans)) {
      const EntryId id{EntryKind::kPlan, plan};
      // A pinned plan that was dropped as damaged stays pinned, and can be unpinned.
      if (index_.Find(id) == nullptr && !(index_.IsPinned(id) && !pinned)) return NotStored(plan);
      if (index_.IsPinned(id) != pinned) changed.push_back(plan);
    }
  }
  rocksdb::WriteBatch batch;
  std::map<Digest, std::vector<Digest>> pins;
  if (pinned) {
    RETURN_IF_ERROR(PinAll(changed, &batch, &pins));
  } else {
    for (const Digest& plan : changed) {
      batch.Delete(database_->family(Family::kMeta), PinKey(plan));
    }
  }
  if (batch.Count() > 0) RETURN_IF_ERROR(Commit(&batch, "pinning plans"));
  MutexLock lock(&mutex_);
  for (auto& [plan, kernels] : pins) index_.Pin(plan, std::move(kernels));
  if (!pinned) {
    for (const Digest& plan : changed) index_.Unpin(plan);
  }
  PinOutcome outcome{.changed = static_cast<int64_t>(changed.size()),
                     .pinned_plans = index_.pinned_plans(),
                     .pinned_bytes = index_.pinned_bytes()};
  if (pinned) {
    for (const Digest& plan : WithoutDoubles(plans)) {
      outcome.missing_kernels += index_.MissingOf(plan);
    }
  }
  return outcome;
}

absl::Status RocksStore::ForgetAll(const std::vector<EntryId>& ids, bool pins) {
  rocksdb::WriteBatch batch;
  for (const EntryId& id : ids) {
    batch.Delete(database_->family(FamilyOf(id.kind)), AsSlice(BytesOf(id.key)));
    batch.Delete(database_->family(Family::kMeta), FactsKey(id));
    if (pins && id.kind == EntryKind::kPlan) {
      batch.Delete(database_->family(Family::kMeta), PinKey(id.key));
    }
  }
  if (batch.Count() > 0) RETURN_IF_ERROR(Commit(&batch, "forgetting entries"));
  MutexLock lock(&mutex_);
  for (const EntryId& id : ids) {
    if (pins && id.kind == EntryKind::kPlan) index_.Unpin(id.key);
    index_.Remove(id);
  }
  return absl::OkStatus();
}

absl::StatusOr<Forgotten> RocksStore::Forget(const ForgetQuery& query) {
  // Maximum number of entries in one batch, which is held in memory.
  constexpr size_t kBatch = 10000;
  MutexLock writing(&write_mutex_);
  std::vector<EntryId> ids;
  Forgotten gone;
  {
    MutexLock lock(&mutex_);
    auto add = [&](const EntryId& id) {
      ids.push_back(id);
      ++(id.kind == EntryKind::kPlan ? gone.plans : gone.kernels);
    };
    if (query.all) {
      for (const auto& [id, facts] : index_.entries()) add(id);
    }
    for (const Digest& key : WithoutDoubles(query.plans)) {
      const EntryId id{EntryKind::kPlan, key};
      if (index_.Find(id) != nullptr || index_.IsPinned(id)) add(id);
    }
    for (const Digest& key : WithoutDoubles(query.kernels)) {
      const EntryId id{EntryKind::kKernel, key};
      if (index_.Find(id) != nullptr) add(id);
    }
  }
  for (size_t begin = 0; begin < ids.size(); begin += kBatch) {
    auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
    auto last = ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), begin + kBatch));
    RETURN_IF_ERROR(ForgetAll({first, last}, /*pins=*/true));
  }
  return gone;
}

// DataLoss: damaged, or listed but absent; other errors: it cannot be read.
absl::Status RocksStore::CheckEntry(const EntryId& id, int64_t* bytes,
                                    std::vector<Digest>* kernels) {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  rocksdb::PinnableSlice framed;
  rocksdb::Status read = database_->db().Get(options, database_->family(FamilyOf(id.kind)),
                                             AsSlice(BytesOf(id.key)), &framed);
  if (read.IsNotFound()) return DataLoss("it is listed, but not there");
  if (!read.ok()) return RocksDatabase::ToStatus(read, "it cannot be read");
  *bytes = static_cast<int64_t>(framed.size());
  absl::StatusOr<std::string_view> payload = Unframe(AsView(framed));
  if (!payload.ok()) return DataLoss(Message(payload.status()));
  const EntryKey asked{id.key, {}};
  std::string other;
  if (id.kind == EntryKind::kKernel) {
    absl::StatusOr<KernelArtifact> kernel = DecodeArtifact(*payload);
    if (!kernel.ok()) return DataLoss(Message(kernel.status()));
    if (Sha256(kernel->binary) != kernel->content) return DataLoss("its binary has another digest");
    other = WhyNotTheEntry(asked, kernel->key, kernel->full_key);
  } else {
    absl::StatusOr<StoredPlan> plan = DecodeStoredPlan(*payload);
    if (!plan.ok()) return DataLoss(Message(plan.status()));
    *kernels = KernelsOf(plan->plan);
    other = WhyNotTheEntry(asked, plan->key, plan->full_key);
  }
  return other.empty() ? absl::OkStatus() : DataLoss(other);
}

void RocksStore::VerifyEntry(const EntryId& id, StoreCheck* check) {
  int64_t bytes = 0;
  std::vector<Digest> kernels;
  if (!CheckEntry(id, &bytes, &kernels).ok()) {
    MutexLock writing(&write_mutex_);
    // It may have been removed or replaced since.
    const absl::Status still = CheckEntry(id, &bytes, &kernels);
    if (!IsListed(id)) return;
    if (absl::IsDataLoss(still)) Delete(id, Message(still));
    if (!still.ok()) {
      Note({std::string(EntryKindName(id.kind)), id.key.ToHex(),
            StrCat(Message(still), absl::IsDataLoss(still) ? "" : " (kept)")},
           check);
    }
  }
  ++(id.kind == EntryKind::kPlan ? check->plans : check->kernels);
  check->bytes += bytes;
  MutexLock lock(&mutex_);
  for (const Digest& kernel : kernels) {
    check->missing_kernels += index_.Find({EntryKind::kKernel, kernel}) == nullptr;
  }
}

absl::Status RocksStore::VerifyFiles(const CancelToken& cancel, StoreCheck* check) {
  std::unique_ptr<rocksdb::FileChecksumList> list(rocksdb::NewFileChecksumList());
  RETURN_IF_ERROR(RocksDatabase::ToStatus(database_->db().GetLiveFilesChecksumInfo(list.get()),
                                          "the checksums of the files"));
  std::vector<uint64_t> numbers;
  std::vector<std::string> checksums, functions;
  RETURN_IF_ERROR(RocksDatabase::ToStatus(
      list->GetAllFileChecksums(&numbers, &checksums, &functions), "the checksums of the files"));
  for (size_t i = 0; i < numbers.size(); ++i) {
    RETURN_IF_ERROR(cancel.Check());
    if (functions[i] != rocksdb::kStandardDbFileChecksumFuncName) continue;
    std::string digits = StrCat(numbers[i]);
    digits.insert(0, digits.size() < 6 ? 6 - digits.size() : 0, '0');
    bool there = false;
    for (const char* extension : {".sst", ".blob"}) {
      const std::string name = digits + extension;
      std::string reason =
          WhyNotTheFile(StrCat(options_.dir, "/", name), checksums[i], cancel, &there);
      if (!there) continue;
      ++check->files;
      if (!reason.empty()) Note({"file", name, reason}, check);
      break;
    }
    // If it is absent, a compaction has replaced it.
  }
  return cancel.Check();
}

absl::StatusOr<StoreCheck> RocksStore::Verify(const CancelToken& cancel) {
  StoreCheck check;
  std::vector<EntryId> ids;
  {
    MutexLock lock(&mutex_);
    // Kernels first, so that dropped kernels of a plan count as missing.
    for (EntryKind kind : {EntryKind::kKernel, EntryKind::kPlan}) {
      for (const auto& [id, facts] : index_.entries()) {
        if (id.kind == kind) ids.push_back(id);
      }
    }
  }
  for (const EntryId& id : ids) {
    RETURN_IF_ERROR(cancel.Check());
    VerifyEntry(id, &check);
  }
  RETURN_IF_ERROR(VerifyFiles(cancel, &check));
  return check;
}

// A compaction copies the live bytes of a family before it deletes the old files, one family at a
// time.
absl::Status RocksStore::CheckRoomToCompact() const {
  int64_t largest = 0;
  for (size_t i = 0; i < kFamilyCount; ++i) {
    largest = std::max(largest, database_->LiveBytes(static_cast<Family>(i)));
  }
  ASSIGN_OR_RETURN(int64_t free, options_.free_bytes(options_.dir));
  if (free >= largest + options_.min_free_bytes) return absl::OkStatus();
  return OfServerState(ResourceExhausted("compacting the store writes up to ", HumanBytes(largest),
                                         " anew before the old files go, and ",
                                         HumanBytes(options_.min_free_bytes), " must stay free; ",
                                         HumanBytes(free), " are free in ", Quote(options_.dir)));
}

absl::StatusOr<StoreCompaction> RocksStore::Compact(const CancelToken& cancel) {
  RETURN_IF_ERROR(CheckWritable());
  RETURN_IF_ERROR(CheckRoomToCompact());
  StoreCompaction sizes{.bytes_before = DiskBytes(options_.dir)};
  CancelFlag flag(cancel);
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  options.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
  options.blob_garbage_collection_age_cutoff = 1;
  options.canceled = flag.flag();
  for (size_t i = 0; i < kFamilyCount; ++i) {
    rocksdb::Status done = database_->db().CompactRange(
        options, database_->family(static_cast<Family>(i)), nullptr, nullptr);
    RETURN_IF_ERROR(cancel.Check());
    RETURN_IF_ERROR(RocksDatabase::ToStatus(done, "compacting the store"));
  }
  sizes.bytes_after = DiskBytes(options_.dir);
  return sizes;
}

DiskFacts RocksStore::Facts() const {
  return {.dir = options_.dir,
          .free_bytes = options_.free_bytes(options_.dir).value_or(0),
          .min_free_bytes = options_.min_free_bytes,
          .schema_version = kSchemaVersion,
          .started_empty = started_empty_after_damage(),
          .set_aside = database_->set_aside(),
          .set_aside_bytes = SetAsideBytes(options_.dir)};
}

std::string RocksStore::TenantOf(const Digest& plan) const {
  MutexLock lock(&mutex_);
  const EntryFacts* facts = index_.Find({EntryKind::kPlan, plan});
  return facts != nullptr ? facts->tenant : std::string();
}

bool RocksStore::IsPinned(const Digest& plan) const {
  MutexLock lock(&mutex_);
  return index_.IsPinned({EntryKind::kPlan, plan});
}

std::map<std::string, int64_t> RocksStore::TenantBytes() const {
  MutexLock lock(&mutex_);
  return index_.tenant_bytes();
}

}  // namespace fusion
