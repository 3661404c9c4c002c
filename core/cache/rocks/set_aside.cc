#include "core/cache/rocks/set_aside.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/files/file.h"
#include "core/cache/rocks/disk_entries.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSetAsideMark = ".corrupt-";

std::vector<std::string> DatabasesAside(const std::string& dir) {
  const fs::path database(dir);
  const std::string prefix = StrCat(database.filename().string(), kSetAsideMark);
  std::vector<std::string> aside;
  std::error_code error;
  for (fs::directory_iterator it(database.has_parent_path() ? database.parent_path() : ".", error),
       end;
       !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) aside.push_back(it->path());
  }
  return aside;
}

// An unused name.
std::string FreeName(const std::string& dir, const Clock& clock) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock.UnixTime()).count();
  std::string name = StrCat(dir, kSetAsideMark, seconds);
  if (!fs::exists(name)) return name;
  int i = 1;
  while (fs::exists(StrCat(name, "-", i))) ++i;
  return StrCat(name, "-", i);
}

}  // namespace

absl::StatusOr<std::string> SetAside(const std::string& dir, std::string_view reason,
                                     Logger& logger, const Clock& clock) {
  const std::vector<std::string> older = DatabasesAside(dir);
  const std::string aside = FreeName(dir, clock);
  std::error_code error;
  fs::rename(dir, aside, error);
  if (error) {
    const std::string why = StrCat("store ", Quote(dir), " is damaged (", reason,
                                   ") and cannot be renamed: ", error.message());
    return error == std::errc::no_space_on_device ? ResourceExhausted(why) : Unavailable(why);
  }
  logger.Error("store_set_aside",
               {{"dir", dir}, {"renamed_to", aside}, {"reason", reason}, {"now", "empty store"}});
  for (const std::string& path : older) {
    absl::Status removed = RemoveTree(path);
    logger.Warning("store_set_aside_removed", {{"dir", path}, {"status", removed.ToString()}});
  }
  return aside;
}

int64_t SetAsideBytes(const std::string& dir) {
  int64_t bytes = 0;
  for (const std::string& path : DatabasesAside(dir)) bytes += DiskBytes(path);
  return bytes;
}

}  // namespace fusion
