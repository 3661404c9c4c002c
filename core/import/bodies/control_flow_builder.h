#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "core/import/bodies/control_flow.h"

namespace fusion {

using Ids = std::vector<TensorId>;
using Items = std::vector<Item>;

/// Tensors as items.
Items ItemsOf(const Ids& ids);
/// Their tensors; of collections kNoTensor.
Ids IdsOf(const Items& items);
/// Output `i` of a body where it must be a tensor.
absl::StatusOr<TensorId> IdOf(const Items& outputs, size_t i);
/// Whether one of them is a sequence or an optional.
bool HoldsCollections(const Items& items);
/// A tensor without dims that holds `value`.
HostTensor NumberTensor(DType type, int64_t value);

/// Adds one If, Loop or Scan to a graph: AddControlFlow. One use; not thread-safe. What it is made
/// from outlives it.
class ControlFlowBuilder {
 public:
  ControlFlowBuilder(const FlatNode& node, const Items& inputs, const Bodies& bodies,
                     GraphBuilder* builder)
      : node_(node), items_(inputs), inputs_(IdsOf(inputs)), bodies_(bodies), builder_(*builder) {}

  absl::StatusOr<Items> If();

  absl::StatusOr<Items> Loop();

  // Attribute "num_scan_inputs", whatever it is; 0: there is none.
  int64_t ToldScans() const;

  absl::StatusOr<Ids> Scan();

 private:
  // A branch of an If that a run may take or not. It may be one that no run takes on inputs of
  // these shapes, and then what is wrong with it is of no use to anyone.
  absl::StatusOr<Items> Branch(const onnx::GraphProto& body, const std::string& name);

  // The trip count and the condition of a Loop.
  struct Passes {
    TensorId count = kNoTensor;      // scalar; kNoTensor: as long as the condition holds
    TensorId alive = kNoTensor;      // likewise; kNoTensor: as often as `count` says
    std::optional<int64_t> counted;  // the value of `count`
    std::optional<bool> begins;      // that of `alive`

    // At most so many passes; nullopt: only a run knows, or the condition alone says.
    std::optional<int64_t> known() const {
      if (begins == false) return 0;
      return counted;
    }
  };

  // What is told by input and output of a Scan.
  struct Scans {
    Ids inputs;
    std::vector<int64_t> axes;
    std::vector<int64_t> directions;
    std::vector<int64_t> out_axes;
    std::vector<int64_t> out_directions;
  };

  // Opset 8: the first dim is a batch of scans apart from each other, the second what they go
  // along.
  absl::StatusOr<Ids> BatchedScan();

  // `name` tells the passes from those of other scans of the node.
  absl::StatusOr<Ids> ScanAlong(const onnx::GraphProto& body, const Ids& state, Scans scans,
                                const std::string& name);

  absl::StatusOr<Passes> AskedPasses();

  // How many passes a Loop makes whose condition follows from what is known here, as that of a
  // counter and a limit does. Where there may be other limits (`most_written_out` is 0) nothing is
  // followed.
  std::optional<int64_t> Followed(const Passes& passes, const absl::StatusOr<RepeatBody>& made,
                                  const Ids& state) const;

  // A few passes, and those of a body that is no body of a repeat: a state that changes its type, a
  // number of the pass that must be known.
  bool IsWrittenOut(std::optional<int64_t> passes, const Ids& state,
                    const absl::StatusOr<RepeatBody>& body, int64_t scanned) const;

  // One that carries sequences or optionals: what they hold is known pass by pass only.
  absl::StatusOr<Items> LoopOfCollections(const onnx::GraphProto& body, const Passes& passes,
                                          const Items& state, int64_t scanned);

  // As often as passes.known(), or as long as the condition is known to hold.
  absl::StatusOr<Items> LoopWrittenOut(const onnx::GraphProto& body, const Passes& passes,
                                       Items state, int64_t scanned);

  absl::StatusOr<Ids> LoopOf(RepeatBody body, const Passes& passes, Ids state, int64_t scanned);

  absl::StatusOr<Ids> AddRepeat(std::shared_ptr<Repeat> repeat, Ids operands);

  // What is carried is what it was; nothing is kept.
  absl::StatusOr<Ids> NoPass(const RepeatBody& body, Ids state);

  absl::StatusOr<Ids> ScanWrittenOut(const onnx::GraphProto& body, int64_t passes, Ids state,
                                     const Scans& scans, const std::string& name);

  absl::StatusOr<Ids> ScanOf(RepeatBody body, int64_t passes, const Ids& state, const Scans& scans);

  // The same with dim `from` as dim `to`, which may count from the end.
  absl::StatusOr<TensorId> Moved(TensorId id, int64_t from, int64_t to);

  absl::StatusOr<const onnx::GraphProto*> Body(std::string_view name) const;

  // Input i is there, whatever it is.
  bool IsGiven(size_t i) const { return inputs_[i] != kNoTensor || items_[i].collection; }

  // Without what the bodies use from outside.
  int64_t own_inputs() const { return node_.proto->input_size(); }

  absl::Status CheckPresent(int64_t i, std::string_view what) const;

  // Input i, of one element, as a scalar.
  absl::StatusOr<TensorId> Scalar(size_t i, std::string_view what);

  absl::StatusOr<Items> Pass(const onnx::GraphProto& body, int64_t pass, TensorId alive,
                             const Items& state);

  // Whether there is a next pass after one that was only made if `before`, and said `now`.
  absl::StatusOr<TensorId> StillAlive(TensorId before, TensorId now);

  absl::StatusOr<TensorId> Chosen(TensorId condition, TensorId yes, TensorId no,
                                  std::string_view what);

  // Sequences are chosen between element by element.
  absl::StatusOr<Item> ChosenItem(TensorId condition, const Item& yes, const Item& no,
                                  std::string_view what);

  // A list attribute of Scan, 0 each if it is absent.
  absl::StatusOr<std::vector<int64_t>> PerScan(std::string_view name, int64_t count) const;

  // The common extent of the scan inputs along their axes, which are normalised.
  absl::StatusOr<int64_t> ScanLength(Scans* scans) const;

  absl::StatusOr<TensorId> Element(TensorId from, int64_t axis, int64_t at);

  // What the passes gave, one behind the other along a new dim.
  absl::StatusOr<TensorId> Stacked(Ids elements, int64_t axis, bool backward);

  std::string Name(std::string_view what) const { return StrCat(node_.name, "/", what); }

  const FlatNode& node_;
  const Items& items_;
  const Ids inputs_;  // those that are tensors
  const Bodies& bodies_;
  GraphBuilder& builder_;
};

}  // namespace fusion
