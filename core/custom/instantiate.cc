#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "core/custom/custom_ops.h"
#include "core/op/forms.h"

namespace fusion {
namespace {

using Syntax = CustomOpSyntax;
using Node = Syntax::Node;
using NodeRef = Syntax::NodeRef;

// Limit of expression nodes, shared ones counted at each use, as the text form writes them. The
// parser bounds the depth.
constexpr int64_t kMaxSteps = 4096;
// Limit of the points of an iteration space.
constexpr int64_t kMaxPoints = int64_t{1} << 60;
// Limit of distinct (input, index) reads: the inputs of the op "Custom".
constexpr size_t kMaxReads = 64;

// An intermediate value: an expression, or a number that takes the type of the other operand.
struct Partial {
  std::optional<Expr> expr;
  double number = 0;
  bool integer = false;
};

class CustomOpBuilder {
 public:
  CustomOpBuilder(const Syntax& op, const std::vector<std::optional<TensorType>>& inputs,
                  const AttrMap& attrs)
      : op_(op), given_(inputs), attrs_(attrs) {}

  absl::StatusOr<CustomCall> Run() {
    RETURN_IF_ERROR(CheckInputs());
    RETURN_IF_ERROR(ReadAttributes());
    RETURN_IF_ERROR(op_.loop ? MakeAxes() : absl::OkStatus());
    for (const Syntax::Let& let : op_.lets) {
      ASSIGN_OR_RETURN(Partial value, ValueOf(let.value));
      lets_[let.name] = std::move(value);
    }
    ASSIGN_OR_RETURN(Partial value, ValueOf(op_.value));
    if (!value.expr) {
      return Error(op_.node(op_.value).place,
                   "the value is a bare number: a cast says of which type, f32(..)");
    }
    RETURN_IF_ERROR(CheckSize(*value.expr));
    if (reads_.empty()) return Error(op_.place, "reads no input");
    return op_.loop ? Loop(*value.expr) : Elementwise(*value.expr);
  }

 private:
  absl::Status Error(size_t place, std::string_view what) const {
    return ErrorAt(*op_.text, place, what);
  }

