#include <unordered_map>
#include <unordered_set>

#include "core/base/threads/job.h"
#include "core/import/import.h"
#include "core/import/model/normalise.h"
#include "core/import/model/shared_names.h"
#include "core/import/model/symbols.h"
#include "core/onnx/tensor_proto.h"

namespace fusion {
namespace {

constexpr uint32_t kOpSetVersion = 1;
constexpr int kMaxDimTerms = 32;

absl::StatusOr<DType> ReadDType(v1::DataType type) {
  // The enumeration is DType's, shifted by the unspecified value.
  int index = static_cast<int>(type) - 1;
  if (index >= 0 && index < kDTypeCount) return static_cast<DType>(index);
  if (index == -1) return InvalidArgument("has no data_type");
  return Unimplemented("has the unknown data_type ", static_cast<int>(type));
}

absl::StatusOr<HostTensor> ReadData(v1::DataType type, Dims dims, const std::string& data) {
  ASSIGN_OR_RETURN(DType dtype, ReadDType(type));
  if (dims.size() > kMaxTensorRank) {
    return InvalidArgument("has rank ", dims.size(), ", expected at most ", kMaxTensorRank);
  }
  return HostTensor::FromBytes(dtype, std::move(dims), data);
}

absl::StatusOr<AttrValue> ReadAttribute(const v1::Attribute& a) {
  switch (a.value_case()) {
    case v1::Attribute::kI:
      return AttrValue(int64_t{a.i()});
    case v1::Attribute::kF:
      return AttrValue(a.f());
    case v1::Attribute::kS:
      return AttrValue(a.s());
    case v1::Attribute::kInts:
      return AttrValue(std::vector<int64_t>(a.ints().values().begin(), a.ints().values().end()));
    case v1::Attribute::kFloats:
      return AttrValue(std::vector<double>(a.floats().values().begin(), a.floats().values().end()));
    case v1::Attribute::kTensor: {
      const auto& t = a.tensor();
      ASSIGN_OR_RETURN(HostTensor value,
                       ReadData(t.data_type(), Dims(t.dims().begin(), t.dims().end()), t.data()));
      return AttrValue(std::make_shared<const HostTensor>(std::move(value)));
    }
    default:
      return InvalidArgument("has no value");
  }
}

/// One import of our own message.
class OpGraphImporter {
 public:
  OpGraphImporter(const v1::OpGraph& graph, const ImportOptions& options)
      : graph_(graph),
        options_(options),
        symbols_(options.dim_bindings, options.ranged_dims),
        builder_(graph.name(),
                 {.unfolded = options.unfolded, .folded = options.folded, .trace = options.trace}) {
  }

  absl::StatusOr<Graph> Run() {
    absl::StatusOr<Graph> graph = Import();
    if (!graph.ok()) return symbols_.InModelWords(graph.status());
    return graph;
  }

 private:
  absl::StatusOr<Graph> Import() {
    if (graph_.op_set_version() > kOpSetVersion) {
      return Unimplemented("op_set_version is ", graph_.op_set_version(),
                           "; supported: ", kOpSetVersion);
    }
    if (graph_.nodes_size() > kMaxImportedNodes) {
      return ResourceExhausted("the graph has ", graph_.nodes_size(), " nodes, at most ",
                               kMaxImportedNodes, " are allowed");
    }
    RETURN_IF_ERROR(DeclareSymbols());
    RETURN_IF_ERROR(DeclareTensors());
    RETURN_IF_ERROR(AddInputs());
    RETURN_IF_ERROR(AddConstants());
    for (int i = 0; i < graph_.nodes_size(); ++i) RETURN_IF_ERROR(AddNode(i));
    RETURN_IF_ERROR(MarkOutputs());
    RETURN_IF_ERROR(ShareByName(options_.shared_buffers, &builder_));
    RETURN_IF_ERROR(BindByName(options_.bound_strides, &builder_));
    return builder_.Build();
  }

