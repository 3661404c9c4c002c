#include "core/import/bodies/sequences.h"

#include <algorithm>

#include "core/import/model/onnx_attributes.h"
#include "core/op/forms.h"

namespace fusion {
namespace {

// Pieces of one SplitToSequence; what they add up to counts against the limit of all nodes.
constexpr int64_t kMaxPieces = 1 << 16;

Item Of(TensorId tensor) { return {.tensor = tensor, .collection = std::nullopt}; }
Item Of(std::vector<TensorId> elements) {
  return {.tensor = kNoTensor, .collection = Collection{false, std::move(elements)}};
}

// One node that is being replaced.
class Collector {
 public:
  Collector(const FlatNode& node, const std::vector<Item>& inputs, const std::string& output,
            const std::function<absl::Status()>& count, GraphBuilder* builder)
      : node_(node), inputs_(inputs), output_(output), count_(count), builder_(*builder) {}

  absl::StatusOr<Item> Run() {
    const std::string& op = node_.op;
    if (op == "Optional") return Optional();
    if (op == "OptionalHasElement") return HasElement();
    if (op == "OptionalGetElement") return GetElement();
    if (op == "Identity") return inputs_[0];
    if (op == "SequenceEmpty") return Of(std::vector<TensorId>());
    if (op == "SequenceConstruct") return Construct();
    if (op == "SplitToSequence") return Split();
    ASSIGN_OR_RETURN(Collection sequence, Sequence());
    if (op == "SequenceLength") return Length(sequence);
    if (op == "SequenceAt") return At(sequence);
    if (op == "SequenceInsert") return Insert(std::move(sequence));
    if (op == "SequenceErase") return Erase(std::move(sequence));
    return Concat(sequence);
  }

 private:
  bool Has(size_t i) const {
    return i < inputs_.size() && (inputs_[i].tensor != kNoTensor || inputs_[i].collection);
  }

  absl::StatusOr<TensorId> Tensor(size_t i) const {
    if (!Has(i)) return InvalidArgument("input ", i, " is absent but required");
    if (inputs_[i].collection) {
      return InvalidArgument("input ", i, " is ", KindOf(*inputs_[i].collection),
                             ", expected a tensor");
    }
    return inputs_[i].tensor;
  }

  absl::StatusOr<Collection> Sequence() const {
    if (!Has(0)) return InvalidArgument("input 0 is absent but required");
    if (!inputs_[0].collection || inputs_[0].collection->is_none) {
      return InvalidArgument("input 0 is ",
                             inputs_[0].collection ? KindOf(*inputs_[0].collection) : "a tensor",
                             ", expected a sequence");
    }
    return *inputs_[0].collection;
  }

  absl::StatusOr<int64_t> Attribute(std::string_view name, int64_t fallback) const {
    ASSIGN_OR_RETURN(AttrMap attrs, ReadAttributes(node_));
    return attrs.Int(name, fallback);
  }

  absl::StatusOr<const HostTensor*> Known(size_t i, std::string_view what) const {
    ASSIGN_OR_RETURN(TensorId id, Tensor(i));
    const HostTensor* value = builder_.ConstantValue(id);
    if (value == nullptr) {
      return Unimplemented(
          "input ", i, " ", QuoteShort(builder_.tensor(id).name), " (", what,
          ") is known to a run only; sequences whose elements follow from constants"
          " are supported (fusionctl: --fix NAME=VALUE)");
    }
    if (!IsInteger(value->dtype()) || value->dims().size() > 1) {
      return InvalidArgument("input ", i, " (", what, ") is ", DTypeName(value->dtype()),
                             DimsToString(value->dims()), ", expected integers");
    }
    return value;
  }

  // Input `i`, a position of `count`; `fallback` if it is absent.
  absl::StatusOr<size_t> Position(size_t i, int64_t count, int64_t fallback) const {
    int64_t at = fallback;
    if (Has(i)) {
      ASSIGN_OR_RETURN(const HostTensor* value, Known(i, "position"));
      if (value->elements() != 1) {
        return InvalidArgument("input ", i, " (position) has ", value->elements(),
                               " elements, expected 1");
      }
      at = value->GetInt(0);
    }
    if (at < -count || at >= count) {
      return InvalidArgument("position ", at, " of a sequence, expected ", -count, "..", count - 1);
    }
    return static_cast<size_t>(at < 0 ? at + count : at);
  }

  absl::StatusOr<TensorId> Add(std::string_view op, std::vector<TensorId> inputs, AttrMap attrs,
                               const std::string& output) {
    RETURN_IF_ERROR(count_());
    ASSIGN_OR_RETURN(std::vector<TensorId> made,
                     builder_.AddMultiNode(*FindOp(op), std::move(inputs), std::move(attrs),
                                           node_.name, {output}));
    return made[0];
  }

  // The tensor under the name of the output.
  absl::StatusOr<Item> Named(TensorId id) {
    ASSIGN_OR_RETURN(TensorId named, Add("Identity", {id}, {}, output_));
    return Of(named);
  }

