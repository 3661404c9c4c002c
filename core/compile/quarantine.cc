#include "core/compile/quarantine.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/files/file.h"
#include "core/base/unix_time.h"
#include "core/base/utc_time.h"

namespace fusion {
namespace {

using nlohmann::ordered_json;

// Reasons are messages of the pool, which quote at most 2000 bytes of a log.
constexpr int64_t kMaxFileBytes = 64 << 10;
constexpr size_t kMaxReasonBytes = 8 << 10;
constexpr std::string_view kEnd = ".json";
constexpr std::string_view kFreshEnd = ".json.new";

// Whether it is a key in hex and `end`.
bool NamesKey(const std::string& name, std::string_view end, Digest* key) {
  return name.ends_with(end) && Digest::FromHex(name.substr(0, name.size() - end.size()), key);
}

// InvalidArgument: a damaged or foreign file. Unavailable: it cannot be read.
absl::StatusOr<Quarantine::Entry> ReadEntry(const std::string& path, const Digest& key) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxFileBytes);
  if (absl::IsUnavailable(text.status())) return text.status();
  const auto entry = ordered_json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!entry.is_object() || !entry.contains("reason") || !entry["reason"].is_string() ||
      !entry.contains("since_unix_ms") || !entry["since_unix_ms"].is_number_integer()) {
    return InvalidArgument("not an entry: ", Quote(path));
  }
  const auto tenant = entry.find("tenant");
  return Quarantine::Entry{
      key, entry["reason"].get<std::string>(), entry["since_unix_ms"].get<int64_t>(),
      tenant != entry.end() && tenant->is_string() ? tenant->get<std::string>() : ""};
}

}  // namespace

absl::Status Quarantine::Entry::ToStatus() const {
  const std::chrono::system_clock::time_point since{std::chrono::milliseconds(since_unix_ms)};
  return Internal("kernel in quarantine since ", UtcTimeText(since), ": ", reason);
}

absl::StatusOr<std::unique_ptr<Quarantine>> Quarantine::Open(std::string dir, const Clock& clock) {
  std::unique_ptr<Quarantine> quarantine(new Quarantine(std::move(dir), clock));
  RETURN_IF_ERROR(quarantine->Read());
  return quarantine;
}

absl::Status Quarantine::Read() {
  namespace fs = std::filesystem;
  if (dir_.empty() || !fs::exists(dir_)) return absl::OkStatus();
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(dir_, error), end; !error && it != end; it.increment(error)) {
    paths.push_back(it->path());
  }
  if (error) return Unavailable("quarantine ", Quote(dir_), ": ", error.message());
  MutexLock lock(&mutex_);
  for (const fs::path& path : paths) {
    Digest key;
    if (NamesKey(path.filename(), kFreshEnd, &key)) fs::remove(path, error);  // left by a crash
    if (!NamesKey(path.filename(), kEnd, &key)) continue;
    absl::StatusOr<Entry> entry = ReadEntry(path, key);
    if (entry.ok()) {
      entries_.emplace(key, *std::move(entry));
    } else if (absl::IsUnavailable(entry.status())) {
      // The name has the key; the next start may read the rest.
      const std::string reason = StrCat("unknown: ", Message(entry.status()));
      entries_.emplace(key, Entry{key, reason, UnixMilliseconds(clock_)});
    } else {
      fs::remove(path, error);
    }
  }
  DropOldest();
  return absl::OkStatus();
}

std::string Quarantine::PathOf(const Digest& key) const {
  return StrCat(dir_, "/", key.ToHex(), kEnd);
}

absl::Status Quarantine::Add(const Digest& key, std::string_view reason, std::string_view tenant) {
  MutexLock lock(&mutex_);
  const Entry entry{key, std::string(reason.substr(0, kMaxReasonBytes)), UnixMilliseconds(clock_),
                    std::string(tenant)};
  if (!entries_.emplace(key, entry).second) return absl::OkStatus();
  DropOldest();
  if (dir_.empty()) return absl::OkStatus();
  ordered_json file = {{"reason", entry.reason}, {"since_unix_ms", entry.since_unix_ms}};
  if (!entry.tenant.empty()) file["tenant"] = entry.tenant;
  RETURN_IF_ERROR(MakeDirectories(dir_));
  // What a compiler printed may be no UTF-8.
  return ReplaceFile(PathOf(key),
                     file.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::optional<Quarantine::Entry> Quarantine::Find(const Digest& key) const {
  MutexLock lock(&mutex_);
  auto it = entries_.find(key);
  if (it == entries_.end()) return std::nullopt;
  return it->second;
}

std::vector<Quarantine::Entry> Quarantine::List() const {
  MutexLock lock(&mutex_);
  std::vector<Entry> list;
  for (const auto& [key, entry] : entries_) list.push_back(entry);
  return list;
}

size_t Quarantine::size() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

bool Quarantine::Erase(const Digest& key) {
  if (entries_.erase(key) == 0) return false;
  std::error_code error;  // one that stays on disk comes back with a restart
  if (!dir_.empty()) std::filesystem::remove(PathOf(key), error);
  return true;
}

void Quarantine::DropOldest() {
  while (entries_.size() > kMaxEntries) {
    auto oldest = std::min_element(entries_.begin(), entries_.end(), [](auto& a, auto& b) {
      return a.second.since_unix_ms < b.second.since_unix_ms;
    });
    Erase(Digest(oldest->first));
  }
}

bool Quarantine::Forget(const Digest& key) {
  MutexLock lock(&mutex_);
  return Erase(key);
}

int64_t Quarantine::ForgetAll() {
  MutexLock lock(&mutex_);
  std::vector<Digest> keys;
  for (const auto& [key, entry] : entries_) keys.push_back(key);
  for (const Digest& key : keys) Erase(key);
  return static_cast<int64_t>(keys.size());
}

}  // namespace fusion
