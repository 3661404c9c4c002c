#include "core/codegen/cpu/emitter.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

// kernel_abi.inc is the text of core/base/kernel_abi.h as a string literal (core/CMakeLists.txt).
constexpr std::string_view kKernelAbi =
#include "kernel_abi.inc"
    ;
constexpr std::string_view kGuardAbi =
#include "kernel_guard_abi.inc"
    ;

constexpr int kScratchAlignment = 64;

}  // namespace

std::string_view MemoryTypeName(DType type) {
  switch (type) {
    case DType::kBool:
    case DType::kU8:
    case DType::kU4:
    case DType::kU2:
      return "unsigned char";
    case DType::kI8:
    case DType::kI4:
    case DType::kI2:
      return "signed char";
    case DType::kI16:
      return "short";
    case DType::kU32:
      return "unsigned int";
    case DType::kU64:
      return "u64";
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return "unsigned short";
    case DType::kI32:
      return "int";
    case DType::kI64:
      return "i64";
    case DType::kF64:
      return "double";
    default:
      return IsNarrowFloat(type) ? "unsigned char" : "float";
  }
}

std::string_view BitsTypeName(DType type) { return IsHalf(type) ? "mem_bits" : "mem_codes"; }

std::string_view VectorTypeName(DType type) {
  switch (type) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return "vf";
    case DType::kF64:
      return "vd";
    case DType::kU32:
    case DType::kI64:
      return "vl";
    case DType::kU64:
      return "vu";
    default:
      return IsNarrowFloat(type) ? "vf" : "vi";
  }
}

std::string_view VectorSuffix(DType type) { return VectorTypeName(type).substr(1); }

std::string ElementLiteral(DType type, double real, int64_t integer) {
  switch (type) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return FloatLiteral(real);
    case DType::kF64:
      return DoubleLiteral(real);
    case DType::kBool:
      return integer != 0 ? "-1" : "0";  // a mask
    case DType::kI64:
      if (integer == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807l - 1)";
      return StrCat("(i64)", integer);
    case DType::kU32:
      return StrCat("(i64)", integer);
    case DType::kU64:
      return StrCat("(u64)", static_cast<uint64_t>(integer), "ull");
    case DType::kI32:
      if (integer == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
      return StrCat(integer);
    default:
      if (IsNarrowFloat(type)) return FloatLiteral(real);
      return StrCat(integer);
  }
}

void LinearCode::Add(const std::string& variable, int64_t coefficient) {
  if (variable == "0" || coefficient == 0) return;
  int64_t& c = terms_[variable];
  c += coefficient;
  if (c == 0) terms_.erase(variable);
}

int64_t LinearCode::CoefficientOf(const std::string& variable) const {
  auto it = terms_.find(variable);
  return it == terms_.end() ? 0 : it->second;
}

std::string LinearCode::ToString() const {
  // Positive terms first, so that offsets read "(m - m0) * 16": pairs of opposite coefficients are
  // written together.
  std::string out;
  auto append = [&out](bool negative, const std::string& text) {
    if (out.empty()) {
      out = negative ? StrCat("-", text) : text;
    } else {
      out += StrCat(negative ? " - " : " + ", text);
    }
  };
  std::set<std::string> done;
  for (const auto& [name, coefficient] : terms_) {
    if (coefficient < 0 || done.count(name) != 0) continue;
    std::string text = name;
    for (const auto& [other, opposite] : terms_) {
      if (opposite == -coefficient && done.insert(other).second) {
        text = StrCat("(", name, " - ", other, ")");
        break;
      }
    }
    append(false, coefficient == 1 ? text : StrCat(text, " * ", coefficient));
  }
  for (const auto& [name, coefficient] : terms_) {
    if (coefficient > 0 || done.count(name) != 0) continue;
    append(true, coefficient == -1 ? name : StrCat(name, " * ", -coefficient));
  }
  if (constant_ != 0 || out.empty())
    append(constant_ < 0, StrCat(constant_ < 0 ? -constant_ : constant_));
  return out;
}

