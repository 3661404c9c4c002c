#include "core/compile/sandbox/sandbox_landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/base/files/unique_fd.h"

namespace fusion {
namespace {

// What Debian 12's header, of version 2, does not name yet.
constexpr uint64_t kTruncate = uint64_t{1} << 14;  // version 3
constexpr uint64_t kIoctlDev = uint64_t{1} << 15;  // version 5
constexpr uint64_t kTcp = 3;                       // bind and connect: version 4
constexpr uint64_t kScopes = 3;                    // abstract sockets and signals: version 6
struct RulesetAttributes {
  uint64_t handled_files = 0;
  uint64_t handled_network = 0;
  uint64_t scoped = 0;
};

constexpr uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
// Of those above, and of writing, what a file can have that is no directory.
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                              LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctlDev;

// All that a kernel of this version can refuse.
RulesetAttributes AllOf(int64_t version) {
  RulesetAttributes all;
  all.handled_files = LANDLOCK_ACCESS_FS_REFER - 1;  // the 13 of version 1
  if (version >= 2) all.handled_files |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) all.handled_files |= kTruncate;
  if (version >= 4) all.handled_network = kTcp;
  if (version >= 5) all.handled_files |= kIoctlDev;
  if (version >= 6) all.scoped = kScopes;
  return all;
}

// Kernels refuse attributes that are longer than those they know.
size_t AttributeBytes(int64_t version) {
  if (version >= 6) return sizeof(RulesetAttributes);
  return sizeof(uint64_t) * (version >= 4 ? 2 : 1);
}

std::string Reason() { return std::generic_category().message(errno); }

absl::Status Allow(int ruleset, const std::string& path, uint64_t access) {
  UniqueFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat facts {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) return absl::OkStatus();
  if (!S_ISDIR(facts.st_mode)) access &= kOfFiles;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = file.get();
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) {
    return absl::OkStatus();
  }
  return FailedPrecondition("landlock: no rule for ", Quote(path), ": ", Reason());
}

}  // namespace

absl::StatusOr<std::string> EnterLandlock(const LandlockRules& rules) {
  const int64_t version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return FailedPrecondition("landlock: this kernel has none: ", Reason());
  const RulesetAttributes all = AllOf(version);
  UniqueFd ruleset(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &all, AttributeBytes(version), 0)));
  if (!ruleset.valid()) return FailedPrecondition("landlock: no ruleset: ", Reason());
  for (const std::string& path : rules.readable) {
    RETURN_IF_ERROR(Allow(ruleset.get(), path, kRead));
  }
  for (const std::string& path : rules.writable) {
    RETURN_IF_ERROR(Allow(ruleset.get(), path, all.handled_files));
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return FailedPrecondition("landlock: ", Reason());
  }
  return StrCat("landlock-", version);
}

}  // namespace fusion
