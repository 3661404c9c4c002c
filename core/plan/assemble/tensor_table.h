#pragma once

#include <memory>
#include <vector>

#include "core/bundle/plan.h"
#include "core/graph/program/program.h"
#include "core/plan/cost/evaluator.h"

namespace fusion {

/// The tensors of a plan that is assembled launch by launch, with their lifetimes and, after Place,
/// their memory. Functions that return an int return a tensor id (position in Plan::tensors). The
/// "next launch" is the next call of AddLaunch. Not thread-safe. Constructor arguments must outlive
/// it.
///
///   TensorTable tensors(program, *evaluator, &plan);
///   int t = tensors.Of(value);
///   tensors.AddLaunch(/*prepare=*/false, {t, ...});
///   tensors.Place();
class TensorTable {
 public:
  /// Declares the tensors that the caller binds: inputs, weights, outputs, in this order. Their ids
  /// do not depend on the launches.
  TensorTable(const Program& program, const GroupEvaluator& evaluator, Plan* plan);

  /// The tensor of a value. The first call creates it. The next launch must then write it, unless
  /// it is a constant or lies in another tensor.
  int Of(ValueId v);
  /// Valid until the next tensor is added.
  const PlanTensor& tensor(int id) const { return plan_.tensors[static_cast<size_t>(id)]; }
  /// A tensor of packed weights; the next prepare launch must write it.
  int AddPacked(DType dtype, Dims dims);
  /// A tensor in the arena that the next launch both writes and reads.
  int AddScratch(DType dtype, Dims dims);
  /// A block of `bytes` in the arena or, with `prepared`, in prepared memory. The next launch must
  /// write it.
  int AddBlock(int64_t bytes, bool prepared);
  /// A tensor at byte `offset` of a block.
  int AddWithin(int block, const PlanTensor& tensor, int64_t offset);
  /// A tensor whose address differs in each pass of a loop. `place`: its number (PlanLoop).
  int AddAtPlace(const PlanTensor& tensor, int place);
  /// A constant that is stored in the plan.
  int AddConstant(std::shared_ptr<const HostTensor> value);
  /// Allows the next launch to write outputs in the memory of inputs, where `schedule` permits it.
  /// `tensors`: by param of `schedule`; negative: no tensor of a run.
  void NoteInPlace(const Schedule& schedule, const std::vector<int>& tensors);
  /// Ends a launch, of the prepare list or of a run. `tensors` are alive at it; negative ids are
  /// ignored.
  void AddLaunch(bool prepare, const std::vector<int>& tensors);
  /// Call it after the last launch. Assigns offsets to arena and prepared tensors, and sets
  /// arena_bytes and prepared_bytes of the plan.
  void Place();

 private:
  // Lifetime of a tensor that has memory of its own in the arena or in prepared memory.
  struct Owned {
    bool owned = false;
    bool prepared = false;
    bool kept = false;  // prepared, and read by runs: never freed
    int first = 0;
    int last = 0;
    int in_place_of = -1;  // plan tensor
  };

  int Add(DType dtype, Dims dims, Dims strides, Space space, int index);
  int AddValue(ValueId v, Space space, int index);
  int Root(int tensor) const { return tensor < 0 ? tensor : root_[static_cast<size_t>(tensor)]; }
  Owned& OwnedBy(int tensor) { return owned_[static_cast<size_t>(tensor)]; }
  bool StayAlike(int a, int b) const;
  void Touch(int tensor, bool prepare);
  int Step(bool prepare) const { return steps_[prepare ? 1 : 0]; }

  const Program& program_;
  const GroupEvaluator& evaluator_;
  Plan& plan_;
  int steps_[2] = {0, 0};       // launches of a run, and prepare launches, so far
  std::vector<int> tensor_of_;  // by value
  std::vector<Owned> owned_;    // by plan tensor
  std::vector<int> root_;  // by plan tensor: the tensor whose memory it uses; itself, except for
                           // reinterpretations and parts of blocks
  std::vector<int> class_of_;    // by plan tensor: Value::shape_class
  std::vector<int64_t> within_;  // by plan tensor: byte offset in that memory
};

}  // namespace fusion
