#include "core/graph/build/text.h"

#include <limits>
#include <unordered_map>

#include "core/base/hash.h"
#include "core/graph/build/builder.h"

namespace fusion {
namespace {

constexpr int64_t kHashedConstantBytes = 1024;

std::string SymbolToString(size_t index, const SymbolDecl& symbol) {
  return StrCat("  symbol s", index, " ", Quote(symbol.name), " min ", symbol.min, " max ",
                symbol.max, " multiple ", symbol.multiple_of, " likely [",
                StrJoin(symbol.likely, ", "), "]\n");
}

// `hash_constants`: constants of more than kHashedConstantBytes by type and SHA-256.
std::string LeafToString(int id, const Tensor& t, bool hash_constants) {
  switch (t.kind) {
    case TensorKind::kInput:
      return StrCat("  %", id, " = input ", Quote(t.name), " : ", t.type.ToString(), "\n");
    case TensorKind::kWeight:
      return StrCat("  %", id, " = weight ", Quote(t.name), " : ", t.type.ToString(), "\n");
    case TensorKind::kConstant: {
      bool hash = hash_constants && t.value->byte_size() > kHashedConstantBytes;
      return StrCat(
          "  %", id, " = ", t.client_has_bytes ? "initializer " : "const ", Quote(t.name), " : ",
          hash ? StrCat(t.type.ToString(), " sha256 ", Sha256(t.value->byte_view()).ToHex())
               : TensorToText(*t.value),
          "\n");
    }
    case TensorKind::kIntermediate:
      break;
  }
  return "";
}

std::string NodeToString(const Graph& graph, const Node& node, const std::vector<int>& number) {
  auto id_text = [&](TensorId id) {
    return id == kNoTensor ? std::string("-") : StrCat("%", number[static_cast<size_t>(id)]);
  };
  std::string attrs = node.attrs.ToString();
  return StrCat(
      "  ", StrJoin(node.outputs, ", ", id_text), " = ", node.def->name, "(",
      StrJoin(node.inputs, ", ", id_text), ")", attrs.empty() ? "" : " ", attrs, " : ",
      StrJoin(node.outputs, ", ", [&](TensorId id) { return graph.tensor(id).type.ToString(); }),
      "  ", StrJoin(node.outputs, ", ", [&](TensorId id) { return Quote(graph.tensor(id).name); }),
      " @ ", Quote(node.name), "\n");
}

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  absl::StatusOr<Graph> Parse() {
    RETURN_IF_ERROR(in_.Expect("graph"));
    ASSIGN_OR_RETURN(std::string name, in_.QuotedString());
    builder_ = GraphBuilder(std::move(name), {.fold_limit_bytes = 0});
    RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Accept("}")) RETURN_IF_ERROR(Statement());
    if (!in_.AtEnd()) return in_.Error("the end");
    ASSIGN_OR_RETURN(Graph graph, builder_.Build());
    if (classes_.empty()) return graph;
    if (classes_.size() != graph.tensors().size()) {
      return in_.Error(StrCat(graph.tensors().size(), " shape classes"));
    }
    std::vector<int> of_tensor(classes_.size(), 0);
    for (const auto& [number, id] : ids_) {
      const auto at = static_cast<size_t>(number);
      if (at < classes_.size()) of_tensor[static_cast<size_t>(id)] = classes_[at];
    }
    return GraphBuilder::WithShapeClasses(std::move(graph), std::move(of_tensor));
  }

 private:
  absl::Status Statement() {
    if (in_.Accept("symbol")) return Symbol();
    if (in_.Accept("output")) {
      ASSIGN_OR_RETURN(TensorId id, Use());
      builder_.MarkOutput(id);
      return absl::OkStatus();
    }
    if (in_.Accept("share")) return Sharing();
    if (in_.Accept("strides")) return Strides();
    if (in_.Accept("shapes")) return Classes();
    std::vector<int64_t> ids;
    do {
      ASSIGN_OR_RETURN(int64_t id, in_.PercentId());
      if (ids_.count(id) != 0) return in_.Error(StrCat("a new id instead of %", id));
      ids.push_back(id);
    } while (in_.Accept(","));
    RETURN_IF_ERROR(in_.Expect("="));
    bool input = in_.Peek("input");
    if (input || in_.Peek("weight") || in_.Peek("const") || in_.Peek("initializer")) {
      if (ids.size() != 1) return in_.Error("one id on the left of a declaration");
      return Leaf(ids[0]);
    }
    return NodeStatement(ids);
  }

