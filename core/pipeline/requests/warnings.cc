#include "core/pipeline/requests/warnings.h"

#include <map>

#include "core/base/status.h"
#include "core/pipeline/kernels/isolate.h"

namespace fusion {
namespace {

void WarnSearch(const TileSearch& search, std::vector<std::string>* warnings) {
  if (search.level == 0) return;
  if (search.state == TileSearchState::kNone) {
    warnings->push_back(
        StrCat("opt_level ", search.level, ": no tiles were tried: ", search.reason));
  }
  if (search.state == TileSearchState::kCutShort) {
    warnings->push_back(
        StrCat("opt_level ", search.level,
               ": not all tiles were tried, the next request goes on: ", search.reason));
  }
}

void WarnUnfused(const Plan& plan, std::vector<std::string>* warnings) {
  const size_t unfused = UnfusedNodesOf(plan).size();
  if (unfused > 0) {
    warnings->push_back(StrCat(unfused, " nodes are not fused: a kernel that held them failed"));
  }
  for (const auto& [name, reason] : UnusedOf(plan)) warnings->push_back(reason);
}

void WarnSkipped(const Plan& plan, std::vector<std::string>* warnings) {
  for (const SkippedPass& skipped : plan.skipped_passes) {
    warnings->push_back(StrCat("the planner went without its pass ", skipped.pass,
                               ", which is a fault of ours; the plan is right and may be "
                               "slower: ",
                               skipped.reason));
  }
}

void WarnUnverified(const Plan& plan, const std::vector<KernelStatus>& kernels,
                    std::vector<std::string>* warnings) {
  std::map<std::string, int> kernels_by_reason;
  for (const KernelStatus& status : kernels) {
    if (status.state == KernelState::kReady && !status.check.verified) {
      ++kernels_by_reason[status.check.reason];
    }
  }
  for (const auto& [reason, count] : kernels_by_reason) {
    warnings->push_back(
        StrCat(count, " of ", plan.kernels.size(), " kernels unverified: ", reason));
  }
}

}  // namespace

std::vector<std::string> WarningsOf(const Plan& plan, const std::vector<KernelStatus>& kernels) {
  std::vector<std::string> warnings;
  WarnUnfused(plan, &warnings);
  WarnSkipped(plan, &warnings);
  WarnUnverified(plan, kernels, &warnings);
  WarnSearch(plan.search, &warnings);
  return warnings;
}

}  // namespace fusion
