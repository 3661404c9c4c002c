#include "core/bundle/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/bundle/plan_loops.h"
#include "core/bundle/plan_variants.h"

namespace fusion {
namespace {

// Bytes that a tensor spans, from its first element to the end of its last. Rejects negative
// strides.
absl::StatusOr<int64_t> Span(const PlanTensor& t) {
  if (t.strides.size() != t.dims.size()) {
    return InvalidArgument(t.strides.size(), " strides for rank ", t.dims.size());
  }
  RETURN_IF_ERROR(CheckedNumElements(t.dims, DTypeBytes(t.dtype)).status());
  int64_t last = 0;
  for (size_t d = 0; d < t.dims.size(); ++d) {
    if (t.dims[d] == 0) return int64_t{0};
    if (t.strides[d] < 0 || (t.dims[d] > 1 && t.strides[d] > kMaxSpaceBytes / t.dims[d])) {
      return InvalidArgument("stride ", t.strides[d], " of dim ", d);
    }
    if (t.dims[d] > 1) last += (t.dims[d] - 1) * t.strides[d];
    if (last >= kMaxSpaceBytes / DTypeBytes(t.dtype)) {
      return InvalidArgument("elements ", last, " apart, expected at most ", kMaxSpaceBytes,
                             " bytes");
    }
  }
  return (last + 1) * DTypeBytes(t.dtype);
}

bool IsBound(const Plan& plan, bool output, int position) {
  return std::any_of(
      plan.bound_strides.begin(), plan.bound_strides.end(),
      [&](const BoundStrides& b) { return b.output == output && b.position == position; });
}

absl::Status CheckTensor(const Plan& plan, const PlanTensor& t) {
  ASSIGN_OR_RETURN(int64_t span, Span(t));
  if (t.bytes < span) return InvalidArgument(t.bytes, " bytes declared, ", span, " needed");
  if (t.bytes > kMaxSpaceBytes) {
    return InvalidArgument(t.bytes, " bytes declared, expected at most ", kMaxSpaceBytes);
  }
  auto in = [&](size_t count) { return t.index >= 0 && static_cast<size_t>(t.index) < count; };
  // The caller's memory has the size of the plan tensor that `list` names for the position, also
  // for other plan tensors in it. Shared buffers have the size that `capacity` gives.
  auto bound = [&](const std::vector<int>& list, int SharedBuffer::*position) {
    if (!in(list.size())) return false;
    int id = list[static_cast<size_t>(t.index)];
    if (id < 0 || static_cast<size_t>(id) >= plan.tensors.size()) return false;
    const PlanTensor& given = plan.tensors[static_cast<size_t>(id)];
    Dims dims = given.dims;
    bool in_buffer = false;
    for (const SharedBuffer& shared : plan.shared_buffers) {
      if (position == nullptr || shared.*position != t.index) continue;
      dims = WithCapacity(shared, std::move(dims));
      in_buffer = position == &SharedBuffer::output;
    }
    auto elements = CheckedNumElements(dims, DTypeBytes(given.dtype));
    if (!elements.ok()) return false;
    const bool strided =
        position != nullptr && IsBound(plan, position == &SharedBuffer::output, t.index);
    const int64_t bytes = strided ? Span(given).value_or(0) : *elements * DTypeBytes(given.dtype);
    if (position != &SharedBuffer::output) return span <= bytes;
    const bool placed = t.offset == 0 || (in_buffer && t.offset > 0);
    return placed && t.offset % DTypeBytes(t.dtype) == 0 && span <= bytes - t.offset;
  };
  bool ok = true;
  switch (t.space) {
    case Space::kInput:
      ok = bound(plan.inputs, &SharedBuffer::input);
      break;
    case Space::kOutput:
      ok = bound(plan.outputs, &SharedBuffer::output);
      break;
    case Space::kWeight:
      ok = bound(plan.weights, nullptr);
      break;
    case Space::kConstant:
      ok = in(plan.constants.size()) &&
           plan.constants[static_cast<size_t>(t.index)]->byte_size() >= span;
      break;
    case Space::kPrepared:
      ok = t.offset >= 0 && t.offset <= plan.prepared_bytes &&
           t.bytes <= plan.prepared_bytes - t.offset;
      break;
    case Space::kArena:
      ok = t.offset >= 0 && t.offset <= plan.arena_bytes && t.bytes <= plan.arena_bytes - t.offset;
      break;
    case Space::kPass:
      ok = t.index >= 0;  // the rest is for CheckLoops
      break;
  }
  return ok ? absl::OkStatus() : InvalidArgument("outside its space");
}

std::vector<int64_t> Units(const std::vector<DimRange>& symbols, int64_t DimRange::*value) {
  std::vector<int64_t> out;
  for (const DimRange& s : symbols) out.push_back(s.*value / s.multiple);
  return out;
}

// Checks sizes of a plan with symbols.
class SizeChecker {
 public:
  explicit SizeChecker(const std::vector<DimRange>& symbols)
      : least_(LeastUnits(symbols)), most_(MostUnits(symbols)) {}

