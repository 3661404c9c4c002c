#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/refusal.h"
#include "core/bundle/plan.h"
#include "core/bundle/rules/registered_kernel.h"
#include "core/device/device_spec.h"
#include "core/graph/program/program.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// CallStmt::op in the schedule of a registered kernel. The call stands for the kernel's whole
/// source.
inline constexpr char kRegisteredCall[] = "registered";
/// Part of that schedule. Raise it whenever equal sources are compiled to different units.
inline constexpr int kRegisteredForm = 1;

/// A place in a program where a registered kernel computes exactly the ops `loops`.
struct RegisteredMatch {
  struct Param {
    ValueId value = 0;
    bool output = false;
  };

  std::shared_ptr<const RegisteredKernel> kernel;
  std::vector<LoopId> loops;  // ascending
  std::vector<Param> params;  // in the order of RegisteredKernel::params
  /// C literals, in the order of RegisteredKernel::constants.
  std::vector<std::string> constants;
  int64_t scratch_bytes = 0;      // per thread
  int64_t workspace_bytes = 0;    // per run
  std::optional<double> time_us;  // the value of its time expression; unset: it has none
  Estimate apart;                 // sum of the estimates of its nodes with a generated kernel each
};

/// The matches of registered kernels in one program, by the set of ops that they compute. Matches
/// of forced kernels must share no op. Not thread-safe.
class RegisteredMatches {
 public:
  /// `forced`: any set that holds some op of the match and some other op is forbidden.
  void Add(RegisteredMatch match, bool forced);

  bool empty() const { return of_loops_.empty(); }
  /// The matches that compute exactly `loops` (ascending); null: none. Valid until the next Add.
  const std::vector<RegisteredMatch>* Of(const std::vector<LoopId>& loops) const;
  /// The sets of ops of the matches that are not forced, each once.
  const std::vector<std::vector<LoopId>>& sets() const { return sets_; }
  bool IsForced(LoopId l) const { return ForcedMatch(l) >= 0; }
  /// Why a forced match forbids a kernel of these ops; empty if none does.
  Refusal Forbids(const std::vector<LoopId>& loops) const;
  /// Appends to `key` what distinguishes otherwise equal sets of ops: their matches and which ops
  /// are forced.
  void AppendKey(const std::vector<LoopId>& loops, std::vector<int>* key) const;

 private:
  std::map<std::vector<LoopId>, std::vector<RegisteredMatch>> of_loops_;
  std::map<std::vector<LoopId>, std::vector<int>> meaning_;  // of its matches, numbered
  std::map<std::string, int> meanings_;
  std::vector<std::vector<LoopId>> sets_;
  // The forced match that holds an op; -1: none.
  int ForcedMatch(LoopId l) const {
    return static_cast<size_t>(l) < forced_.size() ? forced_[static_cast<size_t>(l)] : -1;
  }

  std::vector<int> forced_;  // ForcedMatch by op; ends at the last op of a forced match
  std::vector<std::vector<LoopId>> forced_loops_;
  std::vector<std::string> forced_names_;
};

/// The estimated cost of one launch. `constant`: by value, true if it is known before the first
/// run. `generated`: the estimate of generated code for the same ops; null: there is none. Off-chip
/// bytes are those of the params.
Estimate EstimateRegistered(const RegisteredMatch& match, const Program& program,
                            const std::vector<bool>& constant, const Estimate* generated,
                            const DeviceSpec& device);

/// The schedule of the kernel at this match: params, and one call in every phase. Its text contains
/// the kernel's name, the digest of its source and its constants. `buffers`: the params, dense and
/// row-major.
Schedule RegisteredSchedule(const RegisteredMatch& match, std::vector<Buffer> buffers,
                            std::string label);

}  // namespace fusion
