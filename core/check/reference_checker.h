#pragma once

#include <string>
#include <vector>

#include "core/bundle/plan.h"
#include "core/compile/kernel_checker.h"
#include "core/runtime/loaded_kernel.h"
#include "core/schedule/lower/reference.h"
#include "core/tensor/compare.h"

namespace fusion {

struct CheckOptions {
  /// Budget of the evaluator for one set of inputs, in iteration points (it computes about 50
  /// million a second). Outputs that need more are compared in sampled boxes.
  double points = 1e6;
  /// Number of sampled boxes: at the last corner, at the first corner, the rest at random. Fewer,
  /// but at least one, if all together need more than 100 times `points`.
  int boxes = 4;
  /// Also runs on inputs with NaN, infinities, -0 and subnormals. A schedule that may ignore some
  /// of them (it skips what masks hide, or is loose) also runs on inputs with a single NaN.
  bool special_values = true;
  /// Limit for all params together. A kernel with more is published unverified.
  int64_t max_bytes = int64_t{2} << 30;
  /// For a kernel that takes sizes: the sizes of the member that schedule and reference describe.
  std::vector<int64_t> sizes = {};
};

/// Runs `kernel` on random and on special inputs, and also in place if its schedule permits that,
/// and compares its outputs with those of the evaluator. Reports the largest differences on the
/// random inputs. Returns a report with verified = false and a reason if nothing can be compared:
/// it needs more than max_bytes, one sample needs more than 100 times `points`, or the evaluator
/// accepts no random values. Internal, saying what differs where, if the kernel is wrong.
absl::StatusOr<CheckReport> CheckKernel(const LoadedKernel& kernel, const Schedule& schedule,
                                        const KernelReference& reference,
                                        const CheckOptions& options = {});

/// The check that workers run before a kernel is published. Loads the object, checks its descriptor
/// (instruction set, scratch, workspace), then calls CheckKernel for job.reference, or for each of
/// job.members. With members the report sums up those that could be compared; one is enough for
/// `verified`. Without a reference, or on a machine that lacks job.isa, the report is unverified
/// and says why. Internal if the descriptor does not match the job or results are wrong; errors of
/// LoadKernel are passed on, as Internal for a hand-written kernel. Executes the kernel in this
/// process.
class ReferenceChecker final : public KernelChecker {
 public:
  explicit ReferenceChecker(CheckOptions options = {}) : options_(options) {}

  absl::StatusOr<CheckReport> Check(const CompileJob& job, std::string_view shared_object) override;

 private:
  const CheckOptions options_;
};

}  // namespace fusion