  absl::Status Known(const SizeExpr& size) const {
    if (static_cast<size_t>(size.symbols()) <= least_.size()) return absl::OkStatus();
    return InvalidArgument("size ", size.ToString(), " of ", least_.size(), " symbols");
  }

  // `size` must be within 0..most for all values of the symbols, and `most` for the largest ones.
  absl::Status Grows(const SizeExpr& size, int64_t most) const {
    RETURN_IF_ERROR(Known(size));
    std::optional<int64_t> smallest = size.LowerBound(least_, most_);
    std::optional<int64_t> room = (SizeExpr(most) - size).LowerBound(least_, most_);
    bool ok = smallest.has_value() && room.has_value() && *smallest >= 0 && *room >= 0;
    if (ok && size.Evaluate(most_) == most) return absl::OkStatus();
    return InvalidArgument("size ", size.ToString(), "; expected 0..", most, ", and ", most,
                           " where symbols are largest");
  }

 private:
  const std::vector<int64_t> least_;
  const std::vector<int64_t> most_;
};

absl::Status CheckTensorSizes(const PlanTensor& t, const SizeChecker& checker) {
  if (t.sizes.empty()) return absl::OkStatus();
  const size_t rank = t.dims.size();
  const bool begins = t.sizes.size() == 2 * rank + 1;
  if (t.sizes.size() != 2 * rank && !begins) {
    return InvalidArgument(t.sizes.size(), " sizes for rank ", rank);
  }
  for (size_t d = 0; d < rank; ++d) {
    RETURN_IF_ERROR(checker.Grows(t.sizes[d], t.dims[d]));
    RETURN_IF_ERROR(checker.Grows(t.sizes[rank + d], t.strides[d]));
  }
  if (begins) RETURN_IF_ERROR(checker.Grows(t.sizes.back(), t.offset / DTypeBytes(t.dtype)));
  return absl::OkStatus();
}

absl::Status CheckSizes(const Plan& plan) {
  if (plan.symbols.size() > kMaxPlanSymbols) {
    return InvalidArgument("plan: ", plan.symbols.size(), " symbols; at most ", kMaxPlanSymbols);
  }
  for (size_t i = 0; i < plan.symbols.size(); ++i) {
    absl::Status sound = CheckRange(plan.symbols[i]);
    if (!sound.ok()) return Annotate(sound, StrCat("plan symbol ", i));
  }
  const SizeChecker checker(plan.symbols);
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    absl::Status sound = CheckTensorSizes(plan.tensors[i], checker);
    if (!sound.ok()) return Annotate(sound, StrCat("plan tensor ", i));
  }
  for (const PlanKernel& kernel : plan.kernels) {
    for (const SizeExpr& size : kernel.sizes) {
      absl::Status known = checker.Known(size);
      if (!known.ok()) return Annotate(known, StrCat("plan kernel ", kernel.symbol));
    }
  }
  for (size_t l = 0; l < plan.loops.size(); ++l) {
    if (!plan.loops[l].open_most.has_value()) continue;
    absl::Status sound = checker.Grows(*plan.loops[l].open_most, plan.loops[l].most);
    if (!sound.ok()) return Annotate(sound, StrCat("plan loop ", l));
  }
  for (const PlanSample& sample : plan.samples) {
    if (sample.values.size() == plan.symbols.size()) continue;
    return InvalidArgument("plan: a sample of ", sample.values.size(), " values for ",
                           plan.symbols.size(), " symbols");
  }
  return absl::OkStatus();
}

// Each extent must be of an output of the model, and its count an i64 scalar after these outputs.
absl::Status CheckOutputExtents(const Plan& plan) {
  std::vector<bool> counts(plan.outputs.size(), false);
  auto tensor = [&](int output) {
    return plan.tensors[static_cast<size_t>(plan.outputs[static_cast<size_t>(output)])];
  };
  auto outputs = static_cast<int>(plan.outputs.size());
  for (const OutputExtent& e : plan.output_extents) {
    const bool known = e.output >= 0 && e.output < outputs && e.count >= 0 && e.count < outputs;
    if (!known || e.dim < 0 || static_cast<size_t>(e.dim) >= tensor(e.output).dims.size() ||
        tensor(e.count).dtype != DType::kI64 || !tensor(e.count).dims.empty()) {
      return InvalidArgument("plan output_extents: dim ", e.dim, " of output ", e.output,
                             " has as many elements as output ", e.count, " says; expected an ",
                             "i64 scalar and dims of outputs");
    }
    counts[static_cast<size_t>(e.count)] = true;
  }
  const size_t named = ModelOutputs(plan.outputs.size(), plan.output_extents);
  for (const OutputExtent& e : plan.output_extents) {
    if (static_cast<size_t>(e.output) < named) continue;
    return InvalidArgument("plan output_extents: output ", e.output, " is behind counts");
  }
  if (std::count(counts.begin(), counts.end(), true) ==
      static_cast<std::ptrdiff_t>(counts.size() - named)) {
    return absl::OkStatus();
  }
  return InvalidArgument("plan output_extents: outputs behind the first count are no counts");
}

// True if a tensor is row-major in the memory of a shared buffer. `id` < 0: an unread input.
bool FitsBuffer(const Plan& plan, const SharedBuffer& shared, int id) {
  if (id < 0) return true;
  if (static_cast<size_t>(id) >= plan.tensors.size()) return false;
  const PlanTensor& t = plan.tensors[static_cast<size_t>(id)];
  const auto dim = static_cast<size_t>(shared.dim);
  if (shared.dim < 0 || dim >= t.dims.size() || shared.capacity < 1 ||
      shared.capacity > kMaxExtent || t.dims[dim] > shared.capacity) {
    return false;
  }
  const Dims room = WithCapacity(shared, t.dims);
  return CheckedNumElements(room, DTypeBytes(t.dtype)).ok() && t.strides == RowMajorStrides(room);
}

// Each shared buffer has an input and an output; none is used twice.
absl::Status CheckSharedBuffers(const Plan& plan) {
  std::set<std::pair<bool, int>> seen;
  for (const SharedBuffer& s : plan.shared_buffers) {
    const bool known = s.input >= 0 && static_cast<size_t>(s.input) < plan.inputs.size() &&
                       s.output >= 0 && static_cast<size_t>(s.output) < plan.outputs.size();
    if (!known || !FitsBuffer(plan, s, plan.inputs[static_cast<size_t>(s.input)]) ||
        !FitsBuffer(plan, s, plan.outputs[static_cast<size_t>(s.output)])) {
      return InvalidArgument("plan shared_buffers: dim ", s.dim, " of input ", s.input,
                             " and output ", s.output, " for ", s.capacity,
                             " elements; expected both to lie row-major in such memory");
    }
    if (seen.emplace(false, s.input).second && seen.emplace(true, s.output).second) continue;
    return InvalidArgument("plan shared_buffers: input ", s.input, " or output ", s.output,
                           " is shared twice");
  }
  return absl::OkStatus();
}

// Each entry must name an input or output with these strides. None may be named twice or share a
// buffer.
absl::Status CheckBoundTensors(const Plan& plan) {
  std::set<std::pair<bool, int>> seen;
  for (const SharedBuffer& s : plan.shared_buffers) {
    seen.emplace(false, s.input);
    seen.emplace(true, s.output);
  }
  for (const BoundStrides& b : plan.bound_strides) {
    const std::vector<int>& list = b.output ? plan.outputs : plan.inputs;
    const std::string what =
        StrCat("plan bound_strides: ", b.output ? "output " : "input ", b.position);
    // Counts (output_extents) are not tensors of the model.
    const size_t tensors = b.output ? ModelOutputs(list.size(), plan.output_extents) : list.size();
    if (b.position < 0 || static_cast<size_t>(b.position) >= tensors) {
      return InvalidArgument(what, " of ", tensors);
    }
    if (b.strides.size() > static_cast<size_t>(kMaxTensorRank)) {
      return InvalidArgument(what, ": ", b.strides.size(), " strides");
    }
    if (!seen.emplace(b.output, b.position).second) {
      return InvalidArgument(what, " has strides twice, or shares a buffer");
    }
    const int id = list[static_cast<size_t>(b.position)];
    if (id < 0) continue;
    if (static_cast<size_t>(id) >= plan.tensors.size())
      return InvalidArgument(what, " is no tensor");
    const PlanTensor& t = plan.tensors[static_cast<size_t>(id)];
    absl::Status fits = CheckBoundStrides(t.dims, b.strides, DTypeBytes(t.dtype));
    if (!fits.ok()) return Annotate(fits, what);
    if (t.strides != b.strides) {
      return InvalidArgument(what, " is ", DimsToString(b.strides), ", tensor ", id, " has ",
                             DimsToString(t.strides));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRange(const DimRange& range) {
  if (range.multiple < 1 || range.multiple > kMaxOpenExtent) {
    return InvalidArgument("multiple ", range.multiple, "; expected 1..", kMaxOpenExtent);
  }
  if (range.least < 0 || range.most < range.least || range.most > kMaxOpenExtent) {
    return InvalidArgument("values ", range.least, "..", range.most, "; expected some of 0..",
                           kMaxOpenExtent);
  }
  for (int64_t value : {range.least, range.most, range.likely}) {
    if (value % range.multiple == 0) continue;
    return InvalidArgument("value ", value, " is no multiple of ", range.multiple);
  }
  if (range.likely == 0 || (range.likely >= range.least && range.likely <= range.most)) {
    return absl::OkStatus();
  }
  return InvalidArgument("likely value ", range.likely, "; expected ", range.least, "..",
                         range.most);
}

std::vector<int64_t> LeastUnits(const std::vector<DimRange>& symbols) {
  return Units(symbols, &DimRange::least);
}

std::vector<int64_t> MostUnits(const std::vector<DimRange>& symbols) {
  return Units(symbols, &DimRange::most);
}

int64_t RunBytes(const Plan& plan, int threads) {
  int64_t arena = plan.arena_bytes;
  for (const PlanVariant& v : plan.variants) arena = std::max(arena, v.plan->arena_bytes);
  int64_t scratch = 0;
  int64_t workspace = 0;
  for (const PlanKernel& kernel : plan.kernels) {
    scratch = std::max(scratch, kernel.scratch_bytes);
    workspace = std::max(workspace, kernel.workspace_bytes);
  }
  return arena + threads * scratch + workspace;
}

int64_t PreparedBytes(const Plan& plan) {
  int64_t bytes = plan.prepared_bytes;
  for (const PlanVariant& v : plan.variants) bytes = std::max(bytes, v.plan->prepared_bytes);
  return bytes;
}

std::vector<int> TensorsOfRuns(const Plan& plan) {
  std::set<int> out;
  for (const PlanLaunch& launch : plan.launches) {
    out.insert(launch.tensors.begin(), launch.tensors.end());
  }
  for (const PlanLoop& loop : plan.loops) {
    out.insert({loop.count, loop.begins, loop.goes_on, loop.pass, loop.passes});
    for (const PlanLoop::Carried& c : loop.carried) out.insert({c.initial, c.last, c.spare});
    for (const PlanLoop::Element& e : loop.elements) out.insert(e.whole);
  }
  out.erase(-1);
  return {out.begin(), out.end()};
}

size_t PlacesOf(const Plan& plan) {
  size_t places = 0;
  for (const PlanLoop& loop : plan.loops) places += loop.places();
  return places;
}

std::vector<int64_t> CountedRuns(const Plan& plan) {
  // Limits the product for nested loops. It is an estimate anyway.
  constexpr int64_t kMostRuns = int64_t{1} << 40;
  std::vector<int64_t> runs(plan.launches.size(), 1);
  for (const PlanLoop& loop : plan.loops) {
    for (int l = loop.first; l < loop.first + loop.launches; ++l) {
      int64_t& times = runs[static_cast<size_t>(l)];
      const int64_t passes = loop.counted_passes();
      times = passes > 0 && times > kMostRuns / passes ? kMostRuns : times * passes;
    }
  }
  return runs;
}

absl::Status Verify(const Plan& plan) {
  if (plan.arena_bytes < 0 || plan.prepared_bytes < 0 || plan.threads < 1) {
    return InvalidArgument("plan: negative sizes or no threads");
  }
  if (plan.arena_bytes > kMaxSpaceBytes || plan.prepared_bytes > kMaxSpaceBytes) {
    return InvalidArgument("plan: ", plan.arena_bytes, " bytes of arena and ", plan.prepared_bytes,
                           " of prepared weights, expected at most ", kMaxSpaceBytes, " each");
  }
  auto tensors = static_cast<int>(plan.tensors.size());
  RETURN_IF_ERROR(CheckSharedBuffers(plan));
  RETURN_IF_ERROR(CheckBoundTensors(plan));
  for (int i = 0; i < tensors; ++i) {
    absl::Status status = CheckTensor(plan, plan.tensors[static_cast<size_t>(i)]);
    if (!status.ok()) return Annotate(status, StrCat("plan tensor ", i));
  }
  auto check_list = [&](const std::vector<int>& list, int low, std::string_view what) {
    for (int id : list) {
      if (id < low || id >= tensors) return InvalidArgument("plan ", what, " names tensor ", id);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(check_list(plan.inputs, -1, "inputs"));
  RETURN_IF_ERROR(check_list(plan.outputs, 0, "outputs"));
  RETURN_IF_ERROR(CheckOutputExtents(plan));
  RETURN_IF_ERROR(check_list(plan.weights, -1, "weights"));
  for (const auto* launches : {&plan.prepare, &plan.launches}) {
    for (const PlanLaunch& launch : *launches) {
      if (launch.kernel < 0 || static_cast<size_t>(launch.kernel) >= plan.kernels.size() ||
          launch.group < 0 || static_cast<size_t>(launch.group) >= plan.groups.size()) {
        return InvalidArgument("a plan launch names kernel ", launch.kernel, " and group ",
                               launch.group);
      }
      RETURN_IF_ERROR(check_list(launch.tensors, 0, "launch"));
    }
  }
  for (const PlanGroup& group : plan.groups) {
    for (int node : group.nodes) {
      if (node < 0 || node >= plan.nodes) return InvalidArgument("a plan group names node ", node);
    }
    if (group.kernel < 0 || static_cast<size_t>(group.kernel) >= plan.kernels.size()) {
      return InvalidArgument("a plan group names kernel ", group.kernel);
    }
  }
  RETURN_IF_ERROR(CheckSizes(plan));
  RETURN_IF_ERROR(CheckLoops(plan, MostUnits(plan.symbols)));
  RETURN_IF_ERROR(CheckVariants(plan));
  auto chosen = std::count_if(plan.frontier.begin(), plan.frontier.end(),
                              [](const PlanPoint& point) { return point.chosen; });
  if (chosen == (plan.frontier.empty() ? 0 : 1)) return absl::OkStatus();
  return InvalidArgument("plan.frontier: ", chosen, " of ", plan.frontier.size(),
                         " points are chosen, expected 1");
}

}  // namespace fusion
