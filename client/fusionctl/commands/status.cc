#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

constexpr int kProbes = 21;
constexpr Nanoseconds kTimeout = std::chrono::seconds(5);

}  // namespace

absl::StatusOr<ExitCode> RunStatus(const Arguments& arguments, Progress* progress) {
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    std::vector<double> round_trips_us;
    for (int i = 0; i < kProbes; ++i) {
      Nanoseconds begin = Clock::Real().Now();
      RETURN_IF_ERROR(client.CheckHealth(kTimeout));
      round_trips_us.push_back(ToMicroseconds(Clock::Real().Now() - begin));
    }
    progress->Clear();
    std::sort(round_trips_us.begin(), round_trips_us.end());
    double median_us = round_trips_us[kProbes / 2];
    if (arguments.json) {
      PrintJson(
          Json{{"address", client.address()}, {"serving", true}, {"round_trip_us", median_us}});
    } else {
      Print(StrCat("fusiond at ", client.address(), " serves, round trip ",
                   HumanMicroseconds(median_us), " (median of ", kProbes, ")\n"));
    }
    return kExitOk;
  });
}

}  // namespace fusion
