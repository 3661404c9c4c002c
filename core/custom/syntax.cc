#include "core/custom/syntax.h"

#include <algorithm>
#include <cmath>

#include "core/base/parse/expression_parser.h"
#include "core/op/op_def.h"

namespace fusion {
namespace {

using Syntax = CustomOpSyntax;
using Node = Syntax::Node;
using NodeRef = Syntax::NodeRef;

constexpr int kMaxNesting = 64;
// Limit of the depth of an expression tree, with lets expanded.
constexpr int kMaxDepth = 128;
constexpr size_t kMaxCustomOps = 256;
constexpr size_t kMaxParams = 16;
constexpr size_t kMaxDims = 16;
constexpr size_t kMaxAttributes = 64;
constexpr size_t kMaxLets = 256;
// Bytes of the line that an error shows, before and after the place.
constexpr size_t kShownBytes = 100;

const OperatorTable<ScalarOp> kOperators = {
    .binary =
        {{{"||", ScalarOp::kOr}},
         {{"&&", ScalarOp::kAnd}},
         {{"==", ScalarOp::kEq}, {"!=", ScalarOp::kNe}},
         {{"<=", ScalarOp::kLe}, {">=", ScalarOp::kGe}, {"<", ScalarOp::kLt}, {">", ScalarOp::kGt}},
         {{"+", ScalarOp::kAdd}, {"-", ScalarOp::kSub}},
         {{"*", ScalarOp::kMul}, {"/", ScalarOp::kDiv}, {"%", ScalarOp::kMod}}},
    .prefix = {{"-", ScalarOp::kNeg}, {"!", ScalarOp::kNot}},
    .ends = {"->"}};
// Of + and - in kOperators.binary: what extents and indices are.
constexpr size_t kSumLevel = 4;

bool IsKeyword(std::string_view word) {
  constexpr std::string_view kWords[] = {"op", "let", "for", "inf", "nan", "float", "int"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

class CustomOpParser : public ExpressionParser<CustomOpParser, NodeRef, ScalarOp> {
 public:
  explicit CustomOpParser(std::shared_ptr<const std::string> text)
      : ExpressionParser(*text, kOperators), text_(std::move(text)) {}

  absl::StatusOr<std::vector<std::shared_ptr<const Syntax>>> Run() {
    std::vector<std::shared_ptr<const Syntax>> out;
    while (!in_.AtEnd()) {
      if (out.size() == kMaxCustomOps) return Error(StrCat("more than ", kMaxCustomOps, " ops"));
      ASSIGN_OR_RETURN(Syntax op, Definition());
      for (const auto& other : out) {
        if (other->FullName() == op.FullName()) {
          return ErrorAt(*text_, op.place, StrCat(op.FullName(), " is defined twice"));
        }
      }
      out.push_back(std::make_shared<const Syntax>(std::move(op)));
    }
    return out;
  }

 private:
  friend class ExpressionParser<CustomOpParser, NodeRef, ScalarOp>;

  absl::Status Error(std::string_view what) const { return ErrorAt(*text_, in_.position(), what); }
  absl::Status Expect(std::string_view token) {
    if (in_.Accept(token)) return absl::OkStatus();
    return Error(StrCat("expected '", token, "'"));
  }

  // A name without dots that is no keyword.
  absl::StatusOr<std::string> Name(std::string_view what) {
    const size_t place = in_.position();
    if (!in_.PeekIdentifier()) return Error(StrCat("expected the name of ", what));
    ASSIGN_OR_RETURN(std::string name, in_.Identifier());
    if (IsKeyword(name) || name.find('.') != std::string::npos) {
      return ErrorAt(*text_, place, StrCat(QuoteShort(name), " cannot be the name of ", what));
    }
    return name;
  }

  // One name means one thing in a definition.
  absl::Status CheckIsNew(const std::string& name, size_t place) const {
    auto is_it = [&](const auto& named) { return named.name == name; };
    bool known = std::any_of(op_.params.begin(), op_.params.end(), is_it) ||
                 std::any_of(op_.attributes.begin(), op_.attributes.end(), is_it) ||
                 std::any_of(op_.lets.begin(), op_.lets.end(), is_it) ||
                 std::any_of(op_.axes.begin(), op_.axes.end(), is_it);
    for (const Syntax::Param& p : op_.params) {
      known = known || std::find(p.dims.begin(), p.dims.end(), name) != p.dims.end();
    }
    if (!known) return absl::OkStatus();
    return ErrorAt(*text_, place, StrCat(QuoteShort(name), " has a meaning already"));
  }

  absl::StatusOr<Syntax> Definition() {
    op_ = Syntax{.text = text_};
    RETURN_IF_ERROR(Expect("op"));
    RETURN_IF_ERROR(FullName());
    RETURN_IF_ERROR(Params());
    if (in_.Accept("{")) RETURN_IF_ERROR(Attributes());
    if (in_.Accept("->")) RETURN_IF_ERROR(Result());
    for (const Syntax::Param& p : op_.params) {
      if (!op_.loop && !p.dims.empty()) {
        return ErrorAt(*text_, p.place,
                       StrCat("input ", p.name,
                              " has dims, but the result has none: expected \"->\" "
                              "and its dims behind the inputs"));
      }
    }
    RETURN_IF_ERROR(Expect("="));
    while (in_.Accept("let")) RETURN_IF_ERROR(Let());
    RETURN_IF_ERROR(Reduction());
    ASSIGN_OR_RETURN(op_.value, Whole());
    return std::move(op_);
  }

  absl::Status FullName() {
    op_.place = in_.position();
    if (!in_.PeekIdentifier()) return Error("expected domain.name of the op");
    ASSIGN_OR_RETURN(std::string full, in_.Identifier());
    const size_t dot = full.rfind('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == full.size()) {
      return ErrorAt(*text_, op_.place,
                     StrCat("op ", QuoteShort(full), " has no domain, expected domain.name"));
    }
    op_.domain = full.substr(0, dot);
    op_.name = full.substr(dot + 1);
    if (op_.domain == "ai.onnx" || op_.domain == "fusiond" || FindModelOp(full) != nullptr) {
      return ErrorAt(*text_, op_.place, StrCat(full, " is not for requests to define"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> Dims() {
    std::vector<std::string> out;
    while (!in_.Accept("]")) {
      if (!out.empty()) RETURN_IF_ERROR(Expect(","));
      if (out.size() == kMaxDims) return Error(StrCat("more than ", kMaxDims, " dims"));
      ASSIGN_OR_RETURN(std::string name, Name("a dim"));
      out.push_back(std::move(name));
    }
    return out;
  }

  absl::Status Params() {
    RETURN_IF_ERROR(Expect("("));
    do {
      Syntax::Param param{.place = in_.position()};
      if (op_.params.size() == kMaxParams) {
        return Error(StrCat("more than ", kMaxParams, " inputs"));
      }
      ASSIGN_OR_RETURN(param.name, Name("an input"));
      for (const Syntax::Param& p : op_.params) {
        if (p.name == param.name) {
          return ErrorAt(*text_, param.place, StrCat("input ", p.name, " is named twice"));
        }
      }
      if (in_.Accept("[")) {
        ASSIGN_OR_RETURN(param.dims, Dims());
      }
      op_.params.push_back(std::move(param));
    } while (in_.Accept(","));
    return Expect(")");
  }

  absl::Status Attributes() {
    do {
      Syntax::Attribute attribute;
      if (op_.attributes.size() == kMaxAttributes) {
        return Error(StrCat("more than ", kMaxAttributes, " attributes"));
      }
      const size_t named = in_.position();
      ASSIGN_OR_RETURN(attribute.name, Name("an attribute"));
      RETURN_IF_ERROR(CheckIsNew(attribute.name, named));
      RETURN_IF_ERROR(Expect(":"));
      attribute.integer = in_.Accept("int");
      if (!attribute.integer && !in_.Accept("float")) return Error("expected 'int' or 'float'");
      if (in_.Accept("=")) {
        const size_t place = in_.position();
        if (!in_.PeekNumber()) return Error("expected a number");
        ASSIGN_OR_RETURN(double value, in_.Number());
        if (attribute.integer && (value != std::floor(value) || std::abs(value) > 1e15)) {
          return ErrorAt(*text_, place, "expected an integer of at most 1e15");
        }
        attribute.fallback = value;
      }
      op_.attributes.push_back(std::move(attribute));
    } while (in_.Accept(","));
    return Expect("}");
  }

  absl::StatusOr<std::vector<Syntax::Axis>> AxisList() {
    std::vector<Syntax::Axis> out;
    RETURN_IF_ERROR(Expect("["));
    while (!in_.Accept("]")) {
      if (!out.empty()) RETURN_IF_ERROR(Expect(","));
      if (out.size() == kMaxDims) return Error(StrCat("more than ", kMaxDims, " dims"));
      const size_t place = in_.position();
      ASSIGN_OR_RETURN(std::string name, Name("a dim"));
      out.push_back({.name = std::move(name), .place = place});
    }
    return out;
  }

  absl::Status Result() {
    op_.loop = true;
    ASSIGN_OR_RETURN(op_.result, AxisList());
    if (!in_.Accept("for")) return absl::OkStatus();
    do {
      Syntax::Axis axis{.place = in_.position()};
      if (op_.axes.size() == kMaxDims) return Error(StrCat("more than ", kMaxDims, " axes"));
      ASSIGN_OR_RETURN(axis.name, Name("an axis"));
      RETURN_IF_ERROR(Expect(":"));
      ASSIGN_OR_RETURN(axis.extent, Level(kSumLevel));
      op_.axes.push_back(std::move(axis));
    } while (in_.Accept(","));
    return absl::OkStatus();
  }

  absl::Status Let() {
    Syntax::Let let;
    if (op_.lets.size() == kMaxLets) return Error(StrCat("more than ", kMaxLets, " lets"));
    const size_t place = in_.position();
    ASSIGN_OR_RETURN(let.name, Name("a value"));
    RETURN_IF_ERROR(CheckIsNew(let.name, place));
    RETURN_IF_ERROR(Expect("="));
    ASSIGN_OR_RETURN(let.value, Whole());
    op_.lets.push_back(std::move(let));
    return Expect(";");
  }

  absl::Status Reduction() {
    for (std::string_view monoid : {"sum", "prod", "max", "min"}) {
      Lexer ahead = in_;
      if (!ahead.Accept(monoid) || !ahead.Peek("[")) continue;
      // An input may have the name of a reduction: then it is read.
      const bool is_param = std::any_of(op_.params.begin(), op_.params.end(),
                                        [&](const Syntax::Param& p) { return p.name == monoid; });
      if (is_param) return absl::OkStatus();
      if (!op_.loop) {
        return Error(
            "a reduction needs named dims: expected \"->\" and the result's behind the inputs");
      }
      in_ = ahead;
      op_.monoid = monoid;
      ASSIGN_OR_RETURN(op_.reduced, AxisList());
      return op_.reduced.empty() ? Error("expected the axes of the reduction before this")
                                 : absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // Later passes walk the trees recursively: this bounds their depth.
  absl::StatusOr<NodeRef> Add(Node node) {
    node.depth = 1;
    if (node.kind == Node::kName) {
      for (const Syntax::Let& let : op_.lets) {
        if (let.name == node.name) node.depth = op_.node(let.value).depth;
      }
    }
    for (NodeRef arg : node.args) node.depth = std::max(node.depth, op_.node(arg).depth + 1);
    if (node.depth > kMaxDepth) {
      return ErrorAt(*text_, node.place, StrCat("operators nest deeper than ", kMaxDepth));
    }
    op_.nodes.push_back(std::move(node));
    return static_cast<NodeRef>(op_.nodes.size()) - 1;
  }

  absl::Status Enter() {
    if (++depth_ <= kMaxNesting) return absl::OkStatus();
    return Error(StrCat("nested deeper than ", kMaxNesting));
  }
  void Leave() { --depth_; }

  absl::StatusOr<NodeRef> Whole() {
    RETURN_IF_ERROR(Enter());
    ASSIGN_OR_RETURN(NodeRef out, Level(0));
    const size_t place = in_.position();
    if (in_.Accept("?")) {
      ASSIGN_OR_RETURN(NodeRef yes, Whole());
      RETURN_IF_ERROR(Expect(":"));
      ASSIGN_OR_RETURN(NodeRef no, Whole());
      ASSIGN_OR_RETURN(out, Add({.kind = Node::kApply,
                                 .place = place,
                                 .op = ScalarOp::kSelect,
                                 .args = {out, yes, no}}));
    }
    Leave();
    return out;
  }

  absl::StatusOr<NodeRef> Binary(ScalarOp op, size_t place, NodeRef left, NodeRef right) {
    return Add({.kind = Node::kApply, .place = place, .op = op, .args = {left, right}});
  }
  absl::StatusOr<NodeRef> Prefix(ScalarOp op, size_t place, NodeRef of) {
    return Add({.kind = Node::kApply, .place = place, .op = op, .args = {of}});
  }

  absl::StatusOr<NodeRef> Operand() {
    const size_t place = in_.position();
    if (in_.Peek("inf") || in_.Peek("nan")) return Number();
    if (!in_.PeekIdentifier()) {
      if (in_.PeekNumber() && !in_.Peek("+")) return Number();
      return Error("expected a value");
    }
    ASSIGN_OR_RETURN(std::string name, in_.Identifier());
    if (in_.Accept("(")) return Call(std::move(name), place);
    Node node{.kind = Node::kName, .place = place, .name = std::move(name)};
    if (in_.Accept("[")) {
      node.kind = Node::kRead;
      RETURN_IF_ERROR(Enter());
      do {
        if (node.args.size() == kMaxDims) return Error(StrCat("more than ", kMaxDims, " indices"));
        ASSIGN_OR_RETURN(NodeRef index, Level(kSumLevel));
        node.args.push_back(index);
      } while (in_.Accept(","));
      Leave();
      RETURN_IF_ERROR(Expect("]"));
    }
    return Add(std::move(node));
  }

  absl::StatusOr<NodeRef> Number() {
    const size_t place = in_.position();
    ASSIGN_OR_RETURN(double value, in_.Number());
    std::string_view written = std::string_view(*text_).substr(place, in_.position() - place);
    written = written.substr(0, written.find_first_of(" \t\r\n#"));
    const bool integer = written.find_first_of(".eEpPxXin") == std::string_view::npos;
    return Add({.kind = Node::kNumber, .place = place, .number = value, .integer = integer});
  }

  absl::StatusOr<NodeRef> Call(std::string function, size_t place) {
    Node node{.kind = Node::kApply, .place = place};
    do {
      if (node.args.size() == 3) return Error("more than 3 arguments");
      ASSIGN_OR_RETURN(NodeRef arg, Whole());
      node.args.push_back(arg);
    } while (in_.Accept(","));
    RETURN_IF_ERROR(Expect(")"));
    size_t arity = 1;
    if (std::optional<DType> type = ParseDType(function)) {
      node.kind = Node::kCast;
      node.type = *type;
    } else {
      std::optional<ScalarOp> op = FindScalarOp(function);
      const ScalarTyping typing = op ? GetScalarInfo(*op).typing : ScalarTyping::kLeaf;
      if (typing == ScalarTyping::kLeaf || (op && NamesItsType(*op))) {
        return ErrorAt(*text_, place, StrCat("unknown function ", QuoteShort(function)));
      }
      node.op = *op;
      arity = static_cast<size_t>(GetScalarInfo(*op).arity);
    }
    if (node.args.size() != arity) {
      return ErrorAt(*text_, place,
                     StrCat(function, " takes ", arity, arity == 1 ? " argument" : " arguments",
                            ", got ", node.args.size()));
    }
    return Add(std::move(node));
  }

  std::shared_ptr<const std::string> text_;
  Syntax op_;
  int depth_ = 0;
};

}  // namespace

absl::Status ErrorAt(std::string_view text, size_t place, std::string_view what) {
  place = std::min(place, text.size());
  const size_t newline = text.substr(0, place).rfind('\n');
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  const size_t end = std::min(text.find('\n', begin), text.size());
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
  const size_t from = std::max(begin, place > kShownBytes ? place - kShownBytes : 0);
  std::string shown(text.substr(from, std::min(end, place + kShownBytes) - from));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = c == '\t' ? ' ' : '?';
  }
  return InvalidArgument("line ", line, ", column ", place - begin + 1, ": ", what, "\n  ", shown,
                         "\n  ", std::string(place - from, ' '), "^");
}

absl::StatusOr<std::vector<std::shared_ptr<const CustomOpSyntax>>> ParseCustomOps(
    std::string_view text) {
  return CustomOpParser(std::make_shared<const std::string>(text)).Run();
}

}  // namespace fusion
