#include "core/compile/runner_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/base/sanitizer.h"
#include "core/compile/process/frame_channel.h"
#include "core/compile/worker_protocol.h"

namespace fusion {
namespace {

constexpr int kAnswerFd = 3;
// The caller reads at once, or it is gone.
constexpr Nanoseconds kSendAnswerLimit = std::chrono::seconds(30);
constexpr Nanoseconds kReceiveSlice = std::chrono::seconds(60);
// First byte of what comes back.
constexpr std::string_view kAnswer = "A";
constexpr std::string_view kNotConfined = "N";
// Kernels are loaded from anonymous files, whose memory no other limit bounds. Chosen: a race loads
// two for each of its 64 runners.
constexpr rlim_t kOpenFiles = 160;

void Limit(__rlimit_resource resource, rlim_t value) {
  rlimit limit{value, value};
  rlimit now{};
  if (getrlimit(resource, &now) == 0 && now.rlim_max < value) return;
  setrlimit(resource, &limit);
}

// Leaves this process nothing but the socket.
void DropDescriptors(int socket) {
  int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  // The reports of sanitizers are worth reading.
  if (!kSanitized) {
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
  }
  dup2(socket, kAnswerFd);
  close_range(kAnswerFd + 1, ~0U, 0);
}

[[noreturn]] void BeRunner(pid_t parent, int socket, Sandbox sandbox,
                           const std::function<std::string()>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above took effect.
  if (getppid() != parent) _exit(1);
  DropDescriptors(socket);
  Limit(RLIMIT_FSIZE, kMaxWorkerMessageBytes);
  Limit(RLIMIT_NOFILE, kOpenFiles);
  FrameChannel channel{UniqueFd(kAnswerFd), kMaxWorkerMessageBytes + 1};
  absl::StatusOr<std::string> level = ConfineKernels(sandbox);
  std::string answer =
      level.ok() ? StrCat(kAnswer, body()) : StrCat(kNotConfined, Message(level.status()));
  absl::Status sent = channel.Send(answer, kSendAnswerLimit);
  // No destructors: the loaded code may have left any state.
  _exit(sent.ok() ? 0 : 1);
}

}  // namespace

absl::StatusOr<RunnerEnd> CallConfined(Sandbox sandbox, const std::function<std::string()>& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ResourceExhausted("socketpair: ", std::generic_category().message(errno));
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) return ResourceExhausted("fork: ", std::generic_category().message(errno));
  if (child == 0) BeRunner(self, theirs.get(), sandbox, body);
  theirs.Reset();
  FrameChannel channel{std::move(ours), kMaxWorkerMessageBytes + 1};
  absl::StatusOr<std::optional<std::string>> message;
  do {
    message = channel.Receive(kReceiveSlice);
  } while (message.ok() && !message->has_value());
  // It must not send more. A process that closed the socket is about to end by itself.
  if (!absl::IsUnavailable(message.status())) kill(child, SIGKILL);
  RunnerEnd end;
  waitpid(child, &end.wait_status, 0);
  if (!message.ok() || (*message)->empty()) return end;
  end.answer = (*message)->substr(1);
  if ((*message)->starts_with(kNotConfined)) return FailedPrecondition(end.answer);
  end.answered = true;
  return end;
}

}  // namespace fusion