CpuEmitter::CpuEmitter(const Schedule& schedule, const DeviceSpec& device, std::string_view symbol,
                       const EmitOptions& options, const Schedule* most, std::vector<bool> varies)
    : s_(schedule),
      most_(most != nullptr ? most : &schedule),
      varies_(std::move(varies)),
      device_(device),
      guard_(options.guard),
      symbol_(symbol),
      lanes_(device.vector_bytes / 4),
      scratch_(PlanScratch(*most_, device.vector_bytes, kScratchAlignment)),
      workspace_(PlanWorkspace(*most_, kScratchAlignment)) {
  varies_.resize(schedule.dims.size());
  origin_.resize(schedule.buffers.size());
  point_.resize(schedule.dims.size());
}

void CpuEmitter::UseMemory(DType type) { Use(StrCat("mem_", DTypeName(type))); }

std::string CpuEmitter::Header() const {
  std::string cuts;
  for (const Phase& phase : s_.phases) {
    if (&phase != &s_.phases.front()) cuts += ", then";
    for (const Segment& segment : phase.segments) {
      for (const GridDim& g : segment.grid) cuts += StrCat(" ", dim(g.dim).name, ":", g.tile);
      for (const Halo& h : segment.halos) cuts += StrCat(" halo ", dim(h.dim).name);
    }
  }
  std::string dims;
  for (size_t d = 0; d < s_.dims.size(); ++d) {
    const bool varies = Varies(static_cast<DimId>(d));
    dims += StrCat(" ", s_.dims[d].name, ":", varies ? "*" : StrCat(s_.dims[d].extent));
  }
  std::string ops = s_.label;
  return StrCat("// kernel ", symbol_, ": ", ops, "\n// dims", dims, "   spatial",
                cuts.empty() ? " -" : cuts, "   for ", IsaName(device_.isa),
                s_.bitwise ? ", bitwise" : "", guard_ ? ", guarded" : "", "\n");
}

absl::StatusOr<KernelSource> CpuEmitter::Emit() {
  for (size_t p = 0; p < s_.phases.size(); ++p) {
    for (size_t i = 0; i < s_.phases[p].segments.size(); ++i) RETURN_IF_ERROR(WriteSegment(p, i));
  }
  WriteEntry();
  WriteDescriptor();
  KernelSource source;
  source.symbol = symbol_;
  source.scratch_bytes = scratch_.bytes;
  source.workspace_bytes = workspace_.bytes;
  use_.guard = guard_;
  source.text = StrCat(Header(), kKernelAbi, guard_ ? kGuardAbi : "", CpuPrelude(lanes_, use_),
                       "\n", run_tiles_ ? RunTileFunction(device_.threads) : "",
                       even_steps_ ? EvenStepFunction() : "", out_.Take());
  return source;
}

absl::Status CpuEmitter::WriteSegment(size_t phase, size_t segment) {
  const Segment& seg = s_.phases[phase].segments[segment];
  segment_ = &seg;
  windows_.clear();
  std::vector<bool> any;
  const std::vector<BlockWindows> blocks = WindowsOf(phase, segment, &any);
  for (size_t d = 0; d < s_.dims.size(); ++d) {
    WindowLengths whole = {s_.dims[d].extent};
    if (Varies(static_cast<DimId>(d))) {
      whole = UpTo(std::max<int64_t>(most_->dims[d].extent, 2));
    }
    windows_.push_back({"0", StrCat(s_.dims[d].extent), std::move(whole), any[d]});
  }
  std::string params;
  for (const GridDim& g : seg.grid) {
    Window& w = window(g.dim);
    w.lengths = blocks[static_cast<size_t>(g.dim)].lengths;
    w.begin = TileName(g.dim, 0);
    w.end = w.lengths.size() < 2 ? StrCat(w.begin, " + ", w.Longest()) : StrCat(w.begin, "_end");
    w.depth = 1;
    params += StrCat(", i64 ", w.begin);
    if (TileVaries(g)) params += StrCat(", i64 ", TileCode(phase, segment, g));
  }
  out_.Open("static void block", phase, "_", segment, "(const FusionKernelArgs* args, ",
            guard_ ? "FusionKernelFault* fault, " : "", "char* scratch", params, ")");
  WriteSizes(/*args=*/true);
  for (int p = 0; p < s_.params; ++p) {
    const Buffer& b = buffer(p);
    DeclareBuffer(p, StrCat("args->tensors[", p, "].data"),
                  StrCat("((const FusionGuardedKernelArgs*)args)->elements[", p, "]"),
                  StrCat(b.kind == ParamKind::kWeight ? "weight " : "", DTypeName(b.dtype),
                         DimsToString(b.shape),
                         b.layout.blocked >= 0 ? StrCat(" in blocks of ", b.layout.block) : "",
                         b.layout.pack > 1 ? StrCat(", packs of ", b.layout.pack) : ""));
    out_.Line("(void)", b.name, ";");
  }
  for (size_t i = static_cast<size_t>(s_.params); i < s_.buffers.size(); ++i) {
    if (s_.buffers[i].level == Level::kWorkspace) DeclareWorkspace(static_cast<BufferId>(i));
  }
  for (const GridDim& g : seg.grid) {
    const Window& w = window(g.dim);
    if (w.lengths.size() < 2) continue;
    out_.Line("const i64 ", w.end, " = min_i64(", w.begin, " + ", TileCode(phase, segment, g), ", ",
              dim(g.dim).extent, ");");
  }
  for (const Halo& h : seg.halos) WriteHalo(h, blocks[static_cast<size_t>(h.dim)]);
  out_.Line("(void)scratch;");
  RETURN_IF_ERROR(Write(seg.body));
  out_.Close();
  out_.Blank();
  return absl::OkStatus();
}

