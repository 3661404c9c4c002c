#include <signal.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/admin_client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/output/top_output.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

// Of a call: a server that does not answer is shown after this time.
constexpr Nanoseconds kTopDeadline = std::chrono::seconds(3);
// A wait for the next frame is over so soon after Ctrl-C.
constexpr Nanoseconds kTopStep = std::chrono::milliseconds(20);

std::atomic<bool> g_top_ended{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler sets it

// During its lifetime SIGINT and SIGTERM end `top` instead of the process.
class EndsBySignal {
 public:
  EndsBySignal() {
    struct sigaction ends {};
    ends.sa_handler = [](int) { g_top_ended = true; };
    sigaction(SIGINT, &ends, &interrupt_);
    sigaction(SIGTERM, &ends, &terminate_);
  }
  ~EndsBySignal() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

void WaitUntil(Nanoseconds end) {
  while (!g_top_ended && Clock::Real().Now() < end) std::this_thread::sleep_for(kTopStep);
}

// Draws frames until a signal ends it. A server that is away is shown, and asked again.
void Watch(const AdminClient& admin, Nanoseconds interval, TopView view) {
  const EndsBySignal signals;
  FrameOnTerminal frame;
  Nanoseconds answered = Clock::Real().Now();
  for (;;) {
    const Nanoseconds drawn = Clock::Real().Now();
    frame.Draw(StrCat(TopText(view), "\nCtrl-C ends this\n"));
    WaitUntil(drawn + interval);
    if (g_top_ended) return;
    absl::StatusOr<v1::GetServerStatusResponse> status = admin.GetServerStatus();
    if (status.ok()) {
      view.before = std::move(view.now);
      view.now = *std::move(status);
      view.lost.clear();
      answered = Clock::Real().Now();
    } else {
      view.lost = Message(status.status());
      view.lost_seconds = ToMilliseconds(Clock::Real().Now() - answered) / 1e3;
    }
  }
}

}  // namespace

absl::StatusOr<ExitCode> RunTop(const Arguments& arguments, Progress* progress) {
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    const AdminClient admin(client, kTopDeadline);
    TopView view{.address = client.address()};
    ASSIGN_OR_RETURN(view.now, admin.GetServerStatus());
    const bool live =
        !arguments.once && !arguments.json && progress->enabled() && StdoutColumns() > 0;
    progress->Clear();
    if (arguments.json) {
      PrintJson(TopJson(view));
    } else if (live) {
      Watch(admin, FromSeconds(arguments.interval), std::move(view));
    } else {
      Print(TopText(view));
    }
    return kExitOk;
  });
}

}  // namespace fusion
