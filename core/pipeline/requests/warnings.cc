#include "core/pipeline/requests/warnings.h"

#include <algorithm>
#include <map>

#include "core/base/status.h"
#include "core/learn/measured_groups.h"
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
  const UnfusedNodes unfused = UnfusedNodesOf(plan);
  const int64_t slower = std::count_if(unfused.begin(), unfused.end(), [](const auto& entry) {
    return entry.second.starts_with(kMeasuredSlower);
  });
  const int64_t failed = static_cast<int64_t>(unfused.size()) - slower;
  if (failed > 0) {
    warnings->push_back(StrCat(failed, " nodes are not fused: a kernel that held them failed"));
  }
  if (slower > 0) {
    warnings->push_back(
        StrCat(slower, " nodes are not fused: the kernel was measured slower than its parts"));
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
