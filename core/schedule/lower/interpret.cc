#include "core/schedule/lower/interpret.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>

#include "core/graph/evaluate/evaluate.h"
#include "core/schedule/lower/opaque.h"

namespace fusion {
namespace {

struct Window {
  int64_t begin = 0;
  int64_t end = 0;
};

// A value of one element, of whichever class its type has.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

struct Storage {
  Dims extents;
  Dims origin;  // absolute coordinate of element 0 (local buffers)
  std::vector<Scalar> data;
};

// An expression of scalars, compiled once for all elements.
class ScalarExpr {
 public:
  explicit ScalarExpr(const Expr& e) : compiled_(e) {
    e.VisitOnce([this](const Expr& n) {
      if (n.op() != ScalarOp::kInput) return;
      auto input = static_cast<size_t>(n.index());
      if (input >= reals_.size()) reals_.resize(input + 1, false);
      reals_[input] = IsFloat(n.type());
    });
  }

  Scalar Evaluate(const std::vector<Scalar>& inputs, int64_t coordinate) {
    operands_.clear();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool real = i < reals_.size() && reals_[i];
      operands_.push_back(real ? CompiledExpr::Operand{.reals = &inputs[i].real}
                               : CompiledExpr::Operand{.integers = &inputs[i].integer});
    }
    axes_.assign(1, {.integers = &coordinate});
    const CompiledExpr::Operand r = compiled_.Evaluate(1, operands_, axes_);
    return {r.reals != nullptr ? r.reals[0] : 0, r.integers != nullptr ? r.integers[0] : 0};
  }

 private:
  CompiledExpr compiled_;
  std::vector<bool> reals_;  // by input: whether it is a float
  std::vector<CompiledExpr::Operand> operands_;
  std::vector<CompiledExpr::Operand> axes_;
};

// A monoid whose expressions are compiled.
struct ScalarMonoid {
  explicit ScalarMonoid(const Monoid& monoid)
      : lift(monoid.lift().begin(), monoid.lift().end()),
        merge(monoid.merge().begin(), monoid.merge().end()) {}

  std::vector<ScalarExpr> lift;
  std::vector<ScalarExpr> merge;
};

// What the ops of an EachStmt have computed of one element, by the number of the result.
struct ElementValues {
  std::vector<Scalar> values;
  std::vector<DType> types;
};

// Fresh memory: reading it before writing shows as NaN.
constexpr Scalar kPoison = {std::numeric_limits<double>::quiet_NaN(), INT64_C(-999999999)};

class Interpreter {
 public:
  Interpreter(const Schedule& s, std::vector<HostTensor>* params) : s_(s), params_(params) {
    storage_.resize(s.buffers.size());
    for (const ScheduleDim& d : s.dims) windows_.push_back({0, d.extent});
  }

  absl::Status Run() {
    RETURN_IF_ERROR(LoadParams());
    for (const Phase& phase : s_.phases) {
      for (const Segment& segment : phase.segments) RETURN_IF_ERROR(RunSegment(segment));
    }
    StoreParams();
    return absl::OkStatus();
  }

 private:
  absl::Status LoadParams() {
    if (params_->size() != static_cast<size_t>(s_.params)) {
      return InvalidArgument(params_->size(), " params given, the schedule has ", s_.params);
    }
    for (size_t i = 0; i < s_.buffers.size(); ++i) {
      const Buffer& b = s_.buffers[i];
      if (b.IsLocal()) continue;
      Storage& to = storage_[i];
      to.extents = b.shape;
      to.origin.assign(b.shape.size(), 0);
      if (b.same_as >= 0) continue;
      to.data.assign(static_cast<size_t>(NumElements(b.shape)), kPoison);
      if (b.level != Level::kGlobal) continue;
      const HostTensor& from = (*params_)[i];
      if (from.dtype() != b.dtype || from.dims() != b.shape) {
        return InvalidArgument("param ", b.name, " is ", DTypeName(from.dtype()),
                               DimsToString(from.dims()), ", expected ", DTypeName(b.dtype),
                               DimsToString(b.shape));
      }
      for (int64_t e = 0; e < from.elements(); ++e) {
        Scalar& value = to.data[static_cast<size_t>(e)];
        if (IsFloat(b.dtype)) {
          value.real = from.GetDouble(e);
        } else {
          value.integer = from.GetInt(e);
        }
      }
    }
    return absl::OkStatus();
  }

