#include "core/schedule/tiles/legal_choice.h"

#include <algorithm>
#include <array>

#include "core/base/contains.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/ir/sum_order.h"
#include "core/schedule/lower/nests.h"
#include "core/schedule/lower/product_shape.h"
#include "core/schedule/memory/block_windows.h"
#include "core/smg/slicers.h"

namespace fusion {
namespace {

absl::Status CheckTile(const Smg& smg, const Choice& choice, DimId d, int64_t tile) {
  int64_t most = std::max<int64_t>(1, choice.MostOf(smg, d));
  if (tile >= 1 && tile <= most) return absl::OkStatus();
  return InvalidArgument("tile ", tile, " of dim ", smg.dim(d).name, "; expected 1..", most);
}

bool IsDim(const Smg& smg, DimId d) { return d >= 0 && static_cast<size_t>(d) < smg.dims.size(); }

absl::Status CheckGrid(const FusionGroup& group, const Choice& choice) {
  std::vector<DimId> seen;
  for (const GridDim& g : choice.grid) {
    if (!IsDim(group.smg, g.dim)) return InvalidArgument("grid: no dim ", g.dim);
    const std::string& name = group.smg.dim(g.dim).name;
    std::string why = WhyNotParallel(group, g.dim, /*forbid_recompute=*/false);
    if (!why.empty()) {
      return InvalidArgument("grid: dim ", name, " cannot be cut into parallel blocks: ", why);
    }
    if (Contains(seen, g.dim)) return InvalidArgument("grid: dim ", name, " twice");
    seen.push_back(g.dim);
    absl::Status tile = CheckTile(group.smg, choice, g.dim, g.tile);
    if (!tile.ok()) return Annotate(tile, "grid");
  }
  return absl::OkStatus();
}

// Code is written for every length that windows have.
absl::Status CheckWindows(const FusionGroup& group, const Choice& choice) {
  absl::StatusOr<std::vector<Halo>> halos = HalosOfChoice(group.smg, choice);
  if (!halos.ok()) return InvalidArgument("grid: ", Message(halos.status()));
  std::vector<ScheduleDim> dims;
  for (const SmgDim& d : group.smg.dims) dims.push_back({d.name, d.extent});
  std::optional<DimId> many = HaloOfManyLengths(dims, choice.grid, *halos);
  if (!many.has_value()) return absl::OkStatus();
  return InvalidArgument("grid: blocks reach windows of dim ", group.smg.dim(*many).name,
                         " that have more than ", kMostWindowLengths,
                         " lengths; expected longer tiles");
}

absl::Status CheckStreamed(const FusionGroup& group, const Choice& choice, bool bitwise) {
  const Smg& smg = group.smg;
  DimId d = choice.temporal;
  if (d < 0) return absl::OkStatus();
  FUSION_CHECK(IsDim(smg, d) && choice.streamed != nullptr && choice.streamed->dim == d,
               "a streamed choice has the form in which its dim is streamed");
  const std::string& name = smg.dim(d).name;
  bool reduced =
      std::any_of(smg.ops.begin(), smg.ops.end(), [d](const SmgOp& op) { return op.Reduces(d); });
  if (!reduced) return InvalidArgument("streamed: no op reduces dim ", name);
  absl::Status tile = CheckTile(smg, choice, d, choice.temporal_tile);
  if (!tile.ok()) return Annotate(tile, "streamed");
  if (!bitwise) return absl::OkStatus();
  bool sliced = choice.temporal_tile < choice.MostOf(smg, d);
  if (choice.streamed->rewritten || (sliced && !SlicesKeepOrder(smg, d))) {
    return InvalidArgument("streamed: slices of dim ", name, " change the order of a sum; ",
                           "bitwise numerics forbid it");
  }
  return absl::OkStatus();
}

absl::Status CheckProduct(const FusionGroup& group, int op, const ProductChoice& product,
                          const DeviceSpec& device) {
  const std::vector<RegisterBlock>& blocks =
      device.BlocksOf(RateType(group, op, product.swap, device));
  bool known = std::any_of(blocks.begin(), blocks.end(), [&](const auto& b) {
    return b.m == product.block.m && b.n == product.block.n;
  });
  if (!known) {
    return InvalidArgument("products: op ", op, ": ", device.name, " has no block of ",
                           product.block.m, " rows of ", product.block.n);
  }
  if (!Contains(OperandRoles(group, op), product.swap)) {
    return InvalidArgument("products: op ", op, ": swap ", product.swap ? "true" : "false",
                           " gives the columns to an operand that cannot have them");
  }
  const SmgOp& product_op = group.smg.op(op);
  const SmgRead& rows = product_op.reads[product.swap ? 1 : 0];
  ProductDims dims = SplitProductDims(product_op);
  bool has_rows = !(product.swap ? dims.second : dims.first).empty();
  bool lie_on_chip = rows.producer >= 0 && !ReadsWindows(product_op, rows);
  if (product.stage_rows && (lie_on_chip || !has_rows)) {
    return InvalidArgument("products: op ", op, ": stage_rows, but its rows lie on chip already");
  }
  return absl::OkStatus();
}

// Every product of the group has its entry, unless streaming has no use for it.
absl::Status CheckProducts(const FusionGroup& group, const Choice& choice,
                           const DeviceSpec& device) {
  const FusionGroup& lowered = choice.streamed == nullptr ? group : choice.streamed->group;
  auto source = [&](int op) {
    return choice.streamed == nullptr ? op : choice.streamed->ops[static_cast<size_t>(op)].source;
  };
  auto count = static_cast<int>(lowered.smg.ops.size());
  auto original = static_cast<int>(group.smg.ops.size());
  for (const auto& [op, product] : choice.products) {
    int of = op >= 0 && op < count ? source(op) : -1;
    if (of < 0 || of >= original || Classify(group, of) != OpClass::kProduct) {
      return InvalidArgument("products: op ", op, " is no matrix product");
    }
    RETURN_IF_ERROR(CheckProduct(group, of, product, device));
  }
  for (int op = 0; op < count; ++op) {
    int of = source(op);
    if (of < 0 || of >= original || Classify(group, of) != OpClass::kProduct) continue;
    if (!choice.products.contains(op)) {
      return InvalidArgument("products: op ", of, " ", group.smg.op(of).label, " has no entry");
    }
  }
  return absl::OkStatus();
}

// Products of one nest run in the same register blocks.
absl::Status CheckNests(const FusionGroup& group, const Choice& choice) {
  const StreamedGroup* streamed = choice.streamed.get();
  absl::StatusOr<NestPlan> plan =
      PlanNests(streamed == nullptr ? group : streamed->group, streamed);
  if (!plan.ok()) return InvalidArgument(Message(plan.status()));
  for (const std::vector<Nest>* section : {&plan->before, &plan->inside, &plan->after}) {
    for (const Nest& nest : *section) {
      for (int op : nest.products) {
        auto first = choice.products.find(nest.products.front());
        auto here = choice.products.find(op);
        if (first == choice.products.end() || here == choice.products.end()) continue;
        const RegisterBlock& a = first->second.block;
        const RegisterBlock& b = here->second.block;
        if (a.m == b.m && a.n == b.n) continue;
        return InvalidArgument("products: ops ", first->first, " and ", op,
                               " share a loop nest, so they need equal blocks");
      }
    }
  }
  return absl::OkStatus();
}

// True if neighbours along one of `dims` lie next to each other where a read looks: in its param,
// or in the buffer of a value of the group, which has the dims of the value.
bool IsContiguousAlong(const FusionGroup& group, const SmgRead& read,
                       const std::vector<DimId>& dims) {
  if (read.index.empty()) return false;
  if (read.producer < 0) {
    const Dims& strides = group.view(read.value).strides;
    return std::any_of(dims.begin(), dims.end(),
                       [&](DimId d) { return StrideAlong(read.index, strides, d) == 1; });
  }
  return std::any_of(dims.begin(), dims.end(),
                     [&](DimId d) { return read.index.back().CoefficientOf(d) == 1; });
}

}  // namespace

std::string WhyNotParallel(const FusionGroup& group, DimId dim, bool forbid_recompute) {
  const Smg& smg = group.smg;
  auto name = [&](int i) { return StrCat("op ", i, " ", smg.op(i).label); };
  SpatialVerdict verdict = SliceSpatially(smg, dim);
  if (!verdict.sliceable) return verdict.reason;
  for (ValueId v : group.outputs) {
    int writer = group.Writer(v);
    if (!smg.op(writer).Has(dim)) return StrCat("not in what ", name(writer), " returns");
  }
  for (int i : verdict.recomputed) {
    if (!forbid_recompute && !smg.op(i).reduce) continue;
    return StrCat("every block would compute the whole of ", name(i));
  }
  if (!forbid_recompute || !verdict.Overlaps()) return "";
  return "neighbouring blocks would compute the same elements";
}

std::vector<DimId> ParallelDims(const FusionGroup& group, bool forbid_recompute) {
  std::vector<DimId> parallel;
  for (DimId d = 0; d < static_cast<DimId>(group.smg.dims.size()); ++d) {
    if (WhyNotParallel(group, d, forbid_recompute).empty()) parallel.push_back(d);
  }
  return parallel;
}

std::vector<bool> OperandRoles(const FusionGroup& group, int op) {
  const SmgOp& product = group.smg.op(op);
  ProductDims dims = SplitProductDims(product);
  auto constant = [&](int r) {
    const SmgRead& read = product.reads[static_cast<size_t>(r)];
    return read.producer < 0 && group.view(read.value).constant;
  };
  if (dims.second.empty()) return {true};
  if (dims.first.empty()) return {false};
  // Narrow elements are columns, beside rows of their type or of the sum's.
  const std::array<DType, 2> types = *FactorTypes(product);
  if (!ColumnPack(types[1], types[0])) return {false};
  if (!ColumnPack(types[0], types[1])) return {true};
  if (constant(1) && !IsContiguousAlong(group, product.reads[0], dims.first)) return {false};
  if (constant(0) && !IsContiguousAlong(group, product.reads[1], dims.second)) return {true};
  if (constant(0) && !constant(1)) return {true, false};
  return {false, true};
}

bool SlicesKeepOrder(const Smg& smg, DimId d) {
  Dims extents;
  for (const SmgDim& dim : smg.dims) extents.push_back(dim.extent);
  return std::all_of(smg.ops.begin(), smg.ops.end(), [&](const SmgOp& op) {
    // Slices are not the blocks of a long sum.
    if (op.Reduces(d) && !FactorTypes(op) && BlocksOfSum(op, extents, 1)) return false;
    auto first = std::find_if(op.dims.begin(), op.dims.end(),
                              [&](DimId other) { return op.Reduces(other); });
    return !op.Reduces(d) || *first == d;
  });
}

absl::Status CheckChoice(const FusionGroup& group, const Choice& choice, const DeviceSpec& device,
                         bool bitwise) {
  RETURN_IF_ERROR(CheckGrid(group, choice));
  RETURN_IF_ERROR(CheckWindows(group, choice));
  RETURN_IF_ERROR(CheckStreamed(group, choice, bitwise));
  for (const GridDim& g : choice.grid) {
    if (g.dim != choice.temporal) continue;
    return InvalidArgument("streamed: dim ", group.smg.dim(g.dim).name, " is in the grid too");
  }
  RETURN_IF_ERROR(CheckProducts(group, choice, device));
  return CheckNests(group, choice);
}

}  // namespace fusion