  Item Constant(HostTensor value) { return Of(builder_.AddConstant(output_, std::move(value))); }

  absl::StatusOr<Item> Optional() {
    if (Has(0)) return inputs_[0];
    return Item{.tensor = kNoTensor, .collection = Collection{true, {}}};
  }

  absl::StatusOr<Item> HasElement() {
    HostTensor value(DType::kBool, {});
    value.SetInt(0, Has(0) && !(inputs_[0].collection && inputs_[0].collection->is_none) ? 1 : 0);
    return Constant(std::move(value));
  }

  absl::StatusOr<Item> GetElement() {
    if (!Has(0)) return InvalidArgument("input 0 is absent but required");
    if (!inputs_[0].collection) return Named(inputs_[0].tensor);
    if (inputs_[0].collection->is_none) return InvalidArgument("input 0 has no element");
    return inputs_[0];
  }

  absl::Status CheckElement(TensorId id, const std::vector<TensorId>& others) const {
    const DType type = builder_.tensor(id).type.dtype;
    if (others.empty() || builder_.tensor(others[0]).type.dtype == type) return absl::OkStatus();
    return InvalidArgument("an element is ", DTypeName(type), ", others are ",
                           DTypeName(builder_.tensor(others[0]).type.dtype),
                           "; expected one element type");
  }

  absl::StatusOr<Item> Construct() {
    std::vector<TensorId> elements;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ASSIGN_OR_RETURN(TensorId id, Tensor(i));
      RETURN_IF_ERROR(CheckElement(id, elements));
      elements.push_back(id);
    }
    if (elements.empty()) return InvalidArgument("has no input, expected at least 1");
    return Of(std::move(elements));
  }

  absl::StatusOr<Item> Length(const Collection& sequence) {
    HostTensor value(DType::kI64, {});
    value.SetInt(0, static_cast<int64_t>(sequence.elements.size()));
    return Constant(std::move(value));
  }

  absl::StatusOr<Item> At(const Collection& sequence) {
    if (!Has(1)) return InvalidArgument("input 1 (position) is absent but required");
    ASSIGN_OR_RETURN(size_t at, Position(1, static_cast<int64_t>(sequence.elements.size()), 0));
    return Named(sequence.elements[at]);
  }

  absl::StatusOr<Item> Insert(Collection sequence) {
    ASSIGN_OR_RETURN(TensorId id, Tensor(1));
    RETURN_IF_ERROR(CheckElement(id, sequence.elements));
    const auto count = static_cast<int64_t>(sequence.elements.size());
    // Behind all is a position, too: n, or absent; -n and below n count the elements there are.
    size_t at = sequence.elements.size();
    if (Has(2)) {
      ASSIGN_OR_RETURN(const HostTensor* value, Known(2, "position"));
      if (value->elements() == 1 && value->GetInt(0) == count) return Inserted(sequence, at, id);
      ASSIGN_OR_RETURN(at, Position(2, count, 0));
    }
    return Inserted(sequence, at, id);
  }

  static Item Inserted(Collection& sequence, size_t at, TensorId id) {
    sequence.elements.insert(sequence.elements.begin() + static_cast<std::ptrdiff_t>(at), id);
    return Of(std::move(sequence.elements));
  }

  absl::StatusOr<Item> Erase(Collection sequence) {
    ASSIGN_OR_RETURN(size_t at, Position(1, static_cast<int64_t>(sequence.elements.size()), -1));
    sequence.elements.erase(sequence.elements.begin() + static_cast<std::ptrdiff_t>(at));
    return Of(std::move(sequence.elements));
  }

  absl::StatusOr<Item> Concat(const Collection& sequence) {
    ASSIGN_OR_RETURN(const int64_t new_axis, Attribute("new_axis", 0));
    ASSIGN_OR_RETURN(AttrMap attrs, ReadAttributes(node_));
    if (!attrs.Has("axis")) return InvalidArgument("attribute \"axis\" is missing");
    const int64_t axis = attrs.Int("axis", 0);
    if (sequence.elements.empty()) {
      return InvalidArgument("input 0 is a sequence without an element: there is nothing to join");
    }
    if (sequence.elements.size() > kMaxVariadicInputs) {
      return Unimplemented("input 0 has ", sequence.elements.size(), " elements; at most ",
                           kMaxVariadicInputs, " are supported");
    }
    std::vector<TensorId> pieces = sequence.elements;
    for (TensorId& piece : pieces) {
      if (new_axis == 0) break;
      ASSIGN_OR_RETURN(piece, Add("Unsqueeze", {piece}, {{"axes", Dims{axis}}}, ""));
    }
    ASSIGN_OR_RETURN(TensorId all, Add("Concat", std::move(pieces), {{"axis", axis}}, output_));
    return Of(all);
  }