  void StoreParams() {
    for (int i = 0; i < s_.params; ++i) {
      const Buffer& b = s_.buffer(i);
      if (b.kind != ParamKind::kOutput) continue;
      HostTensor& to = (*params_)[static_cast<size_t>(i)];
      for (int64_t e = 0; e < to.elements(); ++e) {
        const Scalar& value = storage_[static_cast<size_t>(i)].data[static_cast<size_t>(e)];
        if (IsFloat(b.dtype)) {
          to.SetDouble(e, value.real);
        } else {
          to.SetInt(e, value.integer);
        }
      }
    }
  }

  absl::Status RunSegment(const Segment& segment) {
    std::vector<int64_t> tiles;
    int64_t tasks = 1;
    for (const GridDim& g : segment.grid) {
      tiles.push_back((s_.dim(g.dim).extent + g.tile - 1) / g.tile);
      tasks *= tiles.back();
    }
    for (int64_t task = 0; task < tasks; ++task) {
      int64_t rest = task;
      for (size_t i = segment.grid.size(); i-- > 0;) {
        const GridDim& g = segment.grid[i];
        int64_t begin = rest % tiles[i] * g.tile;
        rest /= tiles[i];
        windows_[static_cast<size_t>(g.dim)] = {begin,
                                                std::min(begin + g.tile, s_.dim(g.dim).extent)};
      }
      for (const Halo& h : segment.halos) {
        IndexRange range = HaloRange(h, s_.dim(h.dim).extent, [this](int d) {
          const Window& w = windows_[static_cast<size_t>(d)];
          return IndexRange{w.begin, w.end};
        });
        windows_[static_cast<size_t>(h.dim)] = {range.begin, range.end};
      }
      RETURN_IF_ERROR(Body(segment.body));
      for (const Halo& h : segment.halos) {
        windows_[static_cast<size_t>(h.dim)] = {0, s_.dim(h.dim).extent};
      }
      for (const GridDim& g : segment.grid) {
        windows_[static_cast<size_t>(g.dim)] = {0, s_.dim(g.dim).extent};
      }
    }
    return absl::OkStatus();
  }

  absl::Status Body(const Block& block) {
    for (const Stmt& stmt : block) {
      RETURN_IF_ERROR(std::visit([&](const auto& node) { return Exec(node); }, stmt.node));
    }
    return absl::OkStatus();
  }

  absl::Status Exec(const LoopStmt& l) {
    Window& window = windows_[static_cast<size_t>(l.dim)];
    Window outer = window;
    int64_t begin = l.end >= 0 ? std::max(outer.begin, l.begin) : outer.begin;
    int64_t end = l.end >= 0 ? std::min(outer.end, l.end) : outer.end;
    for (int64_t at = begin; at < end; at += l.tile) {
      window = {at, std::min(at + l.tile, end)};
      RETURN_IF_ERROR(Body(l.body));
    }
    window = outer;
    return absl::OkStatus();
  }

  absl::Status Exec(const IfStmt& s) {
    if (s.first >= 0 && windows_[static_cast<size_t>(s.first)].begin == 0) return Body(s.body);
    for (const IndexExpr& e : s.somewhere) {
      IndexRange range = RangeOf(e, [this](int d) {
        const Window& w = windows_[static_cast<size_t>(d)];
        return IndexRange{w.begin, w.end};
      });
      if (range.end > 0) continue;
      bool idle = s.watched < 0 || storage_[static_cast<size_t>(s.watched)].data[0].real >= s.least;
      return idle ? absl::OkStatus() : Body(s.body);
    }
    return Body(s.body);
  }

  absl::Status Exec(const AllocStmt& s) {
    Storage& to = storage_[static_cast<size_t>(s.buffer)];
    to.extents.clear();
    to.origin.clear();
    for (DimId d : s_.buffer(s.buffer).dims) {
      const Window& w = windows_[static_cast<size_t>(d)];
      to.extents.push_back(w.end - w.begin);
      to.origin.push_back(w.begin);
    }
    to.data.assign(static_cast<size_t>(NumElements(to.extents)), kPoison);
    return absl::OkStatus();
  }

  absl::Status Exec(const InitStmt& s) {
    auto monoid = Monoid::Named(s.monoid, s_.buffer(s.buffers[0]).dtype);
    for (size_t i = 0; i < s.buffers.size(); ++i) {
      const Expr& identity = monoid->identity()[i];
      Scalar value;
      if (IsFloat(identity.type())) {
        value.real = identity.value();
      } else {
        value.integer = identity.integer();
      }
      for (Scalar& e : storage_[static_cast<size_t>(s.buffers[i])].data) e = value;
    }
    return absl::OkStatus();
  }

