#include "core/plan/assemble/cached_shares.h"

#include <algorithm>
#include <deque>
#include <tuple>

namespace fusion {
namespace {

using Place = std::tuple<Space, int, int64_t>;  // where a tensor begins

Place PlaceOf(const PlanTensor& tensor) {
  const bool arena = tensor.space == Space::kArena || tensor.space == Space::kPrepared;
  return {tensor.space, arena ? 0 : tensor.index, tensor.offset};
}

double BytesOf(const PlanTensor& tensor) {
  if (tensor.bytes > 0) return static_cast<double>(tensor.bytes);
  auto bytes = static_cast<double>(DTypeBytes(tensor.dtype));
  for (int64_t dim : tensor.dims) bytes *= static_cast<double>(dim);
  return bytes;
}

// What was touched, the latest last.
class Touched {
 public:
  explicit Touched(int64_t cache_bytes) : cache_bytes_(static_cast<double>(cache_bytes)) {}

  // The part of the tensor that is held.
  double Touch(const Place& place, double bytes) {
    double since = 0;
    double held = 0;
    for (auto entry = stack_.rbegin(); entry != stack_.rend(); ++entry) {
      if (since >= cache_bytes_) {  // this and what is older is not held any more
        stack_.erase(stack_.begin(), entry.base());
        break;
      }
      if (entry->first != place) {
        since += entry->second;
        continue;
      }
      held = std::clamp((cache_bytes_ - since) / std::max(bytes, 1.0), 0.0, 1.0);
      held *= std::min(1.0, entry->second / std::max(bytes, 1.0));
      stack_.erase(std::next(entry).base());
      break;
    }
    stack_.emplace_back(place, bytes);
    if (stack_.size() > kMostHeldTensors) stack_.pop_front();
    return held;
  }

 private:
  double cache_bytes_;
  std::deque<std::pair<Place, double>> stack_;
};

}  // namespace

std::vector<double> CachedShares(const Plan& plan, int64_t bytes) {
  std::vector<double> out(plan.launches.size(), 0);
  if (!plan.loops.empty() || !plan.symbols.empty()) return out;
  Touched touched(bytes);
  for (const bool counts : {false, true}) {  // what a run leaves, the next one finds
    for (size_t l = 0; l < plan.launches.size(); ++l) {
      double all = 0;
      double held = 0;
      for (const int t : plan.launches[l].tensors) {
        const PlanTensor& tensor = plan.tensors[static_cast<size_t>(t)];
        const double of_tensor = BytesOf(tensor);
        all += of_tensor;
        held += touched.Touch(PlaceOf(tensor), of_tensor) * of_tensor;
      }
      if (counts) out[l] = all > 0 ? held / all : 0;
    }
  }
  return out;
}

}  // namespace fusion
