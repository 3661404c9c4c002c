#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Sections of a block: before, inside and after the temporal loop. If the loop has several parts,
/// each part is a section of its own: any number other than kBeforeLoop and kAfterLoop.
inline constexpr int kBeforeLoop = 0;
inline constexpr int kInsideLoop = 1;
inline constexpr int kAfterLoop = 2;
inline constexpr bool IsInsideLoop(int section) {
  return section != kBeforeLoop && section != kAfterLoop;
}

/// The local buffers of a block while its nests are lowered: which buffer holds which op's value,
/// and in which sections and nests each buffer is used. AssembleSection places AllocStmts
/// accordingly. Internal to lowering.
class LocalBuffers {
 public:
  /// The nests that use a staged buffer.
  struct Span {
    int section = 0;
    int first = 0;  // nest within the section
    int last = 0;
    bool other_sections = false;  // also used in other sections
    std::string init;             // monoid whose identity it is initialised with; "": none
  };

  /// `schedule` has its params already; Add appends buffers to it, so it must outlive this object.
  /// Ops are numbered 0..ops-1.
  LocalBuffers(size_t ops, Schedule* schedule) : schedule_(schedule), buffer_of_(ops, -1) {}

  /// Sets the current section and nest, in which later uses count.
  void Enter(int section, int nest) {
    section_ = section;
    nest_ = nest;
  }
  int section() const { return section_; }
  int nest() const { return nest_; }

  /// Adds a local buffer to the schedule and returns it.
  BufferId Add(const std::vector<DimId>& dims, DType dtype, Level level, BufferLayout layout = {});
  /// Notes a use in the current nest. Only staged buffers are tracked: accumulators are allocated
  /// at their product.
  void Use(BufferId b);
  /// Use(b), with a buffer that is initialised with the identity of `monoid`.
  void UseAsFold(BufferId b, const std::string& monoid);
  /// Marks a used buffer as needed in other sections too.
  void KeepAcrossSections(BufferId b) { spans_.at(b).other_sections = true; }

  /// The buffer that holds an op's value now; -1: none.
  BufferId Of(int op) const { return buffer_of_[static_cast<size_t>(op)]; }
  /// From now on buffer `b` holds the value of `op`.
  void Hold(int op, BufferId b) { buffer_of_[static_cast<size_t>(op)] = b; }

  /// Begins the next part of the temporal loop. Values of ops for which `lasts` returns true stay
  /// in their buffers, and the next part stores them to the same ones (Wanted). Each other op gets
  /// back the buffer that it had before the loop. `before`: held() at that point.
  void NextPart(const std::vector<BufferId>& before, const std::function<bool(int op)>& lasts);
  /// By op: the buffer that holds its value now; -1: none.
  const std::vector<BufferId>& held() const { return buffer_of_; }
  /// The buffer in which an op's value must be kept; -1: any.
  BufferId Wanted(int op) const { return wanted_.empty() ? -1 : wanted_[static_cast<size_t>(op)]; }
  size_t ops() const { return buffer_of_.size(); }

  const std::map<BufferId, Span>& spans() const { return spans_; }

 private:
  Schedule* schedule_;
  std::vector<BufferId> buffer_of_;  // by op
  std::vector<BufferId> wanted_;     // by op; empty: no op has one
  std::map<BufferId, Span> spans_;
  int section_ = 0;
  int nest_ = 0;
};

}  // namespace fusion