  // Calls body() for every point of the windows of `dims`; the point is in at_.
  absl::Status ForPoints(const std::vector<DimId>& dims,
                         const std::function<absl::Status()>& body) {
    at_.clear();
    for (const Window& w : windows_) at_.push_back(w.begin);
    for (DimId d : dims) {
      const Window& w = windows_[static_cast<size_t>(d)];
      if (w.begin >= w.end) return absl::OkStatus();
    }
    for (;;) {
      RETURN_IF_ERROR(body());
      size_t i = dims.size();
      for (; i-- > 0;) {
        auto d = static_cast<size_t>(dims[i]);
        if (++at_[d] < windows_[d].end) break;
        at_[d] = windows_[d].begin;
      }
      if (i == static_cast<size_t>(-1)) return absl::OkStatus();
    }
  }

  static bool Holds(const Access& a, const std::vector<int64_t>& at) {
    return std::all_of(a.guards.begin(), a.guards.end(), [&](const Guard& g) {
      int64_t c = at[static_cast<size_t>(g.axis)];
      return c >= g.begin && c < g.end;
    });
  }

  // `values`: those of the element so far, which indirect accesses index by.
  absl::StatusOr<Scalar*> Element(const Access& a, const std::vector<Scalar>* values = nullptr) {
    const Storage& from = storage_[static_cast<size_t>(a.buffer)];
    int64_t offset = 0;
    for (size_t d = 0; d < a.index.size(); ++d) {
      int64_t index = a.index[d].At(at_) - from.origin[d];
      if (a.index[d].indirect() >= 0 && values != nullptr) {
        int64_t chosen = (*values)[static_cast<size_t>(a.index[d].indirect())].integer;
        if (chosen < 0) chosen += from.extents[d];
        index += std::clamp<int64_t>(chosen, 0, from.extents[d] - 1);
      }
      if (index < 0 || index >= from.extents[d]) {
        return OutOfRange(a.buffer, d, index, from.extents[d]);
      }
      offset = offset * from.extents[d] + index;
    }
    return &storage_[static_cast<size_t>(s_.MemoryOf(a.buffer))].data[static_cast<size_t>(offset)];
  }

  absl::Status OutOfRange(BufferId b, size_t dim, int64_t index, int64_t extent) const {
    return Internal("schedule ", Quote(s_.label), ": ", s_.buffer(b).name, " dim ", dim,
                    " is accessed at ", index, ", the tile has ", extent);
  }

  void Store(Scalar* to, DType type, Scalar value) {
    if (IsFloat(type)) {
      to->real = RoundTo(type, value.real);
    } else {
      to->integer = WrapInteger(type, value.integer);
    }
  }

  static Expr ExprOf(const ElementOp& op, const std::vector<DType>& types) {
    std::vector<Expr> leaves;
    for (size_t i = 0; i < op.args.size(); ++i) {
      leaves.push_back(Expr::Input(static_cast<int>(i), types[static_cast<size_t>(op.args[i])]));
    }
    if (op.op == ScalarOp::kCast) return Expr::Cast(leaves[0], op.type);
    if (op.op == ScalarOp::kBitCast) return Expr::BitCast(leaves[0], op.type);
    if (op.op == ScalarOp::kSelect) return Expr::Select(leaves[0], leaves[1], leaves[2]);
    if (leaves.size() == 1) return Expr::Unary(op.op, leaves[0]);
    return Expr::Binary(op.op, leaves[0], leaves[1]);
  }

  // `types` are those of the element's values; they are the same for every element of an op.
  ScalarExpr& Compiled(const ElementOp& op, const std::vector<DType>& types) {
    auto found = exprs_.find(&op);
    if (found == exprs_.end()) found = exprs_.emplace(&op, ScalarExpr(ExprOf(op, types))).first;
    return found->second;
  }

  // `of` is the op or statement that uses the monoid: always this one.
  ScalarMonoid& CompiledMonoid(const void* of, const std::string& name, DType type) {
    auto found = monoids_.find(of);
    if (found == monoids_.end()) {
      found = monoids_.emplace(of, ScalarMonoid(*Monoid::Named(name, type))).first;
    }
    return found->second;
  }

