#include "core/schedule/lower/reference.h"

#include <algorithm>

namespace fusion {
namespace {

// The element of the value in memory that a packed param's element comes from, over the param's own
// dims.
IndexExpr PackedSource(const FusionGroup& group, const LoweredParam& param) {
  const TensorView& view = group.view(param.value);
  IndexExpr sum(0);
  for (size_t d = 0; d < param.source.size(); ++d) sum = sum + param.source[d] * view.strides[d];
  return sum.Substitute([&](int dim) {
    auto at = std::find(param.dims.begin(), param.dims.end(), dim);
    FUSION_CHECK(at != param.dims.end(), "a packed param is indexed by its own dims");
    return IndexExpr::Axis(static_cast<int>(at - param.dims.begin()));
  });
}

std::string ParamDim(int axis) { return StrCat("i", axis); }

}  // namespace

KernelReference MakeReference(const Program& program, const FusionGroup& group,
                              const Lowered& lowered) {
  KernelReference reference;
  reference.program = program;
  reference.program.outputs = group.outputs;
  // The program stands alone: a value is rounded because it was a tensor of the graph, not because
  // of which one.
  for (size_t v = 0; v < program.values.size(); ++v) {
    Value& value = reference.program.values[v];
    if (value.tensor != kNoTensor) value.tensor = static_cast<TensorId>(v);
  }
  for (LoopOp& op : reference.program.ops) op.origin = 0;
  for (const LoweredParam& param : lowered.params) {
    KernelReference::Param p{.output = param.output, .packed = param.packed};
    const std::vector<ValueId>& list = param.output ? group.outputs : program.inputs;
    auto at = std::find(list.begin(), list.end(), param.value);
    FUSION_CHECK(at != list.end(), "every param is an input or output of the program");
    p.index = static_cast<int>(at - list.begin());
    if (param.packed) p.source = PackedSource(group, param);
    reference.params.push_back(std::move(p));
  }
  return reference;
}

KernelReference MakePackReference(const FusionGroup& group, const Lowered& lowered, size_t param) {
  const LoweredParam& packed = lowered.params[param];
  const TensorView& view = group.view(packed.value);
  // The value as flat memory: a copy of it is the value itself.
  const int64_t elements = SpanOf(view.shape, view.strides);
  KernelReference reference;
  TensorType flat{view.dtype, Shape{Dim(elements)}};
  reference.program.values.push_back({.type = flat, .kind = TensorKind::kInput});
  reference.program.values.push_back(
      {.type = flat, .kind = TensorKind::kIntermediate, .producer = 0, .tensor = 1});
  LoopOp copy{.label = "Copy", .origin = 0, .inputs = {0}, .output = 1};
  copy.body.axes = {{"i", Dim(elements)}};
  copy.body.reads = {Read{.index = {IndexExpr::Axis(0)}}};
  copy.body.write = {IndexExpr::Axis(0)};
  copy.body.value = Expr::Input(0, view.dtype);
  reference.program.ops.push_back(std::move(copy));
  reference.program.inputs = {0};
  reference.program.outputs = {1};
  reference.params.push_back({.output = false, .index = 0});
  reference.params.push_back(
      {.output = true, .index = 0, .packed = true, .source = PackedSource(group, packed)});
  return reference;
}

std::string ToString(const KernelReference& reference) {
  std::string out = "reference {\n";
  for (const KernelReference::Param& p : reference.params) {
    out += StrCat("  param ", p.packed ? "packed " : "", p.output ? "output " : "input ", p.index,
                  p.packed ? StrCat(" at ", p.source.ToString(ParamDim)) : "", "\n");
  }
  return StrCat(out, ToString(reference.program), "}\n");
}

absl::StatusOr<KernelReference> ParseReference(std::string_view text) {
  KernelReference reference;
  size_t program = text.find("program {");
  if (program == std::string_view::npos) return InvalidArgument("reference: no program");
  Lexer in(text.substr(0, program));
  RETURN_IF_ERROR(in.Expect("reference"));
  RETURN_IF_ERROR(in.Expect("{"));
  while (in.Accept("param")) {
    KernelReference::Param p;
    p.packed = in.Accept("packed");
    p.output = in.Accept("output");
    if (!p.output) RETURN_IF_ERROR(in.Expect("input"));
    ASSIGN_OR_RETURN(int64_t index, in.Integer());
    p.index = static_cast<int>(index);
    if (p.packed) {
      RETURN_IF_ERROR(in.Expect("at"));
      ASSIGN_OR_RETURN(p.source, IndexExpr::Parse(in, [](std::string_view name) {
                         if (name.size() < 2 || name.size() > 3 || name[0] != 'i') return -1;
                         return name.find_first_not_of("0123456789", 1) == std::string_view::npos
                                    ? std::stoi(std::string(name.substr(1)))
                                    : -1;
                       }));
    }
    reference.params.push_back(std::move(p));
  }
  if (!in.AtEnd()) return in.Error("a param or the program");
  std::string_view rest = StripSpace(text.substr(program));
  if (rest.empty() || rest.back() != '}') return InvalidArgument("reference: no closing brace");
  ASSIGN_OR_RETURN(reference.program, ParseProgram(StripSpace(rest.substr(0, rest.size() - 1))));
  for (const KernelReference::Param& p : reference.params) {
    const auto& list = p.output ? reference.program.outputs : reference.program.inputs;
    if (p.index < 0 || static_cast<size_t>(p.index) >= list.size()) {
      return InvalidArgument("reference: param names ", p.output ? "output " : "input ", p.index,
                             " of ", list.size());
    }
  }
  return reference;
}

}  // namespace fusion