// The first and last coordinate of a dim that the windows of others reach.
void CpuEmitter::WriteHalo(const Halo& halo, const BlockWindows& windows) {
  std::string begin;
  std::string end;
  for (const IndexExpr& e : halo.reached) {
    LinearCode first;
    LinearCode behind;
    first.Add(e.constant());
    behind.Add(e.constant() + 1);
    auto add_end = [](const Window& w, int64_t coefficient, LinearCode* sum) {
      bool fixed = w.lengths.size() == 1;
      sum->Add(fixed ? w.begin : w.end, coefficient);
      if (fixed) sum->Add(w.Longest() * coefficient);
    };
    for (const IndexExpr::Term& t : e.terms()) {
      const Window& w = window(t.axis);
      bool rises = t.coefficient > 0;
      (rises ? first : behind).Add(w.begin, t.coefficient);
      add_end(w, t.coefficient, rises ? &behind : &first);
      (rises ? behind : first).Add(-t.coefficient);
    }
    begin =
        begin.empty() ? first.ToString() : StrCat("min_i64(", begin, ", ", first.ToString(), ")");
    end = end.empty() ? behind.ToString() : StrCat("max_i64(", end, ", ", behind.ToString(), ")");
  }
  int64_t extent = dim(halo.dim).extent;
  Window& w = window(halo.dim);
  w.begin = TileName(halo.dim, 0);
  w.end = StrCat(w.begin, "_end");
  w.lengths = windows.lengths;
  w.depth = 1;
  if (windows.clipped) {
    begin = StrCat("max_i64(0, min_i64(", begin, ", ", extent - 1, "))");
    end = StrCat("min_i64(max_i64(", end, ", ", w.begin, " + 1), ", extent, ")");
  }
  out_.Line("const i64 ", w.begin, " = ", begin, ";  // halo of ", dim(halo.dim).name);
  out_.Line("const i64 ", w.end, " = ", end, ";");
  out_.Line("(void)", w.end, ";");
}

void CpuEmitter::DeclareWorkspace(BufferId id) {
  const Buffer& b = buffer(id);
  BufferId memory = s_.MemoryOf(id);
  const bool in_param = buffer(memory).level == Level::kGlobal;
  std::string from = in_param ? StrCat("args->tensors[", memory, "].data")
                              : StrCat("((char*)args->workspace + ",
                                       workspace_.offsets[static_cast<size_t>(memory)], ")");
  // In the memory of a param there is room for as many bytes as that has.
  const std::string room =
      StrCat("((const FusionGuardedKernelArgs*)args)->elements[", memory, "] * ",
             DTypeBytes(buffer(memory).dtype), " / ", DTypeBytes(b.dtype));
  DeclareBuffer(id, from, in_param ? room : StrCat(StoredElements(most_->buffer(id))),
                StrCat(DTypeName(b.dtype), DimsToString(b.shape)));
  out_.Line("(void)", b.name, ";");
}

