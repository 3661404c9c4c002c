#include "core/compile/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "core/base/files/file.h"

namespace fusion {
namespace {

// Reads what `fd` (non-blocking) holds now, at most 256 KB; false at its end. Bounded, so that a
// fast writer does not delay the checks of limits; more than a pipe holds (64 KB), so that nothing
// of an ended command is lost.
bool Drain(int fd, int64_t log_bytes, CommandResult* result, int64_t* total) {
  std::array<char, 16 << 10> buffer;
  for (int reads = 0; reads < 16; ++reads) {
    ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    *total += n;
    auto room = log_bytes - static_cast<int64_t>(result->output.size());
    auto kept = std::clamp<int64_t>(room, 0, n);
    result->output.append(buffer.data(), static_cast<size_t>(kept));
    result->truncated |= kept < n;
  }
  return true;
}

class ProcessRunner final : public CommandRunner {
 public:
  explicit ProcessRunner(std::string exec_path) : exec_path_(std::move(exec_path)) {}

  absl::StatusOr<CommandResult> Run(const Command& command) override {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return FailedPrecondition("pipe: ", std::generic_category().message(errno));
    }
    UniqueFd output(ends[0]);
    UniqueFd input(ends[1]);
    fcntl(output.get(), F_SETFL, O_NONBLOCK);
    Nanoseconds start = Clock::Real().Now();
    ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Spawn({.exec_path = exec_path_,
                                                              .argv = command.argv,
                                                              .dir = command.dir,
                                                              .environment = command.environment,
                                                              .limits = command.limits,
                                                              .orphan = Orphan::kDiesWithGroup,
                                                              .output_fd = input.get()}));
    input.Reset();
    CommandResult result = Watch(command, start, output.get(), &child);
    result.took = Clock::Real().Now() - start;
    return result;
  }

 private:
  static CommandResult Watch(const Command& command, Nanoseconds start, int output,
                             ChildProcess* child) {
    CommandResult result;
    int64_t total = 0;
    bool open = true;
    for (;;) {
      Nanoseconds left = start + command.wall_limit - Clock::Real().Now();
      std::array<pollfd, 2> events = {pollfd{child->pidfd(), POLLIN, 0},
                                      pollfd{open ? output : -1, POLLIN, 0}};
      auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      poll(events.data(), events.size(), static_cast<int>(std::max<int64_t>(ms, 0)));
      bool ended = events[0].revents != 0;
      if (open) open = Drain(output, command.log_bytes, &result, &total);
      if (total > command.output_bytes) {
        result.end = CommandEnd::kFlooded;
        result.how = StrCat("killed after ", total, " bytes of output; at most ",
                            command.output_bytes, " are allowed");
        return result;
      }
      if (ended) break;
      if (left.count() <= 0) {
        result.end = CommandEnd::kTimedOut;
        result.how = StrCat("killed after ", ToMilliseconds(command.wall_limit) / 1000, " s");
        return result;
      }
    }
    int status = child->WaitFor(Nanoseconds(0)).value_or(-1);
    result.end = WIFSIGNALED(status) ? CommandEnd::kSignalled : CommandEnd::kExited;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.how = DescribeWaitStatus(status);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
      result.end = CommandEnd::kTimedOut;
      result.how = StrCat("killed after ", command.limits.cpu_seconds, " s of CPU time");
    }
    return result;
  }

  const std::string exec_path_;
};

}  // namespace

std::unique_ptr<CommandRunner> MakeProcessRunner(const std::string& exec_path) {
  return std::make_unique<ProcessRunner>(AbsolutePath(exec_path));
}

}  // namespace fusion