  absl::Status CheckInputs() const {
    if (given_.size() != op_.params.size()) {
      return InvalidArgument("has ", given_.size(), " inputs, ", op_.FullName(),
                             " is defined with ", op_.params.size());
    }
    for (size_t i = 0; i < given_.size(); ++i) {
      if (!given_[i]) {
        return InvalidArgument("input ", i, " (", op_.params[i].name, ") is absent but required");
      }
      if (!given_[i]->shape.is_static()) {
        return Unimplemented("input ", i, " ", given_[i]->ToString(), " has a symbolic dim");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadAttributes() {
    for (const auto& attr : attrs_) {
      const std::string& name = attr.first;
      const bool known = std::any_of(op_.attributes.begin(), op_.attributes.end(),
                                     [&](const auto& a) { return a.name == name; });
      if (!known) return InvalidArgument("unknown attribute ", QuoteShort(name));
    }
    for (const Syntax::Attribute& attribute : op_.attributes) {
      std::optional<double> value = attribute.fallback;
      if (attrs_.Has(attribute.name)) {
        const auto* integer = attrs_.Find<int64_t>(attribute.name);
        const auto* real = attrs_.Find<double>(attribute.name);
        if (attribute.integer ? integer == nullptr : real == nullptr && integer == nullptr) {
          return InvalidArgument("attribute ", Quote(attribute.name), " is no ",
                                 attribute.integer ? "integer" : "float");
        }
        value = integer != nullptr ? static_cast<double>(*integer) : *real;
        if (integer != nullptr && std::abs(*value) > 1e15) {
          return InvalidArgument("attribute ", Quote(attribute.name), " is ", *integer,
                                 ", expected at most 1e15");
        }
      }
      if (!value) return InvalidArgument("attribute ", Quote(attribute.name), " is missing");
      lets_[attribute.name] = {.number = *value, .integer = attribute.integer};
    }
    return absl::OkStatus();
  }

  // The dims that inputs name, then the axes: those of the result first, reduced ones behind.
  absl::Status MakeAxes() {
    for (size_t i = 0; i < op_.params.size(); ++i) RETURN_IF_ERROR(BindDims(i));
    for (const Syntax::Axis& axis : op_.axes) {
      ASSIGN_OR_RETURN(IndexExpr extent, IndexOf(axis.extent));
      const int64_t value = extent.constant();
      if (!extent.IsConstant() || value < 0 || value > kMaxExtent) {
        return Error(axis.place, StrCat("axis ", axis.name, " gets the extent ", value,
                                        ", expected 0..", kMaxExtent));
      }
      if (!extents_.emplace(axis.name, value).second) {
        return Error(axis.place, StrCat("axis ", axis.name, " has an extent already"));
      }
    }
    int64_t points = 1;
    for (const auto* list : {&op_.result, &op_.reduced}) {
      for (const Syntax::Axis& axis : *list) {
        auto extent = extents_.find(axis.name);
        if (extent == extents_.end()) {
          return Error(axis.place, StrCat("nothing says the extent of ", axis.name,
                                          ": no dim of an input has this name; expected \"for ",
                                          axis.name, ": ..\" behind the result"));
        }
        if (!axes_.emplace(axis.name, static_cast<int>(body_.axes.size())).second) {
          return Error(axis.place, StrCat(axis.name, " is named twice by result and reduction"));
        }
        // As texts of ours name axes; the client's names are not repeated.
        body_.axes.push_back({StrCat("d", body_.axes.size()), Dim(extent->second)});
        if (extent->second > 0 && points > kMaxPoints / extent->second) {
          return Error(axis.place, "too many points to compute");
        }
        points *= std::max<int64_t>(extent->second, 1);
      }
    }
    for (size_t i = 0; i < op_.result.size(); ++i) {
      body_.write.push_back(IndexExpr::Axis(static_cast<int>(i)));
    }
    return absl::OkStatus();
  }

  absl::Status BindDims(size_t param) {
    const Syntax::Param& declared = op_.params[param];
    const Shape& shape = given_[param]->shape;
    if (declared.dims.size() != static_cast<size_t>(shape.rank())) {
      return Error(declared.place,
                   StrCat("input ", declared.name, " has ", declared.dims.size(),
                          " dims here, the node gives ", given_[param]->ToString()));
    }
    for (int d = 0; d < shape.rank(); ++d) {
      const std::string& name = declared.dims[static_cast<size_t>(d)];
      const int64_t extent = shape.dim(d).value();
      auto [known, fresh] = extents_.emplace(name, extent);
      if (!fresh && known->second != extent) {
        return Error(declared.place, StrCat("dim ", name, " is ", known->second, " and, of input ",
                                            declared.name, ", ", extent));
      }
    }
    return absl::OkStatus();
  }

  // A sum of axes times constants.
  absl::StatusOr<IndexExpr> IndexOf(NodeRef ref) const {
    const Node& node = op_.node(ref);
    switch (node.kind) {
      case Node::kNumber:
        if (node.integer && std::abs(node.number) <= static_cast<double>(kMaxExtent)) {
          return IndexExpr(static_cast<int64_t>(node.number));
        }
        return Error(node.place, StrCat("expected an integer of at most ", kMaxExtent));
      case Node::kName:
        return NamedIndex(node);
      case Node::kApply:
        break;
      default:
        return Error(node.place, "expected a sum of axes and integers");
    }
    if (node.args.size() > 2 || node.op == ScalarOp::kPow || node.op == ScalarOp::kMax ||
        node.op == ScalarOp::kMin) {
      return Error(node.place, "expected +, -, * or / of axes and integers");
    }
    ASSIGN_OR_RETURN(IndexExpr a, IndexOf(node.args[0]));
    if (node.op == ScalarOp::kNeg) return CheckedIndex(a * -1, node.place);
    if (node.args.size() < 2) return Error(node.place, "expected a sum of axes and integers");
    ASSIGN_OR_RETURN(IndexExpr b, IndexOf(node.args[1]));
    switch (node.op) {
      case ScalarOp::kAdd:
        return CheckedIndex(a + b, node.place);
      case ScalarOp::kSub:
        return CheckedIndex(a + b * -1, node.place);
      case ScalarOp::kMul:
        if (!a.IsConstant()) std::swap(a, b);
        if (!a.IsConstant()) return Error(node.place, "an axis times an axis is no index");
        return Scaled(b, a.constant(), node.place);
      case ScalarOp::kDiv:
        if (!a.IsConstant() || !b.IsConstant() || b.constant() <= 0 || a.constant() < 0) {
          return Error(node.place,
                       "only a number that is not negative is divided, by a positive one");
        }
        return IndexExpr(a.constant() / b.constant());
      default:
        return Error(node.place, "expected +, -, * or / of axes and integers");
    }
  }

  absl::StatusOr<IndexExpr> NamedIndex(const Node& node) const {
    if (auto axis = axes_.find(node.name); axis != axes_.end())
      return IndexExpr::Axis(axis->second);
    if (auto extent = extents_.find(node.name); extent != extents_.end()) {
      return IndexExpr(extent->second);
    }
    auto number = lets_.find(node.name);
    if (number != lets_.end() && !number->second.expr && number->second.integer &&
        std::abs(number->second.number) <= static_cast<double>(kMaxExtent)) {
      return IndexExpr(static_cast<int64_t>(number->second.number));
    }
    return Error(node.place,
                 StrCat(QuoteShort(node.name),
                        " is no axis, no dim and no int attribute of at most ", kMaxExtent));
  }

  // Sums and products stay inside 64 bits if no number is larger than this.
  absl::StatusOr<IndexExpr> CheckedIndex(IndexExpr e, size_t place) const {
    auto large = [](int64_t v) { return v > kMaxExtent || v < -kMaxExtent; };
    bool fits = !large(e.constant());
    for (const IndexExpr::Term& t : e.terms()) {
      const int64_t extent = body_.axes[static_cast<size_t>(t.axis)].extent.value();
      fits = fits && !large(t.coefficient) &&
             std::abs(t.coefficient) <= kMaxExtent / std::max<int64_t>(extent, 1);
    }
    if (fits) return e;
    return Error(place, StrCat("an index beyond ", kMaxExtent));
  }

  absl::StatusOr<IndexExpr> Scaled(const IndexExpr& e, int64_t factor, size_t place) const {
    auto product = [&](int64_t v) { return static_cast<double>(v) * static_cast<double>(factor); };
    double largest = std::abs(product(e.constant()));
    for (const IndexExpr::Term& t : e.terms()) {
      largest = std::max(largest, std::abs(product(t.coefficient)));
    }
    if (largest > static_cast<double>(kMaxExtent)) {
      return Error(place, StrCat("an index beyond ", kMaxExtent));
    }
    return CheckedIndex(e * factor, place);
  }

  absl::StatusOr<Partial> ValueOf(NodeRef ref) {
    auto known = values_.find(ref);
    if (known != values_.end()) return known->second;
    ASSIGN_OR_RETURN(Partial value, Make(op_.node(ref)));
    values_.emplace(ref, value);
    return value;
  }

  absl::StatusOr<Partial> Make(const Node& node) {
    switch (node.kind) {
      case Node::kNumber:
        return Partial{.number = node.number, .integer = node.integer};
      case Node::kName:
        return Named(node);
      case Node::kRead:
        return ReadAt(node);
      case Node::kCast: {
        ASSIGN_OR_RETURN(Partial of, ValueOf(node.args[0]));
        if (!of.expr) return Typed(of, node.type, node.place);
        return Partial{.expr = Expr::Cast(*of.expr, node.type)};
      }
      case Node::kApply:
        break;
    }
    std::vector<Partial> args;
    for (NodeRef arg : node.args) {
      ASSIGN_OR_RETURN(Partial value, ValueOf(arg));
      args.push_back(std::move(value));
    }
    return Apply(node, std::move(args));
  }

  absl::StatusOr<Partial> Named(const Node& node) {
    if (auto let = lets_.find(node.name); let != lets_.end()) return let->second;
    const int param = FindParam(node.name);
    if (param >= 0 && op_.loop && !op_.params[static_cast<size_t>(param)].dims.empty()) {
      return Error(node.place, StrCat("input ", node.name, " is read without indices, expected ",
                                      node.name, "[..]"));
    }
    if (param >= 0) return ReadOf(param, {}, node.place);
    if (auto axis = axes_.find(node.name); axis != axes_.end()) {
      return Partial{.expr = Expr::Axis(axis->second)};
    }
    std::vector<std::string> names;
    for (const Syntax::Param& p : op_.params) names.push_back(p.name);
    for (const auto& [name, value] : lets_) names.push_back(name);
    for (const auto& [name, axis] : axes_) names.push_back(name);
    return Error(node.place,
                 StrCat("unknown name ", QuoteShort(node.name), "; known: ", StrJoin(names, ", ")));
  }

  absl::StatusOr<Partial> ReadAt(const Node& node) {
    const int param = FindParam(node.name);
    if (param < 0) return Error(node.place, StrCat(QuoteShort(node.name), " is no input"));
    const TensorType& type = *given_[static_cast<size_t>(param)];
    if (!op_.loop || static_cast<int>(node.args.size()) != type.shape.rank()) {
      return Error(node.place,
                   op_.loop ? StrCat("input ", node.name, " has ", type.shape.rank(), " dims, got ",
                                     node.args.size(), " indices")
                            : StrCat("input ", node.name, " has no named dims to be read at"));
    }
    IndexMap index;
    for (size_t d = 0; d < node.args.size(); ++d) {
      RETURN_IF_ERROR(CheckIsNoBareDim(op_.node(node.args[d])));
      ASSIGN_OR_RETURN(IndexExpr e, IndexOf(node.args[d]));
      RETURN_IF_ERROR(CheckInside(e, type.shape.dim(static_cast<int>(d)).value(), node, d));
      index.push_back(std::move(e));
    }
    return ReadOf(param, std::move(index), node.place);
  }

  // Alone it would be one past the end.
  absl::Status CheckIsNoBareDim(const Node& index) const {
    const std::string& name = index.name;
    if (index.kind != Node::kName || axes_.count(name) != 0 || extents_.count(name) == 0) {
      return absl::OkStatus();
    }
    return Error(index.place, StrCat(name,
                                     " is a dim of an input but no axis: neither the result "
                                     "nor the reduction names it"));
  }

  absl::Status CheckInside(const IndexExpr& e, int64_t extent, const Node& node, size_t d) const {
    const IndexRange range = RangeOf(e, [&](int axis) {
      return IndexRange{0, body_.axes[static_cast<size_t>(axis)].extent.value()};
    });
    if (range.empty() || (range.begin >= 0 && range.end <= extent)) return absl::OkStatus();
    return Error(op_.node(node.args[d]).place,
                 StrCat("reads ", range.begin, "..", range.end - 1, " of dim ", d, " of input ",
                        node.name, ", which has ", extent, " elements"));
  }

  int FindParam(const std::string& name) const {
    for (size_t i = 0; i < op_.params.size(); ++i) {
      if (op_.params[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  // The element of an input, each (input, index) once.
  absl::StatusOr<Partial> ReadOf(int param, IndexMap index, size_t place) {
    const DType type = given_[static_cast<size_t>(param)]->dtype;
    size_t at = 0;
    while (at < reads_.size() && !(reads_[at] == param && indices_[at] == index)) ++at;
    if (at == reads_.size()) {
      if (at == kMaxReads) return Error(place, StrCat("more than ", kMaxReads, " different reads"));
      reads_.push_back(param);
      indices_.push_back(std::move(index));
    }
    return Partial{.expr = Expr::Input(static_cast<int>(at), type)};
  }

  absl::StatusOr<Partial> Typed(const Partial& number, DType type, size_t place) const {
    if (IsFloat(type)) return Partial{.expr = Expr::Const(type, number.number)};
    if (type != DType::kBool && number.number == std::floor(number.number) &&
        std::abs(number.number) <= 1e15) {
      const auto integer = static_cast<int64_t>(number.number);
      if (WrapInteger(type, integer) == integer)
        return Partial{.expr = Expr::ConstInt(type, integer)};
    }
    return Error(place, StrCat(number.number, " is no ", DTypeName(type)));
  }

  absl::StatusOr<Partial> Apply(const Node& node, std::vector<Partial> args) {
    const ScalarTyping typing = GetScalarInfo(node.op).typing;
    // Numbers take the type of the first of their like that has one.
    const size_t first = typing == ScalarTyping::kSelect ? 1 : 0;
    std::optional<DType> type;
    for (size_t i = first; i < args.size(); ++i) {
      if (args[i].expr && !type) type = args[i].expr->type();
    }
    const bool folds = typing == ScalarTyping::kNumeric || typing == ScalarTyping::kReal;
    if (!type && folds) return Folded(node, args);
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].expr) continue;
      if (!type || i < first) {
        return Error(node.place,
                     StrCat("argument ", i, " is a bare number, expected a value with a type"));
      }
      ASSIGN_OR_RETURN(args[i], Typed(args[i], *type, op_.node(node.args[i]).place));
    }
    std::vector<DType> types;
    for (const Partial& arg : args) types.push_back(arg.expr->type());
    absl::StatusOr<DType> result = ScalarResultType(node.op, types);
    if (!result.ok()) return Error(node.place, Message(result.status()));
    switch (args.size()) {
      case 1:
        return Partial{.expr = Expr::Unary(node.op, *args[0].expr)};
      case 2:
        return Partial{.expr = Expr::Binary(node.op, *args[0].expr, *args[1].expr)};
      default:
        return Partial{.expr = Expr::Select(*args[0].expr, *args[1].expr, *args[2].expr)};
    }
  }

  // Numbers among themselves: integers stay integers, but for quotients and powers.
  static absl::StatusOr<Partial> Folded(const Node& node, const std::vector<Partial>& args) {
    Partial out{.integer = node.op != ScalarOp::kDiv && node.op != ScalarOp::kPow};
    for (const Partial& arg : args) out.integer = out.integer && arg.integer;
    const double b = args.size() > 1 ? args[1].number : 0;
    out.number = EvaluateReal(node.op, args[0].number, b);
    // The sign of the divisor, as between integers of a type.
    if (out.integer && node.op == ScalarOp::kMod && out.number != 0 &&
        (out.number < 0) != (b < 0)) {
      out.number += b;
    }
    return out;
  }

  // As the text form writes it, shared parts as often as they are used.
  absl::Status CheckSize(const Expr& value) const {
    std::unordered_map<const void*, int64_t> steps;
    value.VisitOnce([&](const Expr& e) {
      int64_t own = 1;
      for (const Expr& arg : e.args()) own = std::min(own + steps.at(arg.id()), kMaxSteps + 1);
      steps[e.id()] = own;
    });
    if (steps.at(value.id()) <= kMaxSteps) return absl::OkStatus();
    return Error(op_.place, StrCat("the value takes more than ", kMaxSteps,
                                   " steps when its lets are written out"));
  }

  absl::StatusOr<CustomCall> Elementwise(const Expr& value) {
    std::vector<std::optional<TensorType>> types;
    for (int param : reads_) types.push_back(given_[static_cast<size_t>(param)]);
    const OpCall call(*FindOp("Custom"), std::move(types), {});
    ASSIGN_OR_RETURN(LoopBody body,
                     ElementwiseBody(call, [&](const std::vector<Expr>&) { return value; }));
    return CustomCall{std::move(body), reads_};
  }

  absl::StatusOr<CustomCall> Loop(const Expr& value) {
    for (IndexMap& index : indices_)
      body_.reads.push_back({.index = std::move(index), .guards = {}});
    body_.value = value;
    if (!op_.monoid.empty()) {
      body_.reduce = Monoid::Named(op_.monoid, value.type());
      if (!body_.reduce) {
        return Error(op_.node(op_.value).place,
                     StrCat(op_.monoid, " is not defined on ", DTypeName(value.type())));
      }
    }
    return CustomCall{std::move(body_), reads_};
  }

  const Syntax& op_;
  const std::vector<std::optional<TensorType>>& given_;
  const AttrMap& attrs_;
  std::map<std::string, Partial> lets_;     // attributes too
  std::map<std::string, int64_t> extents_;  // of dims and further axes
  std::map<std::string, int> axes_;
  std::unordered_map<NodeRef, Partial> values_;
  std::vector<int> reads_;  // by input of the body: the op's
  std::vector<IndexMap> indices_;
  LoopBody body_;
};

}  // namespace

absl::StatusOr<CustomOps> CustomOps::Parse(std::string_view text) {
  if (static_cast<int64_t>(text.size()) > kMaxCustomOpBytes) {
    return InvalidArgument("has ", text.size(), " bytes, at most ", kMaxCustomOpBytes);
  }
  CustomOps out;
  ASSIGN_OR_RETURN(out.ops_, ParseCustomOps(text));
  return out;
}

const CustomOpSyntax* CustomOps::Find(std::string_view domain, std::string_view name) const {
  for (const auto& op : ops_) {
    if (op->domain == domain && op->name == name) return op.get();
  }
  return nullptr;
}

const CustomOpSyntax* CustomOps::Find(std::string_view full_name) const {
  const size_t dot = full_name.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  return Find(full_name.substr(0, dot), full_name.substr(dot + 1));
}

absl::StatusOr<CustomCall> Instantiate(const CustomOpSyntax& op,
                                       const std::vector<std::optional<TensorType>>& inputs,
                                       const AttrMap& attrs) {
  absl::StatusOr<CustomCall> call = CustomOpBuilder(op, inputs, attrs).Run();
  if (!call.ok()) return Annotate(call.status(), StrCat("custom op ", op.FullName()));
  return call;
}

}  // namespace fusion
