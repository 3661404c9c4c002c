#include "core/base/files/trusted_path.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <vector>

#include "core/base/files/file.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

// The limit of Linux.
constexpr int kMostLinks = 40;

// Maximum number of users that are examined.
constexpr int kMostUsers = 1 << 16;
constexpr size_t kEntryBytes = 64 << 10;
constexpr int64_t kMostConfigBytes = 1 << 20;

// True if /etc/passwd lists all users that matter: the sources in nsswitch.conf are files, or
// systemd, whose users have their own groups. Directories like LDAP give no list, or only after
// minutes.
bool CanListUsers() {
  constexpr const char* kSources = "/etc/nsswitch.conf";
  absl::StatusOr<std::string> text = ReadFile(kSources, kMostConfigBytes);
  if (!text.ok()) return absl::IsNotFound(text.status());  // then it is files
  for (std::string_view line : StrSplit(*text, '\n')) {
    line = StripSpace(line.substr(0, line.find('#')));
    if (!line.starts_with("passwd:")) continue;
    std::istringstream sources{std::string(line.substr(line.find(':') + 1))};
    for (std::string source; sources >> source;) {
      if (source != "files" && source != "systemd") return false;
    }
  }
  return true;
}

// Whether `group` may be the primary group of another user than `owner`. Such users are not among
// the members that the group lists.
bool MayBeGroupOfAnother(uid_t owner, gid_t group) {
  if (!CanListUsers()) return true;
  const std::unique_ptr<FILE, int (*)(FILE*)> users(std::fopen("/etc/passwd", "re"), std::fclose);
  if (users == nullptr) return true;
  std::vector<char> room(kEntryBytes);
  passwd entry{};
  passwd* user = nullptr;
  bool found = false;
  int seen = 0;
  int error = 0;
  while (!found &&
         (error = fgetpwent_r(users.get(), &entry, room.data(), room.size(), &user)) == 0) {
    found = ++seen > kMostUsers || (user->pw_gid == group && user->pw_uid != owner);
  }
  return found || error != ENOENT;  // ENOENT: that was the last one
}

// Whether a group is the private one that many systems give each user: it has the user's name and
// no other member. False if that cannot be told.
bool IsPrivateGroup(uid_t owner, gid_t group) {
  // A group of more members than fit is none.
  std::vector<char> user_room(kEntryBytes), group_room(kEntryBytes);
  passwd user_entry{};
  ::group group_entry{};
  passwd* user = nullptr;
  ::group* found = nullptr;
  getpwuid_r(owner, &user_entry, user_room.data(), user_room.size(), &user);
  getgrgid_r(group, &group_entry, group_room.data(), group_room.size(), &found);
  if (user == nullptr || found == nullptr || user->pw_gid != group) return false;
  const std::string_view name = user->pw_name;
  if (name != found->gr_name) return false;
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (name != *member) return false;
  }
  return !MayBeGroupOfAnother(owner, group);
}

// `above`: `path` is a parent directory of the checked path.
absl::Status CheckEntry(const std::string& path, const struct stat& facts, bool above) {
  if (facts.st_uid != 0 && facts.st_uid != geteuid()) {
    return FailedPrecondition(Quote(path), " belongs to user ", facts.st_uid,
                              "; expected root or this process's user ", geteuid());
  }
  // A link has no rights of its own.
  if (S_ISLNK(facts.st_mode)) return absl::OkStatus();
  const mode_t others = facts.st_mode & (S_IWGRP | S_IWOTH);
  if (others == 0) return absl::OkStatus();
  const bool nobodys = (facts.st_mode & S_ISVTX) != 0 ||
                       (others == S_IWGRP && IsPrivateGroup(facts.st_uid, facts.st_gid));
  if (above && nobodys) return absl::OkStatus();
  return FailedPrecondition(
      Quote(path), " can be written by ", (others & S_IWOTH) != 0 ? "everybody" : "its group",
      " (mode ", ModeText(facts.st_mode), "); expected that only its owner can (chmod go-w)");
}

absl::Status Missing(const std::string& path, int error) {
  const std::string why = std::generic_category().message(error);
  if (error == ENOENT) return NotFound(Quote(path), ": ", why);
  return FailedPrecondition(Quote(path), ": ", why);
}

absl::StatusOr<struct stat> Look(const std::string& path) {
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return Missing(path, errno);
  return facts;
}

std::deque<std::string> PartsOf(const fs::path& path) {
  std::deque<std::string> parts;
  for (const fs::path& part : path) {
    if (!part.empty() && part != "/" && part != ".") parts.push_back(part.string());
  }
  return parts;
}

// Checks every part of `path`, following links. `place`: all parts except the last.
absl::Status Walk(const std::string& path, bool place) {
  std::deque<std::string> parts = PartsOf(AbsolutePath(path));
  fs::path at = "/";  // free of links, and a directory while parts are left
  int links = 0;
  for (;;) {
    ASSIGN_OR_RETURN(const struct stat facts, Look(at.string()));
    RETURN_IF_ERROR(CheckEntry(at.string(), facts, /*above=*/!parts.empty()));
    if (parts.empty() || (place && parts.size() == 1)) return absl::OkStatus();
    const std::string part = std::move(parts.front());
    parts.pop_front();
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path next = at / part;
    ASSIGN_OR_RETURN(const struct stat entry, Look(next.string()));
    if (!S_ISLNK(entry.st_mode)) {
      at = next;
      continue;
    }
    RETURN_IF_ERROR(CheckEntry(next.string(), entry, /*above=*/true));
    std::error_code error;
    const fs::path target = fs::read_symlink(next, error);
    if (error) return Missing(next.string(), error.value());
    if (++links > kMostLinks) return Missing(path, ELOOP);
    std::deque<std::string> more = PartsOf(target);
    parts.insert(parts.begin(), more.begin(), more.end());
    if (target.is_absolute()) at = "/";
  }
}

}  // namespace

std::string ModeText(mode_t mode) {
  std::string digits;
  for (int shift = 9; shift >= 0; shift -= 3) {
    digits += static_cast<char>('0' + ((mode >> shift) & 7U));
  }
  return digits;
}

absl::Status CheckTrustedPath(const std::string& path) { return Walk(path, /*place=*/false); }
absl::Status CheckTrustedPlace(const std::string& path) { return Walk(path, /*place=*/true); }

absl::Status CheckTrustedTree(const std::string& path) {
  RETURN_IF_ERROR(CheckTrustedPath(path));
  std::error_code error;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error);
  // If `path` is no directory, its user reports that.
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    const absl::StatusOr<struct stat> facts = Look(it->path().string());
    if (absl::IsNotFound(facts.status())) continue;  // gone meanwhile
    RETURN_IF_ERROR(facts.status());
    RETURN_IF_ERROR(CheckEntry(it->path().string(), *facts, /*above=*/false));
  }
  return absl::OkStatus();
}

}  // namespace fusion
