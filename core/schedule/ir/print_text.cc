#include <functional>
#include <optional>
#include <unordered_map>

#include "core/schedule/ir/schedule.h"
#include "core/schedule/ir/text_words.h"

namespace fusion {
namespace {

class Printer {
 public:
  explicit Printer(const Schedule& s) : s_(s) {}

  std::string Print() {
    out_ = StrCat("schedule ", Quote(s_.label), s_.bitwise ? " bitwise" : "",
                  s_.loose ? " loose" : "", " {\n  dims");
    for (const ScheduleDim& d : s_.dims) out_ += StrCat(" ", d.name, ":", d.extent);
    out_ += "\n";
    for (const Buffer& b : s_.buffers) {
      if (!b.IsLocal()) Tensor(b);
    }
    for (const auto& [to, from] : s_.may_alias) {
      out_ += StrCat("  alias ", Name(to), " ", Name(from), "\n");
    }
    for (const Phase& phase : s_.phases) {
      out_ += "  phase {\n";
      for (const Segment& segment : phase.segments) {
        out_ += "    segment";
        for (const GridDim& g : segment.grid) out_ += StrCat(" ", Dim(g.dim), ":", g.tile);
        for (const Halo& h : segment.halos) {
          out_ += StrCat(" halo ", Dim(h.dim),
                         IndexMapToString(h.reached, [this](int d) { return Dim(d); }));
        }
        out_ += " {\n";
        Body(segment.body, 6);
        out_ += "    }\n";
      }
      out_ += "  }\n";
    }
    return out_ + "}\n";
  }

 private:
  const std::string& Name(BufferId b) const { return s_.buffer(b).name; }
  const std::string& Dim(DimId d) const { return s_.dim(d).name; }
  std::string DimList(const std::vector<DimId>& dims) const {
    return StrCat("[", StrJoin(dims, ", ", [&](DimId d) { return Dim(d); }), "]");
  }
  std::string BufferList(const std::vector<BufferId>& list) const {
    return StrJoin(list, ", ", [&](BufferId b) { return Name(b); });
  }

  static std::string LayoutText(const BufferLayout& layout) {
    if (layout.blocked >= 0) {
      return StrCat(" blocked ", layout.blocked, " by ", layout.block,
                    layout.pack > 1 ? StrCat(" pack ", layout.pack) : "");
    }
    if (layout.strides.empty()) return "";
    return StrCat(" strides [", StrJoin(layout.strides, ", "), "]");
  }

  void Tensor(const Buffer& b) {
    out_ += StrCat("  ",
                   b.level == Level::kGlobal
                       ? StrCat("param ", b.name, " ", kParamKindNames[static_cast<size_t>(b.kind)])
                       : StrCat("workspace ", b.name),
                   " ", DTypeName(b.dtype), DimsToString(b.shape), LayoutText(b.layout),
                   b.same_as >= 0 ? StrCat(" in ", Name(b.same_as)) : "", "\n");
  }

  std::string AccessText(const Access& a) const {
    auto name = [&](int d) { return Dim(d); };
    return StrCat(Name(a.buffer), IndexMapToString(a.index, name), GuardsToString(a.guards, name));
  }
  std::string AccessList(const std::vector<Access>& list) const {
    return StrJoin(list, ", ", [&](const Access& a) { return AccessText(a); });
  }

  std::string ComputeText(const ElementOp& op) const {
    switch (op.op) {
      case ScalarOp::kConst:
        return StrCat(DTypeName(op.type), "(",
                      IsFloat(op.type) ? HexDouble(op.real) : StrCat(op.integer), ")");
      case ScalarOp::kAxis:
        return StrCat("axis(", Dim(op.axis), ")");
      case ScalarOp::kWithin:
        return StrCat("within(", Dim(op.axis), ", ", op.integer, ", ", op.end, ")");
      default:
        break;
    }
    std::string name(GetScalarInfo(op.op).name);
    if (NamesItsType(op.op)) name += StrCat(".", DTypeName(op.type));
    return StrCat(name, "(", StrJoin(op.args, ", ", [](int v) { return StrCat("v", v); }), ")");
  }