  // Extents of the pieces along a dim of `extent`.
  absl::StatusOr<Dims> Pieces(int64_t extent) const {
    int64_t chunk = 1;
    if (Has(1)) {
      ASSIGN_OR_RETURN(const HostTensor* split, Known(1, "split"));
      if (split->dims().size() == 1) return ListedPieces(*split, extent);
      chunk = split->GetInt(0);
      if (chunk < 1) return InvalidArgument("split is ", chunk, ", expected at least 1");
    }
    if (extent / chunk > kMaxPieces) {
      return ResourceExhausted("gives ", extent / chunk, " pieces; at most ", kMaxPieces,
                               " are supported");
    }
    Dims out;
    for (int64_t left = extent; left > 0; left -= out.back()) {
      out.push_back(std::min(chunk, left));
    }
    return out;
  }

  static absl::StatusOr<Dims> ListedPieces(const HostTensor& split, int64_t extent) {
    if (split.elements() > kMaxPieces) {
      return ResourceExhausted("gives ", split.elements(), " pieces; at most ", kMaxPieces,
                               " are supported");
    }
    Dims out;
    int64_t left = extent;
    for (int64_t i = 0; i < split.elements(); ++i) {
      out.push_back(split.GetInt(i));
      if (out.back() < 0 || out.back() > left) {
        return InvalidArgument("split has the entry ", out.back(), ", where ", left, " of ", extent,
                               " elements are left");
      }
      left -= out.back();
    }
    if (left == 0) return out;
    return InvalidArgument("the entries of split add up to ", extent - left, ", expected ", extent);
  }

  absl::StatusOr<Item> Split() {
    ASSIGN_OR_RETURN(TensorId x, Tensor(0));
    const Shape& shape = builder_.tensor(x).type.shape;
    ASSIGN_OR_RETURN(int64_t axis, Attribute("axis", 0));
    if (axis < -shape.rank() || axis >= shape.rank()) {
      return InvalidArgument("axis ", axis, " out of range for rank ", shape.rank());
    }
    if (axis < 0) axis += shape.rank();
    const Dim& dim = shape.dim(static_cast<int>(axis));
    if (!dim.is_static()) {
      return Unimplemented("splits the symbolic dim ", dim.ToString(), " of input 0; bind it");
    }
    ASSIGN_OR_RETURN(Dims pieces, Pieces(dim.value()));
    ASSIGN_OR_RETURN(int64_t keeps, Attribute("keepdims", 1));
    std::vector<TensorId> elements;
    for (int64_t begin = 0; int64_t piece : pieces) {
      ASSIGN_OR_RETURN(
          TensorId part,
          Add("Slice", {x},
              {{"starts", Dims{begin}}, {"ends", Dims{begin + piece}}, {"axes", Dims{axis}}}, ""));
      if (!Has(1) && keeps == 0) {
        ASSIGN_OR_RETURN(part, Add("Squeeze", {part}, {{"axes", Dims{axis}}}, ""));
      }
      elements.push_back(part);
      begin += piece;
    }
    return Of(std::move(elements));
  }

  const FlatNode& node_;
  const std::vector<Item>& inputs_;
  const std::string& output_;
  const std::function<absl::Status()>& count_;
  GraphBuilder& builder_;
};

}  // namespace

std::string KindOf(const Collection& collection) {
  return collection.is_none ? "an optional without an element" : "a sequence";
}

const std::vector<CollectionOp>& CollectionOps() {
  static const auto* const kOps = new std::vector<CollectionOp>{
      {"ConcatFromSequence", 11}, {"Optional", 15},      {"OptionalGetElement", 15},
      {"OptionalHasElement", 15}, {"SequenceAt", 11},    {"SequenceConstruct", 11},
      {"SequenceEmpty", 11},      {"SequenceErase", 11}, {"SequenceInsert", 11},
      {"SequenceLength", 11},     {"SequenceMap", 17},   {"SplitToSequence", 11}};
  return *kOps;
}

bool IsCollectionOp(const FlatNode& node) {
  const std::vector<CollectionOp>& ops = CollectionOps();
  return node.domain.empty() && std::any_of(ops.begin(), ops.end(), [&](const CollectionOp& op) {
           return op.name == node.op && node.opset >= op.first_opset;
         });
}

absl::StatusOr<Item> AddCollectionOp(const FlatNode& node, const std::vector<Item>& inputs,
                                     const std::string& output,
                                     const std::function<absl::Status()>& count,
                                     GraphBuilder* builder) {
  absl::StatusOr<Item> item = Collector(node, inputs, output, count, builder).Run();
  if (item.ok()) return item;
  const std::string what = DescribeNode(node.name, node.op);
  return std::string_view(Message(item.status())).starts_with(what) ? item.status()
                                                                    : Annotate(item.status(), what);
}

absl::Status RefuseCollection(const FlatNode& node, size_t input, std::string_view name,
                              const Collection& collection) {
  return Unimplemented(DescribeNode(node.name, node.op), ": input ", input, " ", QuoteShort(name),
                       " is ", KindOf(collection),
                       ", which this op does not take; only sequences that are taken apart again "
                       "are supported");
}

}  // namespace fusion
