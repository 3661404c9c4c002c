#include "core/schedule/lower/opaque.h"

#include <algorithm>

#include "core/op/indexed/opaque.h"

namespace fusion {
namespace {

constexpr int64_t kMostRow = int64_t{1} << 31;
// Rows that lie beside each other are folded together, so many of them at least: four vectors
// of 16.
constexpr int64_t kRowsBeside = 64;
// Elements of a block of a long row: its part in a fold takes some 10 us, ten times what handing
// out a task and reading the row twice cost.
constexpr int64_t kFoldBlock = int64_t{1} << 15;
// Room for candidates in an order of few: what is found at a time, at least, before the worst of
// them are dropped. Those of few are dropped often: the bound is soon tight.
constexpr int64_t kLeastCandidates = 128;

class OpaqueLowering {
 public:
  OpaqueLowering(const Program& program, const std::vector<bool>& constant,
                 const DeviceSpec& device, const OpaqueOptions& options)
      : program_(program),
        op_(program.ops[0]),
        constant_(constant),
        device_(device),
        options_(options) {
    out_.lowered.schedule.bitwise = options.bitwise;
    out_.lowered.schedule.label = op_.label;
  }

  absl::StatusOr<OpaqueKernel> Run() {
    for (ValueId v : op_.inputs) call_.inputs.push_back(ParamOf(v, /*output=*/false));
    call_.outputs.push_back(ParamOf(op_.output, /*output=*/true));
    s().params = static_cast<int>(s().buffers.size());
    out_.group.outputs = {op_.output};
    call_.op = op_.label;
    call_.attrs = *op_.attrs;
    if (op_.label == RunningFold::kName) {
      RETURN_IF_ERROR(Fold());
    } else if (op_.label == RowOrder::kName) {
      RETURN_IF_ERROR(Order());
    } else if (op_.label == ChosenPlaces::kName) {
      AddPhase({}, call_);
    } else if (op_.label == BoxChoice::kName) {
      Boxes();
    } else {
      return Unimplemented("no schedule for ", op_.label);
    }
    RETURN_IF_ERROR(Verify(s()));
    return std::move(out_);
  }

 private:
  Schedule& s() { return out_.lowered.schedule; }
  Dims DimsOf(ValueId v) const { return program_.value(v).type.shape.ToDims(); }

  BufferId ParamOf(ValueId v, bool output) {
    std::vector<LoweredParam>& params = out_.lowered.params;
    for (size_t p = 0; p < params.size(); ++p) {
      if (params[p].value == v) return static_cast<BufferId>(p);
    }
    const TensorType& type = program_.value(v).type;
    const bool constant = constant_[static_cast<size_t>(v)] && !output;
    const Dims dims = type.shape.ToDims();
    s().buffers.push_back({.name = StrCat("p", params.size()),
                           .level = Level::kGlobal,
                           .dtype = type.dtype,
                           .kind = output     ? ParamKind::kOutput
                                   : constant ? ParamKind::kWeight
                                              : ParamKind::kInput,
                           .shape = dims,
                           .layout = {.strides = RowMajorStrides(dims)}});
    params.push_back({.value = v, .output = output});
    out_.group.views[v] = {
        .dtype = type.dtype, .shape = dims, .strides = RowMajorStrides(dims), .constant = constant};
    return static_cast<BufferId>(params.size()) - 1;
  }

  DimId AddDim(const std::string& name, int64_t extent) {
    s().dims.push_back({name, extent});
    return static_cast<DimId>(s().dims.size()) - 1;
  }

  // A local buffer along `dim`, for the call to work in.
  void AddScratch(const std::string& name, DType type, DimId dim) {
    s().buffers.push_back({.name = name, .level = Level::kStaged, .dtype = type, .dims = {dim}});
    call_.scratch.push_back(static_cast<BufferId>(s().buffers.size()) - 1);
  }

  void AddPhase(std::vector<GridDim> grid, const CallStmt& call) {
    Segment segment{.grid = std::move(grid)};
    for (BufferId b : call.scratch) segment.body.push_back(Stmt{AllocStmt{b}});
    segment.body.push_back(Stmt{call});
    Phase phase;
    phase.segments.push_back(std::move(segment));
    s().phases.push_back(std::move(phase));
  }

  absl::Status CheckRow(int64_t extent) const {
    if (extent < kMostRow) return absl::OkStatus();
    return ResourceExhausted("a row of ", extent, " elements; at most ", kMostRow - 1);
  }

