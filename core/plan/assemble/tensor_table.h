#pragma once

#include <memory>
#include <vector>

#include "core/bundle/plan.h"
#include "core/graph/program/program.h"
#include "core/plan/cost/evaluator.h"

namespace fusion {

/// The tensors of a plan that is put together launch by launch, and where each of them lies. Not
/// thread-safe. What it is made from outlives it.
///
///   TensorTable tensors(program, *evaluator, &plan);
///   int t = tensors.Of(value);
///   tensors.AddLaunch(/*prepare=*/false, {t, ...});
///   tensors.Place();
class TensorTable {
 public:
  /// Declares what the caller binds, so that the ids of inputs, weights and outputs, in this order,
  /// do not depend on the launches.
  TensorTable(const Program& program, const GroupEvaluator& evaluator, Plan* plan);

  /// The plan tensor of a value, made on first use: the launch that is added next writes it.
  int Of(ValueId v);
  /// Valid until the next one is made.
  const PlanTensor& tensor(int id) const { return plan_.tensors[static_cast<size_t>(id)]; }
  /// A tensor of packed weights, written by the prepare launch that is added next.
  int AddPacked(DType dtype, Dims dims);
  /// A tensor of the arena that the launch that is added next fills and reads.
  int AddScratch(DType dtype, Dims dims);
  /// So many bytes of the arena, or of what is prepared, alike.
  int AddBlock(int64_t bytes, bool prepared);
  /// A tensor at `offset` of a block.
  int AddWithin(int block, const PlanTensor& tensor, int64_t offset);
  /// A tensor that launches of a loop find at a place.
  int AddAtPlace(const PlanTensor& tensor, int place);
  /// A constant that the plan carries.
  int AddConstant(std::shared_ptr<const HostTensor> value);
  /// The launch that is added next may write tensors in the place of others that it is passed.
  /// `tensors`: of the params of `schedule`; below 0 those that are none of a run's business.
  void NoteInPlace(const Schedule& schedule, const std::vector<int>& tensors);
  /// Ends a launch of the prepare list or of a run: these tensors (below 0: none) are alive at it.
  void AddLaunch(bool prepare, const std::vector<int>& tensors);
  /// After the last launch: gives tensors of the arena and prepared ones their offsets, and the
  /// plan its arena_bytes and prepared_bytes.
  void Place();

 private:
  // Whether a tensor is memory that some step of the plan owns: of the arena or prepared.
  struct Owned {
    bool owned = false;
    bool prepared = false;
    bool kept = false;  // prepared, and read by runs
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
  std::vector<int> root_;  // by plan tensor: whose memory it is; its own but for reinterpretations
                           // and what lies in blocks
  std::vector<int> class_of_;    // by plan tensor: Value::shape_class
  std::vector<int64_t> within_;  // by plan tensor: how far from the begin of that memory
};

}  // namespace fusion