  static void Merge(ScalarMonoid& monoid, const std::vector<Scalar*>& state,
                    const std::vector<Scalar>& other) {
    std::vector<Scalar> both;
    for (Scalar* s : state) both.push_back(*s);
    both.insert(both.end(), other.begin(), other.end());
    for (size_t i = 0; i < state.size(); ++i) *state[i] = monoid.merge[i].Evaluate(both, 0);
  }

  absl::Status Exec(const EachStmt& s) {
    int results = 0;
    for (const ElementOp& op : s.ops) results = std::max(results, op.result + 1);
    ElementValues element{std::vector<Scalar>(static_cast<size_t>(results)),
                          std::vector<DType>(static_cast<size_t>(results))};
    return ForPoints(s.dims, [&]() -> absl::Status {
      for (const ElementOp& op : s.ops) {
        RETURN_IF_ERROR(Element(s, op, &element));
        const bool elsewhere = s.IsPlaced() && op.result == s.place &&
                               element.values[static_cast<size_t>(s.place)].integer != s.at.At(at_);
        if (elsewhere) break;
      }
      return absl::OkStatus();
    });
  }

  absl::Status Element(const EachStmt& s, const ElementOp& op, ElementValues* element) {
    auto value = [element](int result) -> Scalar& {
      return element->values[static_cast<size_t>(result)];
    };
    auto type = [element](int result) -> DType& {
      return element->types[static_cast<size_t>(result)];
    };
    switch (op.kind) {
      case ElementOp::kLoad: {
        type(op.result) = op.type;
        if (!Holds(op.access[0], at_)) {
          value(op.result) = {};
          return absl::OkStatus();
        }
        ASSIGN_OR_RETURN(Scalar * from, Element(op.access[0], &element->values));
        value(op.result) = *from;
        return absl::OkStatus();
      }
      case ElementOp::kStore: {
        if (!Holds(op.access[0], at_)) return absl::OkStatus();
        ASSIGN_OR_RETURN(Scalar * to, Element(op.access[0]));
        Store(to, s_.buffer(op.access[0].buffer).dtype, value(op.args[0]));
        return absl::OkStatus();
      }
      case ElementOp::kReduce: {
        ScalarMonoid& monoid = CompiledMonoid(&op, op.monoid, type(op.args[0]));
        int64_t coordinate = s.dims.empty() ? 0 : at_[static_cast<size_t>(s.dims.back())];
        std::vector<Scalar*> state;
        std::vector<Scalar> lifted;
        for (size_t i = 0; i < op.access.size(); ++i) {
          ASSIGN_OR_RETURN(Scalar * to, Element(op.access[i]));
          state.push_back(to);
          lifted.push_back(monoid.lift[i].Evaluate({value(op.args[0])}, coordinate));
        }
        Merge(monoid, state, lifted);
        return absl::OkStatus();
      }
      case ElementOp::kCompute:
        break;
    }
    type(op.result) = op.type;
    Scalar& result = value(op.result);
    if (op.op == ScalarOp::kConst) {
      result = {op.real, op.integer};
    } else if (op.op == ScalarOp::kAxis) {
      result.integer = at_[static_cast<size_t>(op.axis)];
    } else if (op.op == ScalarOp::kWithin) {
      int64_t at = at_[static_cast<size_t>(op.axis)];
      result.integer = at >= op.integer && at < op.end ? 1 : 0;
    } else {
      args_.clear();
      for (int v : op.args) args_.push_back(value(v));
      result = Compiled(op, element->types).Evaluate(args_, 0);
    }
    return absl::OkStatus();
  }

  absl::Status Exec(const MmaStmt& s) {
    std::vector<DimId> out = {s.n};
    if (s.m >= 0) out.insert(out.begin(), s.m);
    DType type = s_.buffer(s.c.buffer).dtype;
    // Results first, so that a tile may be read and written by one statement.
    std::vector<std::pair<Scalar*, Scalar>> results;
    RETURN_IF_ERROR(ForPoints(out, [&]() -> absl::Status {
      std::vector<int64_t> point = at_;
      ASSIGN_OR_RETURN(Scalar * c, Element(s.c));
      Scalar sum;
      if (s.accumulate) sum = *c;
      RETURN_IF_ERROR(SumProducts(s, point, &sum));
      at_ = point;
      results.emplace_back(c, sum);
      return absl::OkStatus();
    }));
    for (auto& [c, sum] : results) Store(c, type, sum);
    return absl::OkStatus();
  }

