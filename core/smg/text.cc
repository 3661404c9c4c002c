#include <unordered_map>

#include "core/smg/smg.h"

namespace fusion {
namespace {

constexpr std::string_view kMappingNames[] = {"one-to-one", "one-to-all", "all-to-one",
                                              "shift",      "indexed",    "window"};
constexpr std::string_view kRelationNames[] = {"", " aligned", " shifted", " aliased"};

std::string MappingToString(const Smg& smg, const SmgMapping& m) {
  std::string data = StrCat("%", m.value);
  std::string op = StrCat("op ", m.op);
  return StrCat("  map ", m.from_data ? data : op, " -> ", m.from_data ? op : data, " ",
                LabelOf(smg, m), "\n");
}

std::string ReadToString(const SmgRead& read, const std::function<std::string(int)>& name) {
  return StrCat("%", read.value, IndexMapToString(read.index, name), kRelationNames[read.relation],
                GuardsToString(read.guards, name));
}

std::string OpToString(const Smg& smg, const SmgOp& op) {
  auto name = [&](int d) { return smg.dim(d).name; };
  return StrCat("  op ", op.loop, " ", op.label, " @", op.origin, " %", op.output,
                IndexMapToString(op.write, name), " = ", op.reduce ? op.reduce->name() : "map", "(",
                StrJoin(op.reads, ", ", [&](const SmgRead& r) { return ReadToString(r, name); }),
                ") : ", op.value.ToString(), " over [", smg.DimNames(op.dims), "]\n");
}

class Parser {
 public:
  Parser(std::string_view text, const Program& program) : in_(text), program_(program) {}

  absl::StatusOr<Smg> Parse() {
    RETURN_IF_ERROR(in_.Expect("smg"));
    RETURN_IF_ERROR(in_.Expect("{"));
    RETURN_IF_ERROR(in_.Expect("dims"));
    while (in_.PeekIdentifier() && !in_.Peek("op")) {
      ASSIGN_OR_RETURN(std::string name, in_.Identifier());
      RETURN_IF_ERROR(in_.Expect(":"));
      ASSIGN_OR_RETURN(int64_t extent, in_.Integer());
      if (!dims_.emplace(name, static_cast<DimId>(smg_.dims.size())).second || extent < 0) {
        return in_.Error("a new dim of a non-negative extent before this");
      }
      smg_.dims.push_back({name, extent});
    }
    while (in_.Accept("op")) RETURN_IF_ERROR(Op());
    std::vector<SmgMapping> mappings = Mappings(smg_);
    for (const SmgMapping& m : mappings) {
      ASSIGN_OR_RETURN(std::string_view line, in_.Until('\n'));
      if (StripSpace(line) != StripSpace(MappingToString(smg_, m))) {
        return in_.Error(
            StrCat("the mapping ", StripSpace(MappingToString(smg_, m)), " before this"));
      }
      in_.Accept("\n");
    }
    RETURN_IF_ERROR(in_.Expect("}"));
    return std::move(smg_);
  }

 private:
  int FindDim(std::string_view name) const {
    auto it = dims_.find(std::string(name));
    return it == dims_.end() ? -1 : it->second;
  }

  absl::StatusOr<ValueId> Value() {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(int64_t id, in_.PercentId());
    if (id < 0 || id >= static_cast<int64_t>(program_.values.size()))
      return at.Error("the id of a value of the program");
    return static_cast<ValueId>(id);
  }

  absl::Status ParseRead(SmgOp* op, std::vector<DType>* types) {
    auto find = [this](std::string_view name) { return FindDim(name); };
    SmgRead read;
    ASSIGN_OR_RETURN(read.value, Value());
    types->push_back(program_.value(read.value).type.dtype);
    for (size_t i = 0; i < smg_.ops.size(); ++i) {
      if (smg_.ops[i].output == read.value) read.producer = static_cast<int>(i);
    }
    ASSIGN_OR_RETURN(read.index, ParseIndexMap(in_, find));
    for (int r = 1; r < 4; ++r) {
      if (in_.Accept(StripSpace(kRelationNames[r])))
        read.relation = static_cast<SmgRead::Relation>(r);
    }
    ASSIGN_OR_RETURN(read.guards, ParseGuards(in_, find));
    op->reads.push_back(std::move(read));
    return absl::OkStatus();
  }

