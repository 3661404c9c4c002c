#include "core/schedule/lower/lower_nest.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/ir/sum_order.h"
#include "core/schedule/lower/nest_values.h"

namespace fusion {
namespace {

// Contribution of one access to the score of a vector dim.
double Score(int64_t stride, double weight) {
  return stride == 1 ? weight : stride == 0 ? 0 : -weight;
}

// Chooses the vector dim. Contiguous accesses count for a dim, strided ones and folding against it.
DimId VectorDim(const Nest& nest, const std::vector<ElementOp>& loads,
                const std::vector<DimId>& dims, const NestContext& at) {
  auto stride = [&](const Access& a, DimId d) {
    return StrideAlong(at.lowered.schedule, a, at.windows, d);
  };
  DimId best = -1;
  double best_score = 0;
  for (DimId d : dims) {
    double score = 0;
    for (const ElementOp& e : loads) {
      for (const Access& a : e.access) score += Score(stride(a, d), 1.0);
    }
    for (int i : nest.store) {
      const SmgOp& op = at.op(i);
      score +=
          Score(stride({.buffer = at.params.outputs.at(op.output), .index = op.write}, d), 1.5);
    }
    for (int i : nest.reduce) score -= at.op(i).Reduces(d) ? 0.5 : 0;
    if (at.window(d) < at.device.vector_bytes / 8) score -= 2;
    if (best < 0 || score >= best_score) {
      best = d;
      best_score = score;
    }
  }
  return best;
}

// Dims of local buffers that are read at other coordinates than the current ones.
std::vector<DimId> MovedAlong(const std::vector<ElementOp>& steps, const NestContext& at) {
  std::vector<DimId> moved;
  for (const ElementOp& e : steps) {
    if (e.kind != ElementOp::kLoad) continue;
    const Buffer& from = at.buffer(e.access[0].buffer);
    if (!from.IsLocal()) continue;
    for (size_t d = 0; d < from.dims.size(); ++d) {
      if (e.access[0].index[d] != IndexExpr::Axis(from.dims[d])) moved.push_back(from.dims[d]);
    }
  }
  return moved;
}

// Lowers a nest of one reduction at looked-up places, without loops over the dims of the place.
// nullopt if the reduced value differs between the places of one vector.
absl::StatusOr<std::optional<NestCode>> LowerPlacedNest(const Nest& nest,
                                                        const IndexedReduction& placed,
                                                        NestContext* at) {
  NestCode out;
  std::vector<DimId> dims = nest.dims;
  std::sort(dims.begin(), dims.end());
  auto places = [&](DimId d) { return placed.at.CoefficientOf(d) != 0; };
  std::vector<DimId> walked = dims;
  std::erase_if(walked, places);
  const std::vector<BufferId> no_accumulators;
  NestValues values(nest, no_accumulators, at, &placed);
  out.vector = VectorDim(nest, values.loads(), walked, *at);
  if (out.vector < 0) return std::optional<NestCode>();
  const EachStmt computed{.dims = dims, .ops = values.loads()};
  const bool scattered = MovesAlong(computed, values.place(), out.vector);
  const bool follows =
      std::any_of(placed.at.terms().begin(), placed.at.terms().end(),
                  [&](const auto& t) { return MovesAlong(computed, values.update(), t.axis); });
  if (scattered && follows) return std::optional<NestCode>();
  std::erase(dims, out.vector);
  dims.push_back(out.vector);
  ASSIGN_OR_RETURN(std::vector<ElementOp> steps, values.Finish(dims));
  EachStmt each{.dims = dims, .ops = std::move(steps), .at = placed.at, .place = values.place()};
  out.dims = dims;
  out.moved = MovedAlong(each.ops, *at);
  out.reduced = at->op(nest.reduce[0]).reduced;
  out.placed = true;
  out.code.push_back(Stmt{std::move(each)});
  return std::optional<NestCode>(std::move(out));
}

// Sums that a fold of vectors keeps apart, in vectors.
constexpr int64_t kFoldedVectors = 4;

// Long sums of a nest are made of blocks: sums of some thousand terms, and the sum of these.
absl::Status SumInBlocks(const Nest& nest, const NestContext& at, NestCode* out) {
  const bool bitwise = at.lowered.schedule.bitwise;
  int64_t lanes = 1;
  // Bitwise results need an order that follows from the op alone.
  if (!bitwise && Contains(out->reduced, out->vector)) {
    lanes = kFoldedVectors * std::max<int64_t>(at.device.vector_bytes / 4, 1);
  }
  std::optional<SumBlocks> blocks;
  for (size_t k = 0; k < nest.reduce.size(); ++k) {
    const SmgOp& op = at.op(nest.reduce[k]);
    const std::optional<SumBlocks> own =
        bitwise && FactorTypes(op) ? std::nullopt : BlocksOfSum(op, at.windows, lanes);
    if (bitwise && k > 0 && own != blocks) {
      return RefusalStatus(RefusalCode::kRoles, op.label, " and ", at.op(nest.reduce[0]).label,
                           " share a nest but not the blocks of their sums");
    }
    if (!blocks || (own && own->tile < blocks->tile)) blocks = own;
  }
  if (!blocks) return absl::OkStatus();
  out->blocked = blocks->dim;
  out->block = blocks->tile;
  return absl::OkStatus();
}

}  // namespace

std::vector<int> LastReads(const FusionGroup& group, const NestPlan& plan,
                           const std::vector<const std::vector<Nest>*>& sections, size_t section) {
  std::vector<int> last(group.smg.ops.size(), -1);
  // Last nest that is known to read what an op reads: a value that several ops of a nest read is
  // followed once.
  std::vector<int> followed(group.smg.ops.size(), -1);
  auto computed_again = [&](int i) {
    auto p = static_cast<size_t>(i);
    return plan.classes[p] == OpClass::kPointwise && !plan.kept[p];
  };
  auto note = [&](int i, int nest) {
    int& at = last[static_cast<size_t>(i)];
    at = std::max(at, nest);
  };
  std::function<void(int, int)> reads = [&](int i, int nest) {
    if (std::exchange(followed[static_cast<size_t>(i)], nest) == nest) return;
    for (const SmgRead& read : group.smg.op(i).reads) {
      if (read.producer < 0) continue;
      note(read.producer, nest);
      if (computed_again(read.producer)) reads(read.producer, nest);
    }
  };
  auto follow = [&](const Nest& nest, int at) {
    for (const std::vector<int>* list : {&nest.products, &nest.reduce, &nest.keep, &nest.update}) {
      for (int i : *list) reads(i, at);
    }
    for (int i : nest.store) {
      note(i, at);
      if (computed_again(i)) reads(i, at);
    }
  };
  const std::vector<Nest>& nests = *sections[section];
  for (size_t n = 0; n < nests.size(); ++n) follow(nests[n], static_cast<int>(n));
  for (size_t later = section + 1; later < sections.size(); ++later) {
    for (const Nest& nest : *sections[later]) follow(nest, std::numeric_limits<int>::max());
  }
  return last;
}

absl::StatusOr<NestCode> LowerPlainNest(const Nest& nest, NestContext* at) {
  if (nest.reduce.size() == 1 && nest.keep.empty() && nest.store.empty() && nest.update.empty()) {
    const std::optional<IndexedReduction> placed =
        IndexedReductionOf(at->group.smg, at->op(nest.reduce[0]));
    if (placed) {
      ASSIGN_OR_RETURN(std::optional<NestCode> code, LowerPlacedNest(nest, *placed, at));
      if (code) return *std::move(code);
    }
  }
  NestCode out;
  std::vector<DimId> dims = nest.dims;
  std::sort(dims.begin(), dims.end());
  for (int i : nest.reduce) {
    const std::vector<DimId>& reduced = at->op(i).reduced;
    out.reduced.insert(out.reduced.end(), reduced.begin(), reduced.end());
  }
  const std::vector<BufferId> no_accumulators;
  NestValues values(nest, no_accumulators, at);
  out.vector = VectorDim(nest, values.loads(), dims, *at);
  if (out.vector >= 0) {
    std::erase(dims, out.vector);
    dims.push_back(out.vector);
  }
  ASSIGN_OR_RETURN(std::vector<ElementOp> steps, values.Finish(dims));
  out.dims = dims;
  out.moved = MovedAlong(steps, *at);
  out.code.push_back(Stmt{EachStmt{.dims = dims, .ops = std::move(steps)}});
  RETURN_IF_ERROR(SumInBlocks(nest, *at, &out));
  return out;
}

}  // namespace fusion
