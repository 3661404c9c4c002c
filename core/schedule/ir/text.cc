#include <functional>
#include <optional>
#include <unordered_map>

#include "core/schedule/ir/schedule.h"
#include "core/schedule/ir/text_words.h"

namespace fusion {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  absl::StatusOr<Schedule> Parse() {
    RETURN_IF_ERROR(in_.Expect("schedule"));
    ASSIGN_OR_RETURN(s_.label, in_.QuotedString());
    s_.bitwise = in_.Accept("bitwise");
    s_.loose = in_.Accept("loose");
    RETURN_IF_ERROR(in_.Expect("{"));
    RETURN_IF_ERROR(in_.Expect("dims"));
    while (in_.PeekIdentifier() && !in_.Peek("param") && !in_.Peek("workspace") &&
           !in_.Peek("phase")) {
      ASSIGN_OR_RETURN(std::string name, in_.Identifier());
      RETURN_IF_ERROR(in_.Expect(":"));
      ASSIGN_OR_RETURN(int64_t extent, in_.Integer());
      if (extent < 0 || !dims_.emplace(name, static_cast<DimId>(s_.dims.size())).second) {
        return in_.Error("a new dim of a non-negative extent before this");
      }
      s_.dims.push_back({name, extent});
    }
    while (in_.Peek("param") || in_.Peek("workspace")) RETURN_IF_ERROR(Tensor());
    while (in_.Accept("alias")) {
      ASSIGN_OR_RETURN(BufferId to, BufferName());
      ASSIGN_OR_RETURN(BufferId from, BufferName());
      s_.may_alias.emplace_back(to, from);
    }
    while (in_.Accept("phase")) RETURN_IF_ERROR(ParsePhase());
    RETURN_IF_ERROR(in_.Expect("}"));
    if (!in_.AtEnd()) return in_.Error("the end");
    return std::move(s_);
  }

 private:
  static constexpr int kMaxDepth = 64;