  absl::Status Fold() {
    const RunningFold fold = RunningFoldOf(*op_.attrs, DimsOf(op_.inputs[0]));
    const DimId outer = AddDim("o", fold.rows.outer);
    AddDim("n", fold.rows.extent);
    const DimId inner = AddDim("i", fold.rows.inner);
    const int64_t blocks =
        std::min<int64_t>(fold.rows.extent / kFoldBlock, int64_t{4} * device_.threads);
    const bool in_blocks = !options_.bitwise && !options_.open && fold.rows.inner == 1 &&
                           blocks > 1 && fold.rows.outer < device_.threads;
    if (!in_blocks) {
      call_.over = {outer, inner};
      // Blocks for each thread, as wide as that leaves them, unless extents may not decide.
      const int64_t beside =
          options_.open ? 0 : fold.rows.inner * fold.rows.outer / (int64_t{2} * device_.threads);
      AddPhase({{outer, 1}, {inner, std::max(beside / kRowsBeside, int64_t{1}) * kRowsBeside}},
               call_);
      return absl::OkStatus();
    }
    const DimId block = AddDim("b", blocks);
    const Dims totals = {fold.rows.outer, blocks};
    s().buffers.push_back({.name = "w0",
                           .level = Level::kWorkspace,
                           .dtype = s().buffer(0).dtype,
                           .shape = totals,
                           .layout = {.strides = RowMajorStrides(totals)}});
    const auto workspace = static_cast<BufferId>(s().buffers.size()) - 1;
    call_.over = {outer, block};
    CallStmt first = call_;
    first.attrs.Set(kOpaquePart, std::string(kOpaqueTotals));
    first.outputs = {workspace};
    AddPhase({{outer, 1}, {block, 1}}, first);
    call_.attrs.Set(kOpaquePart, std::string(kOpaqueBlocks));
    call_.inputs.push_back(workspace);
    AddPhase({{outer, 1}, {block, 1}}, call_);
    return absl::OkStatus();
  }

  absl::Status Order() {
    const RowOrder order = RowOrderOf(*op_.attrs, DimsOf(op_.inputs[0]));
    RETURN_IF_ERROR(CheckRow(order.rows.extent));
    if (order.things) {
      AddScratch("t0", DType::kI64, AddDim("n", order.rows.extent));
      AddPhase({}, call_);
      return absl::OkStatus();
    }
    const DimId outer = AddDim("o", order.rows.outer);
    AddDim("n", order.rows.extent);
    const DimId inner = AddDim("i", order.rows.inner);
    int64_t room = order.rows.extent;
    if (!options_.open) room = std::min(room, std::max(2 * order.count, kLeastCandidates));
    // An element of 8 bytes needs its place beside it.
    const bool wide = DTypeBytes(s().buffer(0).dtype) == 8;
    AddScratch("t0", DType::kU64, AddDim("c", wide ? 2 * room : room));
    call_.over = {outer, inner};
    AddPhase({{outer, 1}, {inner, 1}}, call_);
    return absl::OkStatus();
  }

  void Boxes() {
    const BoxChoice choice = BoxChoiceOf(*op_.attrs, DimsOf(op_.inputs[1]));
    const DimId batch = AddDim("b", choice.batch);
    const DimId cls = AddDim("c", choice.classes);
    AddScratch("t0", DType::kU64, AddDim("n", choice.boxes));
    // Corners and area of each box that is chosen.
    AddScratch("t1", DType::kF32, AddDim("k", 5 * choice.count));
    call_.over = {batch, cls};
    AddPhase({{batch, 1}, {cls, 1}}, call_);
  }

  const Program& program_;
  const LoopOp& op_;
  const std::vector<bool>& constant_;
  const DeviceSpec& device_;
  const OpaqueOptions options_;
  OpaqueKernel out_;
  CallStmt call_;
};

}  // namespace

absl::StatusOr<OpaqueKernel> LowerOpaque(const Program& program, const std::vector<bool>& constant,
                                         const DeviceSpec& device, const OpaqueOptions& options) {
  FUSION_CHECK(program.ops.size() == 1 && program.ops[0].kind == LoopOp::kOpaque,
               "a program of one opaque op");
  return OpaqueLowering(program, constant, device, options).Run();
}

}  // namespace fusion
