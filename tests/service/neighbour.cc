// A caller whose plan is known: asks for it again and again, a little less often than it could, and
// says of each call when it began, how many ms it took, how often it was tried again, and what went
// wrong.
//
//   neighbour ADDRESS REQUEST      ->  "1234567890 0.41 0\n1236789012 0.39 0\n..." on stdout, until
//                                      it is killed; the clock is the monotonic one, in ns.
//                                      SIGUSR1: it makes no more calls; SIGUSR2: it goes on
#include <signal.h>
#include <sys/prctl.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/clock.h"
#include "tests/service/fusion_caller.h"

namespace {
std::atomic<bool> paused{false};
}  // namespace

int main(int argc, char** argv) {
  using std::chrono::seconds;
  if (argc != 3) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGUSR1, [](int) { paused = true; });
  signal(SIGUSR2, [](int) { paused = false; });
  std::ostringstream bytes;
  bytes << std::ifstream(argv[2], std::ios::binary).rdbuf();
  fusion::v1::PlanFusionRequest request;
  if (!request.ParseFromString(bytes.str())) return 3;
  const fusion::FusionCaller caller(argv[1]);
  for (;;) {
    const fusion::Nanoseconds begin = fusion::Clock::Real().Now();
    fusion::v1::PlanFusionResponse response;
    grpc::Status status = caller.Plan(request, &response, seconds(10));
    // As every client does, ours included: gRPC closes idle connections when memory is short.
    const bool again = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    if (again) {
      status = caller.Plan(request, &response, seconds(10));
    }
    const double ms = fusion::ToMilliseconds(fusion::Clock::Real().Now() - begin);
    std::printf("%lld %.4f %d %s\n", static_cast<long long>(begin.count()), ms, again ? 1 : 0,
                status.error_message().c_str());
    std::fflush(stdout);
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (paused);
  }
}