  struct Declared {
    const v1::Tensor* proto = nullptr;
    Shape shape;  // local to symbols_
    TensorId id = kNoTensor;
  };
  struct NodeParts {
    const OpDef* def = nullptr;
    std::vector<TensorId> inputs;
    std::vector<std::string> output_names;
    AttrMap attrs;
  };

  static std::string What(const v1::Tensor& t) {
    return t.name().empty() ? StrCat("tensor ", t.id())
                            : StrCat("tensor ", t.id(), " ", QuoteShort(t.name()));
  }

  absl::Status DeclareSymbols() {
    for (const v1::Symbol& s : graph_.symbols()) {
      SymbolDecl decl{.name = s.name(), .min = s.min(), .max = s.max()};
      decl.min = s.min() == 0 ? 1 : s.min();
      decl.multiple_of = s.multiple_of() == 0 ? 1 : s.multiple_of();
      decl.likely.assign(s.likely().begin(), s.likely().end());
      RETURN_IF_ERROR(symbols_.Declare(std::move(decl)));
    }
    return symbols_.CheckBindings();
  }

  absl::StatusOr<Dim> ReadDim(const v1::Dim& dim) const {
    auto sane = [](int64_t v) { return v >= -kMaxExtent && v <= kMaxExtent; };
    if (!sane(dim.value())) return InvalidArgument("has the extent ", dim.value());
    if (dim.terms_size() > kMaxDimTerms) {
      return InvalidArgument("has a dim of ", dim.terms_size(), " terms, expected at most ",
                             kMaxDimTerms);
    }
    Dim out(dim.value());
    for (const v1::Dim::Term& term : dim.terms()) {
      if (term.symbol() >= static_cast<uint32_t>(graph_.symbols_size())) {
        return InvalidArgument("has a dim of symbol ", term.symbol(), ", the graph has ",
                               graph_.symbols_size());
      }
      if (!sane(term.coefficient())) {
        return InvalidArgument("has a dim with the coefficient ", term.coefficient());
      }
      int64_t coefficient = term.coefficient() == 0 ? 1 : term.coefficient();
      out = out + Dim::Symbol(static_cast<SymbolId>(term.symbol()), coefficient);
    }
    return out;
  }

  absl::Status CheckTensor(const v1::Tensor& t) {
    bool intermediate = t.kind() == v1::Tensor::KIND_INTERMEDIATE;
    if (t.kind() < v1::Tensor::KIND_INPUT || t.kind() > v1::Tensor::KIND_INTERMEDIATE) {
      return InvalidArgument("has no kind");
    }
    if (!intermediate) RETURN_IF_ERROR(ReadDType(t.data_type()).status());
    if (t.dims_size() > kMaxTensorRank) {
      return InvalidArgument("has rank ", t.dims_size(), ", expected at most ", kMaxTensorRank);
    }
    if (t.kind() != v1::Tensor::KIND_CONSTANT && !t.data().empty()) {
      return InvalidArgument("has data but is no constant");
    }
    if (static_cast<int64_t>(t.data().size()) > kInlineMaskLimitBytes) {
      return InvalidArgument("is a constant of ", t.data().size(), " bytes, at most ",
                             kInlineMaskLimitBytes, " are allowed; send it as a weight");
    }
    if (t.kind() == v1::Tensor::KIND_WEIGHT) {
      if (t.name().empty()) return InvalidArgument("is a weight without a name");
      if (!weight_names_.insert(t.name()).second) {
        return InvalidArgument("is a second weight of this name");
      }
    }
    return absl::OkStatus();
  }