  absl::Status Op() {
    auto find = [this](std::string_view name) { return FindDim(name); };
    SmgOp op;
    ASSIGN_OR_RETURN(int64_t loop, in_.Integer());
    op.loop = static_cast<LoopId>(loop);
    ASSIGN_OR_RETURN(op.label, in_.Identifier());
    RETURN_IF_ERROR(in_.Expect("@"));
    ASSIGN_OR_RETURN(int64_t origin, in_.Integer());
    op.origin = static_cast<NodeId>(origin);
    ASSIGN_OR_RETURN(op.output, Value());
    ASSIGN_OR_RETURN(op.write, ParseIndexMap(in_, find));
    RETURN_IF_ERROR(in_.Expect("="));
    ASSIGN_OR_RETURN(std::string monoid, in_.Identifier());
    RETURN_IF_ERROR(in_.Expect("("));
    std::vector<DType> types;
    while (!in_.Accept(")")) {
      if (!op.reads.empty()) RETURN_IF_ERROR(in_.Expect(","));
      RETURN_IF_ERROR(ParseRead(&op, &types));
    }
    RETURN_IF_ERROR(in_.Expect(":"));
    ASSIGN_OR_RETURN(op.value, Expr::Parse(in_, types));
    RETURN_IF_ERROR(in_.Expect("over"));
    RETURN_IF_ERROR(in_.Expect("["));
    while (!in_.Accept("]")) {
      if (!op.dims.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(std::string name, in_.Identifier());
      DimId d = FindDim(name);
      if (d < 0) return in_.Error("the name of a dim before this");
      op.dims.push_back(d);
    }
    for (DimId d : op.dims) {
      bool written = false;
      for (const IndexExpr& e : op.write) written |= e.CoefficientOf(d) != 0;
      if (!written) op.reduced.push_back(d);
    }
    if (monoid != "map") {
      auto named = Monoid::Named(monoid, op.value.type());
      if (!named) return in_.Error(StrCat("a known monoid instead of ", monoid, " before this"));
      op.reduce = *named;
    }
    smg_.ops.push_back(std::move(op));
    return absl::OkStatus();
  }

  Lexer in_;
  const Program& program_;
  Smg smg_;
  std::unordered_map<std::string, DimId> dims_;
};

}  // namespace

std::string OpName(const Smg& smg, int i) { return StrCat("op ", i, " ", smg.op(i).label); }

std::string LabelOf(const Smg& smg, const SmgMapping& m) {
  std::string out(kMappingNames[static_cast<size_t>(m.kind)]);
  if (m.dim >= 0) out += StrCat(" ", smg.dim(m.dim).name);
  if (!m.monoid.empty()) out += StrCat(" ", m.monoid);
  if (m.kind != SmgMapping::kWindow) return out;
  const SmgWindow& w = m.window;
  return StrCat(out, " over ", smg.dim(w.over).name, ":", w.extent, " stride ", w.stride,
                " dilation ", w.dilation, " pad ", w.pad_begin, " ", w.pad_end);
}

std::string ToString(const Smg& smg) {
  std::string out = "smg {\n  dims";
  for (const SmgDim& d : smg.dims) out += StrCat(" ", d.name, ":", d.extent);
  out += "\n";
  for (const SmgOp& op : smg.ops) out += OpToString(smg, op);
  for (const SmgMapping& m : Mappings(smg)) out += MappingToString(smg, m);
  return out + "}\n";
}

absl::StatusOr<Smg> ParseSmg(std::string_view text, const Program& program) {
  return Parser(text, program).Parse();
}

}  // namespace fusion