  absl::Status SumProducts(const MmaStmt& s, const std::vector<int64_t>& point, Scalar* sum) {
    for (DimId d : s.over) {
      const Window& w = windows_[static_cast<size_t>(d)];
      if (w.begin >= w.end) return absl::OkStatus();
    }
    at_ = point;
    for (DimId d : s.over) at_[static_cast<size_t>(d)] = windows_[static_cast<size_t>(d)].begin;
    const bool integers = IsInteger(s_.buffer(s.c.buffer).dtype);
    auto factor = [this](const Access& access, const Scalar& element) {
      const bool real = IsFloat(s_.buffer(access.buffer).dtype);
      return real ? element.real : static_cast<double>(element.integer);
    };
    for (;;) {
      ASSIGN_OR_RETURN(Scalar * a, Element(s.a));
      ASSIGN_OR_RETURN(Scalar * b, Element(s.b));
      if (integers) {
        // Modulo 2^64, and so modulo what is stored.
        sum->integer = static_cast<int64_t>(static_cast<uint64_t>(sum->integer) +
                                            static_cast<uint64_t>(a->integer) *
                                                static_cast<uint64_t>(b->integer));
      } else {
        sum->real += factor(s.a, *a) * factor(s.b, *b);
      }
      size_t i = s.over.size();
      for (; i-- > 0;) {
        auto d = static_cast<size_t>(s.over[i]);
        if (++at_[d] < windows_[d].end) break;
        at_[d] = windows_[d].begin;
      }
      if (i == static_cast<size_t>(-1)) return absl::OkStatus();
    }
  }

  absl::Status Exec(const CopyStmt& s) {
    return ForPoints(s.dims, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(Scalar * to, Element(s.target));
      ASSIGN_OR_RETURN(Scalar * from, Element(s.source));
      *to = *from;
      return absl::OkStatus();
    });
  }

  absl::Status Exec(const MergeStmt& s) {
    ScalarMonoid& monoid = CompiledMonoid(&s, s.monoid, s_.buffer(s.target[0].buffer).dtype);
    return ForPoints(s.dims, [&]() -> absl::Status {
      std::vector<Scalar*> state;
      std::vector<Scalar> other;
      for (size_t i = 0; i < s.target.size(); ++i) {
        ASSIGN_OR_RETURN(Scalar * to, Element(s.target[i]));
        ASSIGN_OR_RETURN(Scalar * from, Element(s.source[i]));
        state.push_back(to);
        other.push_back(*from);
      }
      Merge(monoid, state, other);
      return absl::OkStatus();
    });
  }

  // Opaque ops see whole tensors: params are written back and read again around the call.
  absl::Status Exec(const CallStmt& s) {
    const OpDef* def = FindOp(s.op);
    if (def == nullptr) return Unimplemented("call of ", Quote(s.op));
    StoreParams();
    std::vector<const HostTensor*> inputs;
    std::vector<std::optional<TensorType>> types;
    for (BufferId b : s.inputs) {
      if (b >= s_.params) continue;  // workspace between the phases of one op
      inputs.push_back(&(*params_)[static_cast<size_t>(b)]);
      types.emplace_back(TensorType{inputs.back()->dtype(), Shape(inputs.back()->dims())});
    }
    // All of the output at once, by the last of its phases.
    const auto* part = s.attrs.Find<std::string>(kOpaquePart);
    if (part != nullptr && *part == kOpaqueTotals) return absl::OkStatus();
    AttrMap attrs = s.attrs;
    attrs.Erase(kOpaquePart);
    OpCall call(*def, std::move(types), std::move(attrs), static_cast<int>(s.outputs.size()));
    ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, EvaluateCall(call, inputs));
    if (outputs.size() != s.outputs.size())
      return Internal("call of ", s.op, " gave other outputs");
    for (size_t i = 0; i < outputs.size(); ++i) {
      (*params_)[static_cast<size_t>(s.outputs[i])] = std::move(outputs[i]);
    }
    return LoadParams();
  }

  const Schedule& s_;
  std::vector<HostTensor>* params_;
  std::vector<Storage> storage_;
  std::vector<Window> windows_;
  std::vector<int64_t> at_;
  // Ops and statements of s_.
  std::unordered_map<const ElementOp*, ScalarExpr> exprs_;
  std::unordered_map<const void*, ScalarMonoid> monoids_;
  std::vector<Scalar> args_;
};

}  // namespace

absl::Status Interpret(const Schedule& schedule, std::vector<HostTensor>* params) {
  return Interpreter(schedule, params).Run();
}

}  // namespace fusion