void CpuEmitter::WriteEntry() {
  out_.Open("extern \"C\" int ", symbol_,
            "(const FusionKernelArgs* args, int phase, i64 task_begin, i64 task_end, int worker)");
  out_.Line("if (args->abi_version != FUSION_KERNEL_ABI_VERSION) return FUSION_KERNEL_BAD_ABI;");
  if (guard_) {
    out_.Line(
        "if (args->struct_size < sizeof(FusionGuardedKernelArgs)) return FUSION_KERNEL_BAD_ABI;");
    out_.Line(
        "FusionKernelFault* fault = ((const FusionGuardedKernelArgs*)args)->faults + worker;");
    out_.Line("fault->code = FUSION_KERNEL_OK;");
  }
  WriteSizes(/*args=*/true);
  WriteTiles();
  out_.Line(
      "char* scratch = (char*)args->scratch + (unsigned long long)worker * args->scratch_stride;");
  for (size_t p = 0; p < s_.phases.size(); ++p) {
    out_.Open("if (phase == ", p, ")");
    out_.Line("if (task_begin < 0 || task_end < task_begin || task_end > ", TasksOf(p).ToString(),
              ") return FUSION_KERNEL_BAD_TASKS;");
    out_.Open("for (i64 task = task_begin; task < task_end; ++task)");
    out_.Line("i64 rest = task;");
    SizeCode first(0);
    for (size_t i = 0; i < s_.phases[p].segments.size(); ++i) {
      const Segment& seg = s_.phases[p].segments[i];
      std::string args;
      std::vector<std::string> lines;
      for (size_t g = seg.grid.size(); g-- > 0;) {
        const std::string tile = TileCode(p, i, seg.grid[g]);
        const SizeCode tiles = Tiles(seg.grid[g], tile);
        const std::string count = tiles.IsZero() ? "1" : tiles.ToString();
        std::string name = TileName(seg.grid[g].dim, 0);
        lines.push_back(StrCat("const i64 ", name, " = rest % ", count, " * ", tile, ";"));
        lines.push_back(StrCat("rest /= ", count, ";"));
        args = StrCat(", ", name, TileVaries(seg.grid[g]) ? StrCat(", ", tile) : "", args);
      }
      const SizeCode behind = first + TasksOf(p, i);
      out_.Open("if (rest >= ", first.ToString(), " && rest < ", behind.ToString(), ")");
      if (!first.IsZero()) out_.Line("rest -= ", first.ToString(), ";");
      for (const std::string& line : lines) out_.Line(line);
      out_.Line("block", p, "_", i, "(args, ", guard_ ? "fault, " : "", "scratch", args, ");");
      if (guard_) out_.Line("if (fault->code != FUSION_KERNEL_OK) return fault->code;");
      out_.Line("continue;");
      out_.Close();
      first = behind;
    }
    out_.Close();
    if (streams_) out_.Line("__builtin_ia32_sfence();");
    if (uses_tiles_) out_.Line("leave_tiles();");
    out_.Line("return FUSION_KERNEL_OK;");
    out_.Close();
  }
  out_.Line("return FUSION_KERNEL_BAD_PHASE;");
  out_.Close();
  out_.Blank();
}

void CpuEmitter::WriteDescriptor() {
  out_.Open("static i64 tasks(int phase, const i64*", IsMember() ? " dims" : "", ")");
  WriteSizes(/*args=*/false);
  WriteTiles();
  for (size_t p = 0; p < s_.phases.size(); ++p) {
    out_.Line("if (phase == ", p, ") return ", TasksOf(p).ToString(), ";");
  }
  out_.Line("return 0;");
  out_.Close();
  WriteReach();
  out_.Line("extern \"C\" const FusionKernelDescriptor ", symbol_,
            "_descriptor = {sizeof(FusionKernelDescriptor), FUSION_KERNEL_ABI_VERSION, \"",
            IsaName(device_.isa), "\", ", s_.params, ", ", IsMember() ? kSizesCount : "0", ", ",
            s_.phases.size(), ", tasks, ", scratch_.bytes, ", ", workspace_.bytes, ", ",
            kScratchAlignment, ", reach};");
  if (guard_) {
    out_.Line("extern \"C\" const unsigned int ", symbol_,
              "_guarded = sizeof(FusionGuardedKernelArgs);");
  }
}

