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

/// CallStmt::op of the schedule of a registered kernel: what it calls is its source, whole.
inline constexpr char kRegisteredCall[] = "registered";
/// Raised whenever an equal source would be compiled as another unit; part of that schedule.
inline constexpr int kRegisteredForm = 1;

/// A place in a program where a registered kernel computes exactly some loop ops.
struct RegisteredMatch {
  struct Param {
    ValueId value = 0;
    bool output = false;
  };

  std::shared_ptr<const RegisteredKernel> kernel;
  std::vector<LoopId> loops;  // ascending
  std::vector<Param> params;  // in the order of the kernel
  /// By RegisteredKernel::constants: literals of C.
  std::vector<std::string> constants;
  int64_t scratch_bytes = 0;      // of one thread
  int64_t workspace_bytes = 0;    // of one run
  std::optional<double> time_us;  // as an expression says; not set: there is none
  Estimate apart;                 // the nodes with a generated kernel each
};

/// Places of a program where registered kernels may run, by what they compute. Those of forced
/// kernels share no op. Not thread-safe.
class RegisteredMatches {
 public:
  /// `forced`: every set that holds something of the match and something else is forbidden.
  void Add(RegisteredMatch match, bool forced);

  bool empty() const { return of_loops_.empty(); }
  /// The matches that are exactly `loops`; null: none.
  const std::vector<RegisteredMatch>* Of(const std::vector<LoopId>& loops) const;
  /// The ops of every match that is not forced, each set once.
  const std::vector<std::vector<LoopId>>& sets() const { return sets_; }
  bool IsForced(LoopId l) const { return ForcedMatch(l) >= 0; }
  /// Why no kernel holds these ops; empty: nothing is in the way.
  Refusal Forbids(const std::vector<LoopId>& loops) const;
  /// What tells sets apart that are equal but for this: appended to `key`.
  void AppendKey(const std::vector<LoopId>& loops, std::vector<int>* key) const;

 private:
  std::map<std::vector<LoopId>, std::vector<RegisteredMatch>> of_loops_;
  std::map<std::vector<LoopId>, std::vector<int>> meaning_;  // of its matches, numbered
  std::map<std::string, int> meanings_;
  std::vector<std::vector<LoopId>> sets_;
  // The forced match that an op is in; -1: none.
  int ForcedMatch(LoopId l) const {
    return static_cast<size_t>(l) < forced_.size() ? forced_[static_cast<size_t>(l)] : -1;
  }

  std::vector<int> forced_;  // ForcedMatch by op, as far as the last op of such a match
  std::vector<std::vector<LoopId>> forced_loops_;
  std::vector<std::string> forced_names_;
};

/// What one launch is expected to take, where generated code of the same ops takes `generated`
/// (null: there is none). Off-chip bytes are those of its params.
Estimate EstimateRegistered(const RegisteredMatch& match, const Program& program,
                            const std::vector<bool>& constant, const Estimate* generated,
                            const DeviceSpec& device);

/// The schedule of the kernel there: params and a call in every phase. Its text names the kernel,
/// the digest of its source and its constants. `buffers`: its params, dense and row-major.
Schedule RegisteredSchedule(const RegisteredMatch& match, std::vector<Buffer> buffers,
                            std::string label);

}  // namespace fusion
