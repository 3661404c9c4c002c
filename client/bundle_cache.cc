#include "client/bundle_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>
#include <tuple>
#include <utility>

#include "client/calls/answer_check.h"
#include "core/base/files/file.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

constexpr std::string_view kPlanPrefix = "plan-";
constexpr std::string_view kKernelPrefix = "kernel-";
constexpr std::string_view kTemporaryPrefix = "new-";
constexpr char kLockName[] = "lock";
// A plan file of another layout is corrupt, that is: a miss.
constexpr std::string_view kPlanMagic = "fusiond plan 1\n";
constexpr size_t kPlanHeadBytes = kPlanMagic.size() + sizeof(Digest::bytes);
// Files that a dead process left.
constexpr Nanoseconds kTemporaryLife = std::chrono::hours(1);
// Others write there too: how often this process looks what there is in all.
constexpr int kStoresPerScan = 16;
// Evicting down to less than the limit spares the next stores from doing it again.
constexpr double kKeptPart = 0.9;

std::string PlanName(const Digest& request) { return StrCat(kPlanPrefix, request.ToHex()); }
std::string KernelName(const Digest& key, const Digest& content) {
  return StrCat(kKernelPrefix, key.ToHex(), "-", content.ToHex());
}

bool IsOurs(const struct stat& info) {
  return info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string ErrorText(int error) { return std::generic_category().message(error); }

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Unavailable(ErrorText(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

struct CachedFile {
  std::string name;
  int64_t bytes = 0;
  Nanoseconds used{0};
};

// Regular files of the cache, not the lock.
std::vector<CachedFile> ListFiles(int directory) {
  std::vector<CachedFile> out;
  // A descriptor of its own: the position of a directory stream is shared by dup.
  const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return out;
  DIR* stream = fdopendir(fd);
  if (stream == nullptr) {
    close(fd);
    return out;
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): of a stream that is this thread's alone
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    const bool known = name.starts_with(kPlanPrefix) || name.starts_with(kKernelPrefix) ||
                       name.starts_with(kTemporaryPrefix);
    struct stat info = {};
    if (!known || fstatat(directory, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    out.push_back({std::string(name), info.st_size,
                   std::chrono::seconds(info.st_mtim.tv_sec) + Nanoseconds(info.st_mtim.tv_nsec)});
  }
  closedir(stream);
  return out;
}

/// What a plan file holds.
struct PlanFile {
  std::string_view answer;  // a serialised v1::PlanFusionResponse
  v1::PlanFusionResponse wire;
  FusionReply reply;
};

// Nothing if the bytes are no plan file.
std::optional<PlanFile> DecodePlanFile(std::string_view bytes) {
  if (bytes.size() < kPlanHeadBytes || !bytes.starts_with(kPlanMagic)) return std::nullopt;
  const std::string_view digest =
      bytes.substr(kPlanMagic.size(), kPlanHeadBytes - kPlanMagic.size());
  PlanFile file{.answer = bytes.substr(kPlanHeadBytes)};
  const Digest actual = Sha256(file.answer);
  if (BytesOf(actual) != digest || file.answer.size() > INT32_MAX ||
      !file.wire.ParseFromArray(file.answer.data(), static_cast<int>(file.answer.size()))) {
    return std::nullopt;
  }
  absl::StatusOr<FusionReply> reply = DecodeReply(file.wire);
  if (!reply.ok()) return std::nullopt;
  for (const KernelStatus& kernel : reply->kernels) {
    if (kernel.state != KernelState::kReady) return std::nullopt;
  }
  file.reply = *std::move(reply);
  return file;
}

}  // namespace

absl::StatusOr<std::shared_ptr<BundleCache>> BundleCache::Open(const std::string& directory,
                                                               const BundleCacheOptions& options) {
  RETURN_IF_ERROR(MakeDirectories(directory));
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info = {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return FailedPrecondition("cache directory ", Quote(directory), ": ", ErrorText(errno));
  }
  if (info.st_uid != geteuid()) {
    return FailedPrecondition("cache directory ", Quote(directory), " belongs to user ",
                              info.st_uid, ", expected this process's user ", geteuid());
  }
  if (!IsOurs(info)) {
    return FailedPrecondition("cache directory ", Quote(directory),
                              " can be written to by other users; kernels in it are run: expected "
                              "mode 0700");
  }
  return std::shared_ptr<BundleCache>(
      new BundleCache(AbsolutePath(directory), std::move(fd), options));
}

BundleCache::BundleCache(std::string directory, UniqueFd fd, const BundleCacheOptions& options)
    : directory_(std::move(directory)),
      fd_(std::move(fd)),
      options_(options),
      nonce_(std::random_device()()) {
  MutexLock lock(&mutex_);
  for (const CachedFile& file : ListFiles(fd_.get())) bytes_ += file.bytes;
}

void BundleCache::Count(int64_t BundleCacheStats::*what, int64_t by) {
  MutexLock lock(&mutex_);
  stats_.*what += by;
}

BundleCacheStats BundleCache::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

// The bytes of a file that only this user can have written, and marks it as used; nullopt if there
// is none.
std::optional<std::string> BundleCache::Read(const std::string& name) {
  UniqueFd fd(openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info = {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    if (errno == ELOOP) Discard(name);
    return std::nullopt;
  }
  if (!S_ISREG(info.st_mode) || !IsOurs(info) || info.st_size > options_.max_file_bytes) {
    Discard(name);
    return std::nullopt;
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  MarkUsed(fd.get());
  return bytes;
}

// Times of files order what is evicted, for all processes. One that cannot be set is of a directory
// in which nothing can be evicted, either.
void BundleCache::MarkUsed(int fd) const {
  const Nanoseconds now = options_.clock->UnixTime();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  const timespec used = {seconds.count(), (now - seconds).count()};
  const timespec times[2] = {used, used};
  futimens(fd, times);
}

void BundleCache::Discard(const std::string& name) {
  unlinkat(fd_.get(), name.c_str(), 0);
  Count(&BundleCacheStats::corrupt);
}

std::optional<FetchedKernel> BundleCache::FindKernel(const Digest& key, const Digest& content) {
  const std::string name = KernelName(key, content);
  std::optional<std::string> bytes = Read(name);
  if (!bytes) return std::nullopt;
  if (Sha256(*bytes) != content) {
    Discard(name);
    return std::nullopt;
  }
  Count(&BundleCacheStats::kernel_hits);
  return FetchedKernel{key, content, *std::move(bytes)};
}

std::optional<Bundle> BundleCache::Find(const Digest& request,
                                        const std::vector<SigningKey>& verify_keys) {
  const std::string name = PlanName(request);
  std::optional<std::string> bytes = Read(name);
  std::optional<PlanFile> file;
  if (bytes) {
    file = DecodePlanFile(*bytes);
    if (!file) Discard(name);
  }
  // Somebody else may take what is signed otherwise: it stays. The signature is over the digests of
  // the kernels as well.
  if (file && !verify_keys.empty() &&
      !CheckPlanSignature(verify_keys, file->answer, file->wire).ok()) {
    file.reset();
  }
  if (!file) {
    Count(&BundleCacheStats::misses);
    return std::nullopt;
  }
  Bundle out{.reply = std::move(file->reply)};
  for (const KernelStatus& kernel : out.reply.kernels) {
    std::optional<FetchedKernel> found = FindKernel(kernel.key, kernel.content);
    if (!found) {
      Count(&BundleCacheStats::misses);
      return std::nullopt;
    }
    out.kernels.push_back(*std::move(found));
  }
  Count(&BundleCacheStats::hits);
  return out;
}

void BundleCache::Store(const Digest& request, std::string_view answer,
                        const std::vector<FetchedKernel>& kernels) {
  // The plan last: whoever finds it finds its kernels.
  for (const FetchedKernel& kernel : kernels) {
    const std::string name = KernelName(kernel.key, kernel.content);
    if (faccessat(fd_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) continue;
    Write(name, "", kernel.binary);
  }
  if (!HoldsSame(request, answer)) {
    Write(PlanName(request), StrCat(kPlanMagic, BytesOf(Sha256(answer))), answer);
  }
  // Also if the plan stayed: its kernels may have been evicted, and written again.
  Evict();
}

// True if the plan file says the same: answers differ in times alone then, and every start of a
// model would write one.
bool BundleCache::HoldsSame(const Digest& request, std::string_view answer) {
  const std::optional<std::string> bytes = Read(PlanName(request));
  v1::PlanFusionResponse wire;
  if (!bytes || answer.size() > INT32_MAX ||
      !wire.ParseFromArray(answer.data(), static_cast<int>(answer.size()))) {
    return false;
  }
  const std::optional<PlanFile> file = DecodePlanFile(*bytes);
  const absl::StatusOr<FusionReply> given = DecodeReply(wire);
  if (!file || !given.ok() || file->reply.plan_key != given->plan_key) return false;
  // Of another key, or nobody's.
  if (file->wire.signature().SerializeAsString() != wire.signature().SerializeAsString()) {
    return false;
  }
  const std::vector<KernelStatus>& held = file->reply.kernels;
  return std::equal(held.begin(), held.end(), given->kernels.begin(), given->kernels.end(),
                    [](const KernelStatus& a, const KernelStatus& b) {
                      return a.key == b.key && a.content == b.content;
                    });
}

void BundleCache::Write(const std::string& name, std::string_view head, std::string_view bytes) {
  const auto size = static_cast<int64_t>(head.size() + bytes.size());
  if (size > std::min(options_.max_file_bytes, options_.max_bytes)) return;
  std::string temporary;
  {
    MutexLock lock(&mutex_);
    temporary = StrCat(kTemporaryPrefix, nonce_, "-", ++names_);
  }
  absl::Status status = WriteNew(temporary, name, head, bytes);
  if (!status.ok()) unlinkat(fd_.get(), temporary.c_str(), 0);
  bool warn = false;
  {
    MutexLock lock(&mutex_);
    if (status.ok()) {
      ++stats_.stored;
      bytes_ += size;
    } else {
      ++stats_.failed_writes;
      warn = !std::exchange(warned_, true);
    }
  }
  if (warn) {
    options_.warn(StrCat("cache directory ", Quote(directory_),
                         ": plans and kernels are not kept: ", Message(status)));
  }
}

// A file that is there under its name is whole, whenever this process stops. Not when the machine
// does: what it lost has not the digest that it should have, which is a miss, and no load that
// comes before is worth the wait for a disk.
absl::Status BundleCache::WriteNew(const std::string& temporary, const std::string& name,
                                   std::string_view head, std::string_view bytes) const {
  UniqueFd fd(openat(fd_.get(), temporary.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return Unavailable(ErrorText(errno));
  RETURN_IF_ERROR(WriteAll(fd.get(), head));
  RETURN_IF_ERROR(WriteAll(fd.get(), bytes));
  MarkUsed(fd.get());
  if (renameat(fd_.get(), temporary.c_str(), fd_.get(), name.c_str()) != 0) {
    return Unavailable(ErrorText(errno));
  }
  return absl::OkStatus();
}

// Deletes the least recently used files while the limit is exceeded. One process at a time; the
// others skip it.
void BundleCache::Evict() {
  {
    MutexLock lock(&mutex_);
    if (++stores_since_scan_ < kStoresPerScan && bytes_ <= options_.max_bytes) return;
    stores_since_scan_ = 0;
  }
  UniqueFd lock_file(openat(fd_.get(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock_file.valid() || flock(lock_file.get(), LOCK_EX | LOCK_NB) != 0) return;
  std::vector<CachedFile> files = ListFiles(fd_.get());
  std::sort(files.begin(), files.end(), [](const CachedFile& a, const CachedFile& b) {
    return std::tie(a.used, a.name) < std::tie(b.used, b.name);
  });
  int64_t total = 0;
  for (const CachedFile& file : files) total += file.bytes;
  const bool too_much = total > options_.max_bytes;
  const auto kept = static_cast<int64_t>(static_cast<double>(options_.max_bytes) * kKeptPart);
  const Nanoseconds now = options_.clock->UnixTime();
  int64_t evicted = 0;
  for (const CachedFile& file : files) {
    const bool temporary = file.name.starts_with(kTemporaryPrefix);
    const bool goes = temporary ? now - file.used > kTemporaryLife : too_much && total > kept;
    if (!goes || unlinkat(fd_.get(), file.name.c_str(), 0) != 0) continue;
    total -= file.bytes;
    ++evicted;
  }
  MutexLock lock(&mutex_);
  stats_.evicted += evicted;
  bytes_ = total;
}

}  // namespace fusion
