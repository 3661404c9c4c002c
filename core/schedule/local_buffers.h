#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/schedule/schedule.h"

namespace fusion {

/// The local buffers of a block while its nests are lowered: which op's value lies in which, and
/// between which nests each is in use, from which follows where it is allocated. A block has three
/// sections: before, inside and after the temporal loop. Internal to lowering.
class LocalBuffers {
 public:
  /// Where a staged buffer is used.
  struct Span {
    int section = 0;
    int first = 0;  // nest within the section
    int last = 0;
    bool other_sections = false;  // too
    std::string init;             // monoid whose identity it starts with; "": none
  };

  /// Buffers are added to `schedule`, which has its params; ops are numbered 0..ops-1.
  LocalBuffers(size_t ops, Schedule* schedule) : schedule_(*schedule), buffer_of_(ops, -1) {}

  /// What is used from here on is used in this nest of this section.
  void Enter(int section, int nest) {
    section_ = section;
    nest_ = nest;
  }
  int section() const { return section_; }
  int nest() const { return nest_; }

  BufferId Add(const std::vector<DimId>& dims, DType dtype, Level level, BufferLayout layout = {});
  /// Notes a use in the current nest. Buffers that are not staged are of no interest: accumulators
  /// are allocated at their product.
  void Use(BufferId b);
  /// Uses a buffer that starts with the identity of `monoid`.
  void UseAsFold(BufferId b, const std::string& monoid);
  /// A buffer in use is needed in other sections as well.
  void KeepAcrossSections(BufferId b) { spans_.at(b).other_sections = true; }

  /// The buffer that holds an op's value; -1: none yet.
  BufferId Of(int op) const { return buffer_of_[static_cast<size_t>(op)]; }
  void Hold(int op, BufferId b) { buffer_of_[static_cast<size_t>(op)] = b; }
  size_t ops() const { return buffer_of_.size(); }

  const std::map<BufferId, Span>& spans() const { return spans_; }

 private:
  Schedule& schedule_;
  std::vector<BufferId> buffer_of_;  // by op
  std::map<BufferId, Span> spans_;
  int section_ = 0;
  int nest_ = 0;
};

}  // namespace fusion
