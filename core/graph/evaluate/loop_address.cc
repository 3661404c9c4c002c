#include "core/graph/evaluate/loop_address.h"

#include <algorithm>

namespace fusion {

LoopAddress MakeAddress(const IndexMap& map, const Box& box, size_t axes) {
  LoopAddress a;
  a.step.assign(axes, 0);
  int64_t stride = 1;
  Dims extents = box.Extents();
  for (size_t d = map.size(); d-- > 0;) {
    const IndexExpr& e = map[d];
    if (e.indirect() >= 0) {
      a.indirect.push_back({e.indirect(), stride, box.begin[d], extents[d], box.end[d]});
    } else {
      a.base += (e.constant() - box.begin[d]) * stride;
      for (const IndexExpr::Term& t : e.terms()) {
        a.step[static_cast<size_t>(t.axis)] += t.coefficient * stride;
      }
    }
    stride *= std::max<int64_t>(extents[d], 1);
  }
  return a;
}

}  // namespace fusion