// Elements of each param that the kernel may touch.
void CpuEmitter::WriteReach() {
  out_.Open("static i64 reach(int tensor, const i64*", IsMember() ? " dims" : "", ")");
  WriteSizes(/*args=*/false);
  // Its own memory is that of the largest member.
  for (size_t d = 0; IsMember() && d < s_.dims.size(); ++d) {
    if (!varies_[d]) continue;
    out_.Line("if (", s_.dims[d].extent, " > ", most_->dims[d].extent, ") return ",
              std::numeric_limits<int64_t>::max(), ";");
  }
  if (IsMember()) {
    WriteMemberReach();
  } else {
    const std::vector<int64_t> reach = ReachOfParams(s_);
    out_.Open("switch (tensor)");
    for (size_t p = 0; p < reach.size(); ++p) out_.Line("case ", p, ": return ", reach[p], ";");
    out_.Close();
    out_.Line("return 0;");
  }
  out_.Close();
}

std::string CpuEmitter::TileName(DimId d, int depth) const {
  const std::string& name = dim(d).name;
  std::string tile = StrCat(name, depth);
  // "n" and "n1" are dims of one product; p, t, v and r with a number are params, buffers and
  // values.
  bool taken = (name.back() >= '0' && name.back() <= '9') || name == "p" || name == "t" ||
               name == "v" || name == "r";
  for (const ScheduleDim& other : s_.dims) taken |= other.name == tile;
  return taken ? StrCat(name, "_", depth) : tile;
}

// ---- addresses ----

std::string CpuEmitter::Coordinate(DimId d) const {
  const std::string& point = point_[static_cast<size_t>(d)];
  return point.empty() ? window(d).begin : point;
}

Dims CpuEmitter::StridesOf(BufferId id) const {
  const Buffer& b = buffer(id);
  return b.IsLocal() ? scratch_.slots[static_cast<size_t>(id)].strides : ElementStrides(b, b.shape);
}

LinearCode CpuEmitter::Offset(const Access& access) const {
  const Buffer& b = buffer(access.buffer);
  LinearCode offset;
  Dims strides = StridesOf(access.buffer);
  for (size_t i = 0; i < access.index.size(); ++i) {
    if (static_cast<int>(i) == b.layout.blocked) continue;
    int64_t stride = strides[i];
    for (const IndexExpr::Term& t : access.index[i].terms()) {
      offset.Add(Coordinate(t.axis), t.coefficient * stride);
    }
    offset.Add(access.index[i].constant() * stride);
    if (b.IsLocal()) offset.Add(origin_[static_cast<size_t>(access.buffer)][i], -stride);
  }
  return offset;
}

// Elements from one coordinate of `d` to the next, within a block of a blocked buffer.
int64_t CpuEmitter::StepAlong(const Access& access, DimId d) const {
  const Dims strides = StridesOf(access.buffer);
  int64_t step = 0;
  for (size_t i = 0; i < access.index.size(); ++i) {
    if (static_cast<int>(i) == buffer(access.buffer).layout.blocked) continue;
    step += access.index[i].CoefficientOf(d) * strides[i];
  }
  return step;
}

std::string CpuEmitter::BlockOffset(const Access& access) const {
  const Buffer& b = buffer(access.buffer);
  if (b.layout.blocked < 0) return "";
  auto i = static_cast<size_t>(b.layout.blocked);
  LinearCode at;
  for (const IndexExpr::Term& t : access.index[i].terms())
    at.Add(Coordinate(t.axis), t.coefficient);
  at.Add(access.index[i].constant());
  if (b.IsLocal()) at.Add(origin_[static_cast<size_t>(access.buffer)][i], -1);
  std::string text = at.ToString();
  if (text == "0") return "";
  return StrCat("(", text, ") / ", b.layout.block, " * ", StridesOf(access.buffer)[i]);
}

std::string CpuEmitter::Address(const Access& access) const {
  std::string offset = Offset(access).ToString();
  std::string block = BlockOffset(access);
  std::string out = buffer(access.buffer).name;
  if (!block.empty()) out += StrCat(" + ", block);
  if (offset != "0") out += StrCat(" + ", offset);
  return out;
}

}  // namespace fusion
