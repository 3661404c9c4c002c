#include "core/rewrite/integer_trail.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace fusion {

IndexMap IdentityMap(size_t rank) {
  IndexMap out;
  for (size_t d = 0; d < rank; ++d) out.push_back(IndexExpr::Axis(static_cast<int>(d)));
  return out;
}

IndexMap ComposedMap(const IndexMap& index, const IndexMap& at) {
  IndexMap out;
  for (const IndexExpr& e : index) {
    out.push_back(e.Substitute([&](int d) { return at[static_cast<size_t>(d)]; }));
  }
  return out;
}

bool IsPartMap(const IndexMap& at, const Dims& dims) {
  std::vector<int> named(dims.size(), 0);
  for (const IndexExpr& e : at) {
    if (e.indirect() >= 0 || e.terms().size() > 1) return false;
    if (e.terms().empty()) continue;
    if (e.terms()[0].coefficient != 1) return false;
    ++named[static_cast<size_t>(e.terms()[0].axis)];
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (named[d] > 1 || (named[d] == 0 && dims[d] != 1)) return false;
  }
  return true;
}

}  // namespace fusion
