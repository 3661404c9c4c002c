#include "tests/support/window_cuts.h"

#include <algorithm>

#include "core/graph/build/text.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/tiles/candidates.h"
#include "core/schedule/tiles/legal_choice.h"
#include "core/smg/slicers.h"

namespace fusion {
namespace {

// Neither divides most extents.
constexpr int64_t kTiles[] = {2, 5};

Choice Tiled(const Choice& base, const std::vector<DimId>& dims, int64_t tile, const Smg& smg) {
  Choice out = base;
  for (DimId d : dims) {
    std::erase_if(out.grid, [d](const GridDim& g) { return g.dim == d; });
    out.grid.push_back({d, std::min(tile, smg.dim(d).extent)});
  }
  return out;
}

// The same with the windows of rows gathered.
Choice Gathered(Choice choice, const Smg& smg) {
  for (auto& [op, product] : choice.products) {
    ProductDims dims = SplitProductDims(smg.op(op));
    bool rows = !(product.swap ? dims.second : dims.first).empty();
    product.stage_rows = rows && ReadsWindows(smg.op(op), smg.op(op).reads[product.swap ? 1 : 0]);
  }
  return choice;
}

}  // namespace

WholeProgram WholeOf(const WindowCase& c) {
  auto graph = ParseGraph(c.graph);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto whole = AsOneGroup(BuildProgram(*graph).value());
  FUSION_CHECK(whole.ok(), Message(whole.status()));
  return *std::move(whole);
}

std::vector<Choice> WindowTilings(const FusionGroup& group, const DeviceSpec& device) {
  std::vector<Choice> out = EnumerateChoices(group, device, {.limit = 100}, nullptr);
  if (out.empty()) return out;
  const Choice base = out[0];
  std::vector<DimId> windowed;
  for (DimId d : ParallelDims(group, /*forbid_recompute=*/false)) {
    if (SliceSpatially(group.smg, d).Slides()) windowed.push_back(d);
  }
  for (int64_t tile : kTiles) {
    for (DimId d : windowed) out.push_back(Tiled(base, {d}, tile, group.smg));
    if (windowed.size() < 2) continue;
    out.push_back(Tiled(base, windowed, tile, group.smg));
    out.push_back(Gathered(out.back(), group.smg));
  }
  return out;
}

}  // namespace fusion
