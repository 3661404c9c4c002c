#include "core/cache/rocks/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/base/files/file.h"

namespace fusion {

absl::StatusOr<StoreLock> LockStore(const std::string& dir) {
  RETURN_IF_ERROR(MakeDirectories(dir));
  const std::string path = dir + ".lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    const std::string why =
        StrCat("opening ", Quote(path), ": ", std::generic_category().message(errno));
    return errno == ENOSPC || errno == EDQUOT ? ResourceExhausted(why) : Unavailable(why);
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    ssize_t n = read(fd.get(), holder, sizeof(holder) - 1);
    return FailedPrecondition("store ", Quote(dir), " is open already",
                              n > 0 ? StrCat(" in process ", StripSpace(holder)) : std::string(),
                              "; one process at a time can use it");
  }
  std::string pid = StrCat(getpid(), "\n");
  // The process id is only for the message above. Failures to write it are ignored.
  if (ftruncate(fd.get(), 0) == 0) (void)!write(fd.get(), pid.data(), pid.size());
  return std::make_shared<const UniqueFd>(std::move(fd));
}

}  // namespace fusion