  std::string ElementText(const ElementOp& op) const {
    switch (op.kind) {
      case ElementOp::kLoad:
        return StrCat("v", op.result, " = load ", AccessText(op.access[0]));
      case ElementOp::kStore:
        return StrCat("store ", AccessText(op.access[0]), " = v", op.args[0]);
      case ElementOp::kReduce:
        return StrCat("reduce ", op.monoid, " ", AccessList(op.access), " = v", op.args[0]);
      case ElementOp::kCompute:
        break;
    }
    return StrCat("v", op.result, " = ", ComputeText(op));
  }

  void Line(int indent, std::string_view text) {
    out_.append(static_cast<size_t>(indent), ' ');
    out_ += text;
    out_ += '\n';
  }

  void Body(const Block& block, int indent) {
    for (const Stmt& stmt : block) {
      std::visit([&](const auto& node) { Print(node, indent); }, stmt.node);
    }
  }

  void Print(const LoopStmt& l, int indent) {
    std::string range = l.end >= 0 ? StrCat(" from ", l.begin, " to ", l.end) : "";
    std::string stages = l.stages != 1 ? StrCat(" stages ", l.stages) : "";
    Line(indent,
         StrCat("loop ", Dim(l.dim), ":", l.tile, range, stages, l.blocks ? " blocks" : "", " {"));
    Body(l.body, indent + 2);
    Line(indent, "}");
  }
  void Print(const IfStmt& s, int indent) {
    auto name = [this](int d) { return Dim(d); };
    Line(indent,
         StrCat("if ",
                StrJoin(s.somewhere, " and ",
                        [&](const IndexExpr& e) { return StrCat(e.ToString(name), " >= 0"); }),
                s.first < 0 ? "" : StrCat(" or first ", Dim(s.first)),
                s.watched < 0
                    ? ""
                    : StrCat(" unless ", s_.buffer(s.watched).name, " >= ", HexDouble(s.least)),
                " {"));
    Body(s.body, indent + 2);
    Line(indent, "}");
  }
  void Print(const AllocStmt& s, int indent) {
    const Buffer& b = s_.buffer(s.buffer);
    Line(indent, StrCat("alloc ", b.name, b.level == Level::kAcc ? " acc " : " staged ",
                        DTypeName(b.dtype), DimList(b.dims), LayoutText(b.layout)));
  }
  void Print(const InitStmt& s, int indent) {
    Line(indent, StrCat("init ", BufferList(s.buffers), " = ", s.monoid));
  }
  void Print(const EachStmt& s, int indent) {
    const std::string at =
        s.IsPlaced()
            ? StrCat(" at ", s.at.ToString([this](int d) { return Dim(d); }), " = v", s.place)
            : "";
    Line(indent, StrCat("each ", DimList(s.dims), at, " {"));
    for (const ElementOp& op : s.ops) Line(indent + 2, ElementText(op));
    Line(indent, "}");
  }
  void Print(const MmaStmt& s, int indent) {
    Line(indent, StrCat("mma ", AccessText(s.c), s.accumulate ? " += " : " = ", AccessText(s.a),
                        " * ", AccessText(s.b), " rows ", s.m < 0 ? "-" : Dim(s.m), " columns ",
                        Dim(s.n), " over ", DimList(s.over), s.flushes ? " flushing" : ""));
  }
  void Print(const CopyStmt& s, int indent) {
    Line(indent, StrCat("copy ", AccessText(s.target), " = ", AccessText(s.source), " over ",
                        DimList(s.dims)));
  }
  void Print(const MergeStmt& s, int indent) {
    Line(indent, StrCat("merge ", s.monoid, " ", AccessList(s.target), " = ", AccessList(s.source),
                        " over ", DimList(s.dims)));
  }
  void Print(const CallStmt& s, int indent) {
    std::string attrs = s.attrs.ToString();
    Line(indent, StrCat("call ", s.op, attrs.empty() ? "" : " ", attrs, " (", BufferList(s.inputs),
                        ") to (", BufferList(s.outputs), ")",
                        s.scratch.empty() ? "" : StrCat(" in (", BufferList(s.scratch), ")"),
                        s.over.empty() ? "" : StrCat(" over ", DimList(s.over))));
  }

  const Schedule& s_;
  std::string out_;
};

}  // namespace

std::string ToString(const Schedule& schedule) { return Printer(schedule).Print(); }

}  // namespace fusion