  absl::Status Symbol() {
    SymbolDecl symbol;
    ASSIGN_OR_RETURN(std::string id, in_.Identifier());
    if (id != StrCat("s", symbols_)) return in_.Error(StrCat("s", symbols_, " before this"));
    ++symbols_;
    ASSIGN_OR_RETURN(symbol.name, in_.QuotedString());
    RETURN_IF_ERROR(in_.Expect("min"));
    ASSIGN_OR_RETURN(symbol.min, in_.Integer());
    RETURN_IF_ERROR(in_.Expect("max"));
    ASSIGN_OR_RETURN(symbol.max, in_.Integer());
    RETURN_IF_ERROR(in_.Expect("multiple"));
    ASSIGN_OR_RETURN(symbol.multiple_of, in_.Integer());
    if (symbol.multiple_of < 1) return in_.Error("a multiple of at least 1 before this");
    RETURN_IF_ERROR(in_.Expect("likely"));
    RETURN_IF_ERROR(in_.Expect("["));
    while (!in_.Accept("]")) {
      if (!symbol.likely.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(int64_t value, in_.Integer());
      symbol.likely.push_back(value);
    }
    builder_.AddSymbol(std::move(symbol));
    return absl::OkStatus();
  }

  absl::Status Sharing() {
    SharedBuffer shared;
    RETURN_IF_ERROR(in_.Expect("input"));
    ASSIGN_OR_RETURN(int64_t input, in_.Integer());
    RETURN_IF_ERROR(in_.Expect("output"));
    ASSIGN_OR_RETURN(int64_t output, in_.Integer());
    RETURN_IF_ERROR(in_.Expect("dim"));
    ASSIGN_OR_RETURN(int64_t dim, in_.Integer());
    RETURN_IF_ERROR(in_.Expect("capacity"));
    ASSIGN_OR_RETURN(shared.capacity, in_.Integer());
    shared.input = static_cast<int>(input);
    shared.output = static_cast<int>(output);
    shared.dim = static_cast<int>(dim);
    absl::Status made = builder_.ShareBuffer(shared);
    if (!made.ok()) return in_.Error(StrCat("what can share memory before this: ", Message(made)));
    return absl::OkStatus();
  }

  absl::Status Classes() {
    RETURN_IF_ERROR(in_.Expect("["));
    while (!in_.Accept("]")) {
      if (!classes_.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(int64_t shape_class, in_.Integer());
      if (shape_class < 0 || shape_class > std::numeric_limits<int>::max()) {
        return in_.Error("a shape class before this");
      }
      classes_.push_back(static_cast<int>(shape_class));
    }
    return absl::OkStatus();
  }

  absl::Status Strides() {
    BoundStrides bound{.output = in_.Accept("output")};
    if (!bound.output) RETURN_IF_ERROR(in_.Expect("input"));
    ASSIGN_OR_RETURN(int64_t position, in_.Integer());
    if (position < 0 || position > std::numeric_limits<int>::max()) {
      return in_.Error("a position before this");
    }
    bound.position = static_cast<int>(position);
    RETURN_IF_ERROR(in_.Expect("["));
    while (!in_.Accept("]")) {
      if (!bound.strides.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(int64_t stride, in_.Integer());
      bound.strides.push_back(stride);
    }
    absl::Status made = builder_.BindStrides(bound);
    if (!made.ok()) return in_.Error(StrCat("strides that fit before this: ", Message(made)));
    return absl::OkStatus();
  }

  absl::StatusOr<TensorType> Type() {
    ASSIGN_OR_RETURN(TensorType type, TensorType::Parse(in_));
    for (const Dim& dim : type.shape.dims()) {
      for (const Dim::Term& t : dim.terms()) {
        if (t.symbol < 0 || t.symbol >= symbols_) return in_.Error("a declared symbol before this");
      }
    }
    return type;
  }

  absl::Status Leaf(int64_t id) {
    ASSIGN_OR_RETURN(std::string kind, in_.Identifier());
    ASSIGN_OR_RETURN(std::string name, in_.QuotedString());
    RETURN_IF_ERROR(in_.Expect(":"));
    if (kind == "const" || kind == "initializer") {
      ASSIGN_OR_RETURN(HostTensor value, ParseTensorText(in_));
      ids_[id] = builder_.AddConstant(std::move(name), std::move(value), kind == "initializer");
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(TensorType type, Type());
    ids_[id] = kind == "input" ? builder_.AddInput(std::move(name), std::move(type))
                               : builder_.AddWeight(std::move(name), std::move(type));
    return absl::OkStatus();
  }

  absl::StatusOr<TensorId> Use() {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(int64_t id, in_.PercentId());
    auto it = ids_.find(id);
    if (it == ids_.end()) return at.Error("the id of a tensor defined above");
    return it->second;
  }

  absl::Status NodeStatement(const std::vector<int64_t>& ids) {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(std::string op, in_.Identifier());
    const OpDef* def = FindOp(op);
    if (def == nullptr) return at.Error("the name of a known op");
    RETURN_IF_ERROR(in_.Expect("("));
    std::vector<TensorId> inputs;
    while (!in_.Accept(")")) {
      if (!inputs.empty()) RETURN_IF_ERROR(in_.Expect(","));
      if (in_.Accept("-")) {
        inputs.push_back(kNoTensor);
        continue;
      }
      ASSIGN_OR_RETURN(TensorId use, Use());
      inputs.push_back(use);
    }
    ASSIGN_OR_RETURN(AttrMap attrs, AttrMap::Parse(in_));
    RETURN_IF_ERROR(in_.Expect(":"));
    std::vector<TensorType> types;
    do {
      ASSIGN_OR_RETURN(TensorType type, Type());
      types.push_back(std::move(type));
    } while (in_.Accept(","));
    std::vector<std::string> names;
    do {
      ASSIGN_OR_RETURN(std::string name, in_.QuotedString());
      names.push_back(std::move(name));
    } while (in_.Accept(","));
    RETURN_IF_ERROR(in_.Expect("@"));
    ASSIGN_OR_RETURN(std::string node_name, in_.QuotedString());
    if (types.size() != ids.size() || names.size() != ids.size()) {
      return in_.Error(StrCat(ids.size(), " types and names before this"));
    }
    ASSIGN_OR_RETURN(auto outputs, builder_.AddMultiNode(*def, std::move(inputs), std::move(attrs),
                                                         std::move(node_name), names));
    for (size_t i = 0; i < ids.size(); ++i) {
      if (builder_.tensor(outputs[i]).type != types[i]) {
        return in_.Error(StrCat("type ", builder_.tensor(outputs[i]).type.ToString(), " for %",
                                ids[i], " before this"));
      }
      ids_[ids[i]] = outputs[i];
    }
    return absl::OkStatus();
  }

  Lexer in_;
  GraphBuilder builder_;
  std::unordered_map<int64_t, TensorId> ids_;
  SymbolId symbols_ = 0;
  std::vector<int> classes_;  // by number
};

std::string Print(const Graph& graph, bool hash_constants) {
  std::string out = StrCat("graph ", Quote(graph.name()), " {\n");
  for (size_t i = 0; i < graph.symbols().size(); ++i) {
    out += SymbolToString(i, graph.symbols()[i]);
  }
  // Numbers follow the order of lines, so that parsing and printing again gives the same text.
  std::vector<int> number(graph.tensors().size(), -1);
  int next = 0;
  for (TensorId id : graph.inputs()) {
    number[static_cast<size_t>(id)] = next;
    out += LeafToString(next++, graph.tensor(id), hash_constants);
  }
  for (size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& t = graph.tensors()[i];
    if (t.kind != TensorKind::kWeight && t.kind != TensorKind::kConstant) continue;
    number[i] = next;
    out += LeafToString(next++, t, hash_constants);
  }
  for (const Node& node : graph.nodes()) {
    for (TensorId id : node.outputs) number[static_cast<size_t>(id)] = next++;
    out += NodeToString(graph, node, number);
  }
  for (TensorId id : graph.outputs()) {
    out += StrCat("  output %", number[static_cast<size_t>(id)], "\n");
  }
  for (const SharedBuffer& s : graph.shared_buffers()) {
    out += StrCat("  share input ", s.input, " output ", s.output, " dim ", s.dim, " capacity ",
                  s.capacity, "\n");
  }
  if (!graph.shape_classes().empty()) {
    std::vector<int> classes(static_cast<size_t>(next), 0);
    for (size_t i = 0; i < number.size(); ++i) {
      if (number[i] >= 0) classes[static_cast<size_t>(number[i])] = graph.shape_classes()[i];
    }
    out += StrCat("  shapes [", StrJoin(classes, ", "), "]\n");
  }
  for (const BoundStrides& b : graph.bound_strides()) {
    out += StrCat("  strides ", b.output ? "output " : "input ", b.position, " ",
                  DimsToString(b.strides), "\n");
  }
  return out + "}\n";
}

}  // namespace

std::string ToString(const Graph& graph) { return Print(graph, /*hash_constants=*/false); }

std::string KeyText(const Graph& graph) { return Print(graph, /*hash_constants=*/true); }

absl::StatusOr<Graph> ParseGraph(std::string_view text) { return Parser(text).Parse(); }

}  // namespace fusion