  int FindDim(std::string_view name) const {
    auto it = dims_.find(std::string(name));
    return it == dims_.end() ? -1 : it->second;
  }
  absl::StatusOr<DimId> DimName() {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(std::string name, in_.Identifier());
    DimId d = FindDim(name);
    if (d < 0) return at.Error("the name of a dim");
    return d;
  }
  absl::StatusOr<std::vector<DimId>> DimList() {
    std::vector<DimId> dims;
    RETURN_IF_ERROR(in_.Expect("["));
    while (!in_.Accept("]")) {
      if (!dims.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(DimId d, DimName());
      dims.push_back(d);
    }
    return dims;
  }
  absl::StatusOr<BufferId> BufferName() {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(std::string name, in_.Identifier());
    auto it = buffers_.find(name);
    if (it == buffers_.end()) return at.Error("the name of a buffer declared above");
    return it->second;
  }
  absl::StatusOr<DType> Type() {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(std::string name, in_.Identifier());
    auto dtype = ParseDType(name);
    if (!dtype) return at.Error("an element type");
    return *dtype;
  }

  absl::Status Declare(Buffer buffer) {
    if (!buffers_.emplace(buffer.name, static_cast<BufferId>(s_.buffers.size())).second) {
      return in_.Error(StrCat("a new name instead of ", buffer.name, " before this"));
    }
    s_.buffers.push_back(std::move(buffer));
    return absl::OkStatus();
  }

  absl::Status Layout(BufferLayout* layout) {
    if (in_.Accept("blocked")) {
      ASSIGN_OR_RETURN(int64_t dim, in_.Integer());
      RETURN_IF_ERROR(in_.Expect("by"));
      ASSIGN_OR_RETURN(layout->block, in_.Integer());
      if (dim < 0 || dim > 64) return in_.Error("the position of a dim before this");
      layout->blocked = static_cast<int>(dim);
      if (in_.Accept("pack")) {
        ASSIGN_OR_RETURN(layout->pack, in_.Integer());
      }
    } else if (in_.Accept("strides")) {
      RETURN_IF_ERROR(in_.Expect("["));
      while (!in_.Accept("]")) {
        if (!layout->strides.empty()) RETURN_IF_ERROR(in_.Expect(","));
        ASSIGN_OR_RETURN(int64_t stride, in_.Integer());
        layout->strides.push_back(stride);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Tensor() {
    Buffer b;
    bool param = in_.Accept("param");
    if (!param) RETURN_IF_ERROR(in_.Expect("workspace"));
    b.level = param ? Level::kGlobal : Level::kWorkspace;
    ASSIGN_OR_RETURN(b.name, in_.Identifier());
    if (param) {
      bool known = false;
      for (size_t k = 0; k < 3 && !known; ++k) {
        known = in_.Accept(kParamKindNames[k]);
        if (known) b.kind = static_cast<ParamKind>(k);
      }
      if (!known) return in_.Error("input, weight or output");
      ++s_.params;
    }
    ASSIGN_OR_RETURN(TensorType type, TensorType::Parse(in_));
    if (!type.shape.is_static()) return in_.Error("a static shape before this");
    b.dtype = type.dtype;
    b.shape = type.shape.ToDims();
    RETURN_IF_ERROR(Layout(&b.layout));
    if (!param && in_.Accept("in")) {
      ASSIGN_OR_RETURN(b.same_as, BufferName());
    }
    return Declare(std::move(b));
  }

  absl::Status ParsePhase() {
    Phase phase;
    RETURN_IF_ERROR(in_.Expect("{"));
    while (in_.Accept("segment")) {
      Segment segment;
      while (!in_.Peek("{")) {
        if (in_.Accept("halo")) {
          RETURN_IF_ERROR(ParseHalo(&segment));
          continue;
        }
        GridDim g;
        ASSIGN_OR_RETURN(g.dim, DimName());
        RETURN_IF_ERROR(in_.Expect(":"));
        ASSIGN_OR_RETURN(g.tile, in_.Integer());
        segment.grid.push_back(g);
      }
      ASSIGN_OR_RETURN(segment.body, Body(0));
      phase.segments.push_back(std::move(segment));
    }
    RETURN_IF_ERROR(in_.Expect("}"));
    s_.phases.push_back(std::move(phase));
    return absl::OkStatus();
  }

  absl::Status ParseHalo(Segment* segment) {
    Halo h;
    ASSIGN_OR_RETURN(h.dim, DimName());
    ASSIGN_OR_RETURN(h.reached,
                     ParseIndexMap(in_, [this](std::string_view name) { return FindDim(name); }));
    segment->halos.push_back(std::move(h));
    return absl::OkStatus();
  }

  absl::StatusOr<Access> ParseAccess() {
    Access a;
    ASSIGN_OR_RETURN(a.buffer, BufferName());
    auto find = [this](std::string_view name) { return FindDim(name); };
    ASSIGN_OR_RETURN(a.index, ParseIndexMap(in_, find));
    ASSIGN_OR_RETURN(a.guards, ParseGuards(in_, find));
    return a;
  }
  absl::StatusOr<std::vector<Access>> AccessList() {
    std::vector<Access> list;
    do {
      ASSIGN_OR_RETURN(Access a, ParseAccess());
      list.push_back(std::move(a));
    } while (in_.Accept(","));
    return list;
  }
  absl::StatusOr<std::vector<BufferId>> BufferList(std::string_view stop) {
    std::vector<BufferId> list;
    while (!in_.Accept(stop)) {
      if (!list.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(BufferId b, BufferName());
      list.push_back(b);
    }
    return list;
  }

  absl::StatusOr<Block> Body(int depth) {
    if (depth > kMaxDepth) return in_.Error("fewer nested blocks");
    RETURN_IF_ERROR(in_.Expect("{"));
    Block block;
    while (!in_.Accept("}")) {
      const Lexer at = in_;
      ASSIGN_OR_RETURN(std::string word, in_.Identifier());
      std::optional<absl::StatusOr<Stmt>> stmt;
      if (word == "loop") stmt = Loop(depth);
      if (word == "if") stmt = If(depth);
      if (word == "alloc") stmt = Alloc();
      if (word == "init") stmt = Init();
      if (word == "each") stmt = Each();
      if (word == "mma") stmt = Mma();
      if (word == "copy") stmt = Copy();
      if (word == "merge") stmt = Merge();
      if (word == "call") stmt = Call();
      if (!stmt.has_value()) return at.Error("a statement");
      RETURN_IF_ERROR(stmt->status());
      block.push_back(**std::move(stmt));
    }
    return block;
  }

  absl::StatusOr<Stmt> Loop(int depth) {
    LoopStmt l;
    ASSIGN_OR_RETURN(l.dim, DimName());
    RETURN_IF_ERROR(in_.Expect(":"));
    ASSIGN_OR_RETURN(l.tile, in_.Integer());
    if (in_.Accept("from")) {
      ASSIGN_OR_RETURN(l.begin, in_.Integer());
      RETURN_IF_ERROR(in_.Expect("to"));
      ASSIGN_OR_RETURN(l.end, in_.Integer());
    }
    if (in_.Accept("stages")) {
      ASSIGN_OR_RETURN(int64_t stages, in_.Integer());
      if (stages < 1 || stages > 64) return in_.Error("1..64 stages before this");
      l.stages = static_cast<int>(stages);
    }
    l.blocks = in_.Accept("blocks");
    ASSIGN_OR_RETURN(l.body, Body(depth + 1));
    return Stmt{std::move(l)};
  }
  absl::StatusOr<Stmt> If(int depth) {
    IfStmt s;
    auto find = [this](std::string_view name) { return FindDim(name); };
    do {
      ASSIGN_OR_RETURN(IndexExpr e, IndexExpr::Parse(in_, find));
      RETURN_IF_ERROR(in_.Expect(">="));
      RETURN_IF_ERROR(in_.Expect("0"));
      s.somewhere.push_back(std::move(e));
    } while (in_.Accept("and"));
    if (in_.Accept("or")) {
      RETURN_IF_ERROR(in_.Expect("first"));
      ASSIGN_OR_RETURN(s.first, DimName());
    }
    if (in_.Accept("unless")) {
      ASSIGN_OR_RETURN(s.watched, BufferName());
      RETURN_IF_ERROR(in_.Expect(">="));
      ASSIGN_OR_RETURN(s.least, in_.Number());
    }
    ASSIGN_OR_RETURN(s.body, Body(depth + 1));
    return Stmt{std::move(s)};
  }
  absl::StatusOr<Stmt> Alloc() {
    Buffer b;
    ASSIGN_OR_RETURN(b.name, in_.Identifier());
    if (in_.Accept("acc")) {
      b.level = Level::kAcc;
    } else {
      RETURN_IF_ERROR(in_.Expect("staged"));
    }
    ASSIGN_OR_RETURN(b.dtype, Type());
    ASSIGN_OR_RETURN(b.dims, DimList());
    RETURN_IF_ERROR(Layout(&b.layout));
    RETURN_IF_ERROR(Declare(std::move(b)));
    return Stmt{AllocStmt{static_cast<BufferId>(s_.buffers.size()) - 1}};
  }
  absl::StatusOr<Stmt> Init() {
    InitStmt s;
    ASSIGN_OR_RETURN(s.buffers, BufferList("="));
    ASSIGN_OR_RETURN(s.monoid, in_.Identifier());
    return Stmt{std::move(s)};
  }
  absl::StatusOr<Stmt> Mma() {
    MmaStmt s;
    ASSIGN_OR_RETURN(s.c, ParseAccess());
    s.accumulate = in_.Accept("+=");
    if (!s.accumulate) RETURN_IF_ERROR(in_.Expect("="));
    ASSIGN_OR_RETURN(s.a, ParseAccess());
    RETURN_IF_ERROR(in_.Expect("*"));
    ASSIGN_OR_RETURN(s.b, ParseAccess());
    RETURN_IF_ERROR(in_.Expect("rows"));
    if (!in_.Accept("-")) {
      ASSIGN_OR_RETURN(s.m, DimName());
    }
    RETURN_IF_ERROR(in_.Expect("columns"));
    ASSIGN_OR_RETURN(s.n, DimName());
    RETURN_IF_ERROR(in_.Expect("over"));
    ASSIGN_OR_RETURN(s.over, DimList());
    s.flushes = in_.Accept("flushing");
    return Stmt{std::move(s)};
  }
  absl::StatusOr<Stmt> Copy() {
    CopyStmt s;
    ASSIGN_OR_RETURN(s.target, ParseAccess());
    RETURN_IF_ERROR(in_.Expect("="));
    ASSIGN_OR_RETURN(s.source, ParseAccess());
    RETURN_IF_ERROR(in_.Expect("over"));
    ASSIGN_OR_RETURN(s.dims, DimList());
    return Stmt{std::move(s)};
  }
  absl::StatusOr<Stmt> Merge() {
    MergeStmt s;
    ASSIGN_OR_RETURN(s.monoid, in_.Identifier());
    ASSIGN_OR_RETURN(s.target, AccessList());
    RETURN_IF_ERROR(in_.Expect("="));
    ASSIGN_OR_RETURN(s.source, AccessList());
    RETURN_IF_ERROR(in_.Expect("over"));
    ASSIGN_OR_RETURN(s.dims, DimList());
    return Stmt{std::move(s)};
  }
  absl::StatusOr<Stmt> Call() {
    CallStmt s;
    ASSIGN_OR_RETURN(s.op, in_.Identifier());
    ASSIGN_OR_RETURN(s.attrs, AttrMap::Parse(in_));
    RETURN_IF_ERROR(in_.Expect("("));
    ASSIGN_OR_RETURN(s.inputs, BufferList(")"));
    RETURN_IF_ERROR(in_.Expect("to"));
    RETURN_IF_ERROR(in_.Expect("("));
    ASSIGN_OR_RETURN(s.outputs, BufferList(")"));
    if (in_.Accept("in")) {
      RETURN_IF_ERROR(in_.Expect("("));
      ASSIGN_OR_RETURN(s.scratch, BufferList(")"));
    }
    if (in_.Accept("over")) {
      ASSIGN_OR_RETURN(s.over, DimList());
    }
    return Stmt{std::move(s)};
  }

  absl::StatusOr<int> VectorName() {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(std::string word, in_.Identifier());
    if (word.size() < 2 || word.size() > 7 || word[0] != 'v' ||
        word.find_first_not_of("0123456789", 1) != std::string::npos) {
      return at.Error("a value v<i>");
    }
    return std::stoi(word.substr(1));
  }

  absl::StatusOr<Stmt> Each() {
    EachStmt s;
    ASSIGN_OR_RETURN(s.dims, DimList());
    if (in_.Accept("at")) {
      auto find = [this](std::string_view name) { return FindDim(name); };
      ASSIGN_OR_RETURN(s.at, IndexExpr::Parse(in_, find));
      RETURN_IF_ERROR(in_.Expect("="));
      ASSIGN_OR_RETURN(s.place, VectorName());
    }
    RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Accept("}")) {
      ElementOp op;
      if (in_.Accept("store")) {
        op.kind = ElementOp::kStore;
        ASSIGN_OR_RETURN(Access a, ParseAccess());
        op.access.push_back(std::move(a));
      } else if (in_.Accept("reduce")) {
        op.kind = ElementOp::kReduce;
        ASSIGN_OR_RETURN(op.monoid, in_.Identifier());
        ASSIGN_OR_RETURN(op.access, AccessList());
      } else {
        ASSIGN_OR_RETURN(op.result, VectorName());
        RETURN_IF_ERROR(in_.Expect("="));
        if (in_.Accept("load")) {
          op.kind = ElementOp::kLoad;
          ASSIGN_OR_RETURN(Access a, ParseAccess());
          op.type = s_.buffer(a.buffer).dtype;
          op.access.push_back(std::move(a));
        } else {
          RETURN_IF_ERROR(Compute(&op));
        }
        types_[op.result] = op.type;
        s.ops.push_back(std::move(op));
        continue;
      }
      RETURN_IF_ERROR(in_.Expect("="));
      ASSIGN_OR_RETURN(int value, VectorName());
      op.args = {value};
      op.type = types_[value];
      s.ops.push_back(std::move(op));
    }
    return Stmt{std::move(s)};
  }

  absl::Status Compute(ElementOp* op) {
    op->kind = ElementOp::kCompute;
    const Lexer at = in_;
    ASSIGN_OR_RETURN(std::string word, in_.Identifier());
    RETURN_IF_ERROR(in_.Expect("("));
    if (word == "axis" || word == "within") {
      op->op = word == "axis" ? ScalarOp::kAxis : ScalarOp::kWithin;
      op->type = word == "axis" ? DType::kI64 : DType::kBool;
      ASSIGN_OR_RETURN(op->axis, DimName());
      if (word == "within") {
        RETURN_IF_ERROR(in_.Expect(","));
        ASSIGN_OR_RETURN(op->integer, in_.Integer());
        RETURN_IF_ERROR(in_.Expect(","));
        ASSIGN_OR_RETURN(op->end, in_.Integer());
      }
    } else if (auto dtype = ParseDType(word)) {
      op->op = ScalarOp::kConst;
      op->type = *dtype;
      if (IsFloat(*dtype)) {
        ASSIGN_OR_RETURN(op->real, in_.Number());
      } else {
        ASSIGN_OR_RETURN(op->integer, in_.Integer());
      }
    } else {
      const size_t dot = word.find('.');
      auto found = FindScalarOp(std::string_view(word).substr(0, dot));
      const bool cast = found && NamesItsType(*found);
      auto to = cast && dot != std::string::npos
                    ? ParseDType(std::string_view(word).substr(dot + 1))
                    : std::nullopt;
      if (!found || cast != (dot != std::string::npos) || (cast && !to) ||
          GetScalarInfo(*found).typing == ScalarTyping::kLeaf) {
        return at.Error("a scalar function");
      }
      op->op = *found;
      do {
        ASSIGN_OR_RETURN(int value, VectorName());
        op->args.push_back(value);
      } while (in_.Accept(","));
      std::vector<DType> types;
      for (int v : op->args) types.push_back(types_[v]);
      if (cast) {
        op->type = *to;
      } else {
        ASSIGN_OR_RETURN(op->type, ScalarResultType(op->op, types));
      }
    }
    return in_.Expect(")");
  }

  Lexer in_;
  Schedule s_;
  std::unordered_map<std::string, DimId> dims_;
  std::unordered_map<std::string, BufferId> buffers_;
  std::unordered_map<int, DType> types_;  // of the values of the current region
};

}  // namespace

absl::StatusOr<Schedule> ParseSchedule(std::string_view text) { return Parser(text).Parse(); }

}  // namespace fusion