  absl::Status DeclareTensors() {
    for (const v1::Tensor& t : graph_.tensors()) {
      if (t.id() == 0) return InvalidArgument(What(t), ": id 0 means absent, expected at least 1");
      Declared declared{.proto = &t};
      absl::Status status = CheckTensor(t);
      std::vector<Dim> dims;
      for (int i = 0; status.ok() && i < t.dims_size(); ++i) {
        auto dim = ReadDim(t.dims(i));
        status = dim.status();
        if (dim.ok()) dims.push_back(*std::move(dim));
      }
      if (!status.ok()) return absl::Status(status.code(), StrCat(What(t), " ", Message(status)));
      declared.shape = Shape(std::move(dims));
      if (!tensors_.emplace(t.id(), std::move(declared)).second) {
        return InvalidArgument(What(t), ": id is used twice");
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TensorType> ResolveType(const Declared& declared) {
    ASSIGN_OR_RETURN(DType dtype, ReadDType(declared.proto->data_type()));
    auto shape = symbols_.Resolve(declared.shape, &builder_);
    if (!shape.ok()) return Annotate(shape.status(), What(*declared.proto));
    TensorType type{dtype, *std::move(shape)};
    absl::Status size = CheckTensorSize(type);
    if (!size.ok()) return Annotate(size, What(*declared.proto));
    return type;
  }

  absl::Status AddInputs() {
    std::vector<Declared*> inputs;
    std::unordered_set<uint32_t> listed;
    for (uint32_t id : graph_.inputs()) {
      auto it = tensors_.find(id);
      if (it == tensors_.end() || it->second.proto->kind() != v1::Tensor::KIND_INPUT) {
        return InvalidArgument("graph input ", id, " is no tensor of kind input");
      }
      if (!listed.insert(id).second) return InvalidArgument("graph input ", id, " is listed twice");
      inputs.push_back(&it->second);
    }
    std::vector<Shape> shapes;
    for (const Declared* input : inputs) shapes.push_back(input->shape);
    RETURN_IF_ERROR(symbols_.BindBatch(options_.batch_size, shapes));
    for (Declared* input : inputs) {
      ASSIGN_OR_RETURN(TensorType type, ResolveType(*input));
      input->id = builder_.AddInput(input->proto->name(), std::move(type));
    }
    for (const v1::Tensor& t : graph_.tensors()) {
      if (t.kind() == v1::Tensor::KIND_INPUT && listed.count(t.id()) == 0) {
        return InvalidArgument(What(t), ": is an input but not listed in the graph's inputs");
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddConstants() {
    for (const v1::Tensor& t : graph_.tensors()) {
      Declared& declared = tensors_[t.id()];
      if (t.kind() != v1::Tensor::KIND_WEIGHT && t.kind() != v1::Tensor::KIND_CONSTANT) continue;
      ASSIGN_OR_RETURN(TensorType type, ResolveType(declared));
      if (t.kind() == v1::Tensor::KIND_WEIGHT) {
        declared.id = builder_.AddWeight(t.name(), std::move(type));
        continue;
      }
      if (!type.shape.is_static()) {
        return InvalidArgument(What(t), ": is a constant of the symbolic shape ",
                               type.shape.ToString());
      }
      auto value = ReadData(t.data_type(), type.shape.ToDims(), t.data());
      if (!value.ok()) return Annotate(value.status(), What(t));
      declared.id = builder_.AddConstant(t.name(), *std::move(value));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<TensorId>> InputsOf(const v1::Node& node) {
    std::vector<TensorId> out;
    for (uint32_t id : node.inputs()) {
      if (id == 0) {
        out.push_back(kNoTensor);
        continue;
      }
      auto it = tensors_.find(id);
      if (it == tensors_.end()) return InvalidArgument("input tensor ", id, " does not exist");
      if (it->second.id == kNoTensor) {
        return InvalidArgument("input tensor ", id, " is not written by an earlier node");
      }
      out.push_back(it->second.id);
    }
    return out;
  }

  // Names of the outputs; 0 stands for one that nobody wants.
  absl::StatusOr<std::vector<std::string>> OutputNames(const v1::Node& node) {
    if (node.outputs_size() == 0) return InvalidArgument("has no output");
    std::vector<std::string> out;
    std::unordered_set<uint32_t> seen;
    for (uint32_t id : node.outputs()) {
      auto it = tensors_.find(id);
      bool known = it != tensors_.end() && it->second.proto != nullptr;
      out.push_back(known ? it->second.proto->name() : "");
      if (id == 0) continue;
      if (known && it->second.proto->kind() != v1::Tensor::KIND_INTERMEDIATE) {
        return InvalidArgument("output tensor ", id, " is not of kind intermediate");
      }
      if (!seen.insert(id).second || (it != tensors_.end() && it->second.id != kNoTensor)) {
        return InvalidArgument("output tensor ", id, " is written twice");
      }
    }
    return out;
  }

  absl::StatusOr<AttrMap> AttributesOf(const v1::Node& node) {
    AttrMap out;
    for (const v1::Attribute& a : node.attributes()) {
      if (out.Has(a.name())) {
        return InvalidArgument("attribute ", QuoteShort(a.name()), " is given twice");
      }
      auto value = ReadAttribute(a);
      if (!value.ok()) {
        return absl::Status(value.status().code(), StrCat("attribute ", QuoteShort(a.name()), " ",
                                                          Message(value.status())));
      }
      out.Set(a.name(), *std::move(value));
    }
    return out;
  }

  absl::StatusOr<NodeParts> ReadNode(const v1::Node& node) {
    NodeParts out;
    ASSIGN_OR_RETURN(out.inputs, InputsOf(node));
    ASSIGN_OR_RETURN(out.output_names, OutputNames(node));
    ASSIGN_OR_RETURN(out.attrs, AttributesOf(node));
    out.def = FindModelOp(node.op());
    if (out.def != nullptr) {
      NormalNode normal{.def = out.def, .inputs = out.inputs, .attrs = out.attrs};
      RETURN_IF_ERROR(CheckNarrowTypes(normal, builder_));
      CastByType(builder_, &normal);
      out.def = normal.def;
      out.inputs = std::move(normal.inputs);
      out.attrs = std::move(normal.attrs);
      return out;
    }
    const CustomOpSyntax* custom =
        options_.custom_ops == nullptr ? nullptr : options_.custom_ops->Find(node.op());
    if (custom == nullptr) {
      return Unimplemented(
          "this op is not supported; fusionctl capabilities --ops lists those that are, and the "
          "option custom_ops defines others");
    }
    ASSIGN_OR_RETURN(NormalNode normal, CustomNode(*custom, out.inputs, out.attrs, builder_));
    custom_bytes_ += static_cast<int64_t>(normal.attrs.Find<std::string>("body")->size());
    if (custom_bytes_ > kMaxCustomBytes) {
      return ResourceExhausted("the custom ops of the graph have more than ", kMaxCustomBytes,
                               " bytes when written out");
    }
    out.def = normal.def;
    out.inputs = std::move(normal.inputs);
    out.attrs = std::move(normal.attrs);
    return out;
  }

  absl::Status AddNode(int index) {
    const v1::Node& node = graph_.nodes(index);
    std::string name = node.name().empty() ? StrCat("#", index) : node.name();
    const AtNode at(name, node.op());
    auto parts = ReadNode(node);
    if (!parts.ok()) return Annotate(parts.status(), DescribeNode(name, node.op()));
    RETURN_IF_ERROR(Annotate(CheckNamedOutputs(*parts->def, parts->output_names.size()),
                             DescribeNode(name, node.op())));
    auto outputs = builder_.AddMultiNode(*parts->def, parts->inputs, parts->attrs, node.name(),
                                         parts->output_names);
    if (!outputs.ok()) return WithHint(outputs.status(), parts->inputs);
    for (int i = 0; i < node.outputs_size(); ++i) {
      uint32_t id = node.outputs(i);
      if (id == 0) continue;
      Declared& declared = tensors_[id];
      declared.id = (*outputs)[static_cast<size_t>(i)];
      RETURN_IF_ERROR(CheckIntermediate(declared));
    }
    return absl::OkStatus();
  }

  absl::Status WithHint(const absl::Status& status, const std::vector<TensorId>& inputs) const {
    std::vector<TensorType> types;
    for (TensorId id : inputs) {
      if (id != kNoTensor) types.push_back(builder_.tensor(id).type);
    }
    std::string hint = symbols_.OpenSymbolHint(types);
    if (hint.empty()) return status;
    return absl::Status(status.code(), StrCat(Message(status), "; ", hint));
  }

  // The declared type of an intermediate, if there is one, against the inferred.
  absl::Status CheckIntermediate(const Declared& declared) {
    if (declared.proto == nullptr || declared.proto->data_type() == v1::DATA_TYPE_UNSPECIFIED) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(TensorType type, ResolveType(declared));
    const Tensor& tensor = builder_.tensor(declared.id);
    const TensorType& inferred = tensor.type;
    if (type == inferred) return absl::OkStatus();
    if (tensor.counted && type.shape.rank() == inferred.shape.rank()) {
      // Any number of elements that a run may decide on.
      std::vector<Dim> dims = type.shape.dims();
      Dim& dim = dims[static_cast<size_t>(tensor.counted->dim)];
      const Dim& most = inferred.shape.dim(tensor.counted->dim);
      if (!dim.is_static() || (most.is_static() && dim.value() <= most.value())) dim = most;
      if (TensorType{type.dtype, Shape(std::move(dims))} == inferred) return absl::OkStatus();
    }
    return InvalidArgument(What(*declared.proto), " is declared ", type.ToString(),
                           ", the nodes before it give ", inferred.ToString());
  }

  absl::Status MarkOutputs() {
    std::unordered_set<TensorId> marked;
    std::unordered_set<uint32_t> listed;
    for (uint32_t id : graph_.outputs()) {
      auto it = tensors_.find(id);
      if (id == 0 || it == tensors_.end() || it->second.id == kNoTensor) {
        return InvalidArgument("graph output ", id, " is no tensor of the graph");
      }
      if (!listed.insert(id).second) {
        return InvalidArgument("graph output ", id, " is listed twice");
      }
      marked.insert(it->second.id);
      builder_.MarkOutput(it->second.id);
    }
    if (listed.empty()) return InvalidArgument("the graph has no output");
    for (const std::string& name : options_.keep_outputs) {
      ASSIGN_OR_RETURN(TensorId id, FindIntermediate(name));
      if (marked.insert(id).second) builder_.MarkOutput(id);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TensorId> FindIntermediate(const std::string& name) const {
    TensorId found = kNoTensor;
    for (const v1::Tensor& t : graph_.tensors()) {
      if (t.kind() != v1::Tensor::KIND_INTERMEDIATE || t.name() != name) continue;
      if (found != kNoTensor) {
        return InvalidArgument("keep_outputs names ", QuoteShort(name),
                               ", which several tensors are");
      }
      found = tensors_.at(t.id()).id;
    }
    if (found != kNoTensor) return found;
    return InvalidArgument("keep_outputs names ", QuoteShort(name),
                           ", which no node of the graph gives");
  }

  const v1::OpGraph& graph_;
  const ImportOptions& options_;
  SymbolTable symbols_;
  GraphBuilder builder_;
  std::unordered_map<uint32_t, Declared> tensors_;
  std::unordered_set<std::string> weight_names_;
  int64_t custom_bytes_ = 0;  // of the bodies of custom ops
};

}  // namespace

absl::StatusOr<Graph> ImportOpGraph(const v1::OpGraph& graph, const ImportOptions& options) {
  return OpGraphImporter(graph, options).Run();
}

}  // namespace fusion
