#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Sections of a block: before and after the temporal loop; all others are inside.
inline constexpr int kBeforeLoop = 0;
inline constexpr int kInsideLoop = 1;
inline constexpr int kAfterLoop = 2;
inline constexpr bool IsInsideLoop(int section) {
  return section != kBeforeLoop && section != kAfterLoop;
}

/// The local buffers of a block while its nests are lowered: which op's value lies in which, and
/// between which nests each is in use, from which follows where it is allocated. A block has three
/// sections: before, inside and after the temporal loop; where that has several parts, each is a
/// section. Internal to lowering.
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
  LocalBuffers(size_t ops, Schedule* schedule) : schedule_(schedule), buffer_of_(ops, -1) {}

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

  /// The next part of the temporal loop: of what the last one kept, buffers that `lasts` says stay
  /// are those that the next one keeps it in, and of all else it makes its own. `before`: what was
  /// held before the loop.
  void NextPart(const std::vector<BufferId>& before, const std::function<bool(int op)>& lasts);
  /// The buffers held now, by op.
  const std::vector<BufferId>& held() const { return buffer_of_; }
  /// Where an op's value is to be kept; -1: wherever there is room.
  BufferId Wanted(int op) const { return wanted_.empty() ? -1 : wanted_[static_cast<size_t>(op)]; }
  size_t ops() const { return buffer_of_.size(); }

  const std::map<BufferId, Span>& spans() const { return spans_; }

 private:
  Schedule* schedule_;
  std::vector<BufferId> buffer_of_;  // by op
  std::vector<BufferId> wanted_;     // by op; empty: none is
  std::map<BufferId, Span> spans_;
  int section_ = 0;
  int nest_ = 0;
};

}  // namespace fusion
