#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "core/import/bodies/control_flow.h"

namespace fusion {

using Ids = std::vector<TensorId>;
using Items = std::vector<Item>;

/// Wraps tensors as items.
Items ItemsOf(const Ids& ids);
/// The tensors of items; kNoTensor for collections.
Ids IdsOf(const Items& items);
/// Output `i` of a body; an error if it is no tensor.
absl::StatusOr<TensorId> IdOf(const Items& outputs, size_t i);
/// True if one of the items is a sequence or an optional.
bool HoldsCollections(const Items& items);
/// A scalar tensor that holds `value`.
HostTensor NumberTensor(DType type, int64_t value);

/// Adds one If, Loop or Scan to a graph; implements AddControlFlow. One use; not thread-safe. The
/// constructor's arguments must outlive it.
class ControlFlowBuilder {
 public:
  ControlFlowBuilder(const FlatNode& node, const Items& inputs, const Bodies& bodies,
                     GraphBuilder* builder)
      : node_(node), items_(inputs), inputs_(IdsOf(inputs)), bodies_(bodies), builder_(*builder) {}

  absl::StatusOr<Items> If();

  absl::StatusOr<Items> Loop();

  // Attribute "num_scan_inputs", unchecked; 0 if it is not set.
  int64_t ToldScans() const;

  absl::StatusOr<Ids> Scan();

 private:
  // Adds a branch of an If whose condition is known only at run time. Inputs of these shapes may
  // never take the branch. Therefore errors (InvalidArgument, Unimplemented) also name the integer
  // and bool inputs of one element that could determine the condition.
  absl::StatusOr<Items> Branch(const onnx::GraphProto& body, const std::string& name);

  // The trip count and the condition of a Loop.
  struct Passes {
    TensorId count = kNoTensor;      // scalar; kNoTensor: until the condition fails
    TensorId alive = kNoTensor;      // scalar; kNoTensor: `count` times
    std::optional<int64_t> counted;  // the value of `count`
    std::optional<bool> begins;      // the value of `alive`

    // Upper limit of the passes; nullopt: it is known only at run time, or only the condition
    // determines it.
    std::optional<int64_t> known() const {
      if (begins == false) return 0;
      return counted;
    }
  };

  // Attributes of a Scan, by scan input and output.
  struct Scans {
    Ids inputs;
    std::vector<int64_t> axes;
    std::vector<int64_t> directions;
    std::vector<int64_t> out_axes;
    std::vector<int64_t> out_directions;
  };

  // Opset 8: dim 0 is a batch of independent scans, dim 1 is scanned.
  absl::StatusOr<Ids> BatchedScan();

  // `name` distinguishes the passes from those of other scans of the node.
  absl::StatusOr<Ids> ScanAlong(const onnx::GraphProto& body, const Ids& state, Scans scans,
                                const std::string& name);

  absl::StatusOr<Passes> AskedPasses();

  // Number of passes of a Loop whose condition depends only on values known at import, such as a
  // counter and a limit. nullopt if `most_written_out` is 0, because other members of a family may
  // have other limits.
  std::optional<int64_t> Followed(const Passes& passes, const absl::StatusOr<RepeatBody>& made,
                                  const Ids& state) const;

  // True for few passes, and for a body that cannot be a repeat: a carried value changes its type,
  // or the number of the pass must be known.
  bool IsWrittenOut(std::optional<int64_t> passes, const Ids& state,
                    const absl::StatusOr<RepeatBody>& body, int64_t scanned) const;

  // A Loop that carries sequences or optionals: their contents are known only pass by pass.
  absl::StatusOr<Items> LoopOfCollections(const onnx::GraphProto& body, const Passes& passes,
                                          const Items& state, int64_t scanned);

  // Unrolls passes.known() passes, or as many as the condition is known to hold.
  absl::StatusOr<Items> LoopWrittenOut(const onnx::GraphProto& body, const Passes& passes,
                                       Items state, int64_t scanned);

  absl::StatusOr<Ids> LoopOf(RepeatBody body, const Passes& passes, Ids state, int64_t scanned);

  absl::StatusOr<Ids> AddRepeat(std::shared_ptr<Repeat> repeat, Ids operands);

  // The results of zero passes: carried values are the initial ones, stacked outputs are empty.
  absl::StatusOr<Ids> NoPass(const RepeatBody& body, Ids state);

  absl::StatusOr<Ids> ScanWrittenOut(const onnx::GraphProto& body, int64_t passes, Ids state,
                                     const Scans& scans, const std::string& name);

  absl::StatusOr<Ids> ScanOf(RepeatBody body, int64_t passes, const Ids& state, const Scans& scans);

  // The tensor with dim `from` moved to position `to`, which may count from the end.
  absl::StatusOr<TensorId> Moved(TensorId id, int64_t from, int64_t to);

  absl::StatusOr<const onnx::GraphProto*> Body(std::string_view name) const;

  // True if input i is present, as a tensor or a collection.
  bool IsGiven(size_t i) const { return inputs_[i] != kNoTensor || items_[i].collection; }

  // Number of inputs that the node lists, without the outer values of its bodies.
  int64_t own_inputs() const { return node_.proto->input_size(); }

  absl::Status CheckPresent(int64_t i, std::string_view what) const;

  // Input i, which has one element, as a scalar.
  absl::StatusOr<TensorId> Scalar(size_t i, std::string_view what);

  absl::StatusOr<Items> Pass(const onnx::GraphProto& body, int64_t pass, TensorId alive,
                             const Items& state);

  // Whether there is a next pass. `before`: this pass was made; `now`: its condition.
  absl::StatusOr<TensorId> StillAlive(TensorId before, TensorId now);

  absl::StatusOr<TensorId> Chosen(TensorId condition, TensorId yes, TensorId no,
                                  std::string_view what);

  // Sequences are selected element by element.
  absl::StatusOr<Item> ChosenItem(TensorId condition, const Item& yes, const Item& no,
                                  std::string_view what);

  // A list attribute of Scan; zeros if it is absent.
  absl::StatusOr<std::vector<int64_t>> PerScan(std::string_view name, int64_t count) const;

  // The common extent of the scan inputs along their axes. Normalises the axes.
  absl::StatusOr<int64_t> ScanLength(Scans* scans) const;

  absl::StatusOr<TensorId> Element(TensorId from, int64_t axis, int64_t at);

  // The results of the passes, concatenated along a new dim.
  absl::StatusOr<TensorId> Stacked(Ids elements, int64_t axis, bool backward);

  std::string Name(std::string_view what) const { return StrCat(node_.name, "/", what); }

  const FlatNode& node_;
  const Items& items_;
  const Ids inputs_;  // the tensors among them
  const Bodies& bodies_;
  GraphBuilder& builder_;
};

}  // namespace fusion
