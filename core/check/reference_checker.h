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
  /// Iteration points that the evaluator may spend on one set of inputs (about 50 million a
  /// second); what is larger is compared in sampled boxes.
  double points = 1e6;
  /// Boxes sampled then: the last corner, the first corner, the rest at random. Fewer, but at least
  /// one, where all of them would take more than 100 times `points`.
  int boxes = 4;
  /// Also inputs with NaN, infinities, -0 and subnormals. Where a schedule may overlook some of
  /// them (it leaves out what masks hide, or is loose), also with a single NaN.
  bool special_values = true;
  /// Params together; a kernel that takes more is published unverified.
  int64_t max_bytes = int64_t{2} << 30;
  /// Of a kernel that takes sizes: those of the member that schedule and reference are of.
  std::vector<int64_t> sizes = {};
};

/// Runs `kernel` on random and on special inputs, and in place where its schedule promises to allow
/// that, and compares its outputs with the evaluator's. Internal, saying what differs where, if it
/// fails. Reports the largest differences met on the random inputs.
absl::StatusOr<CheckReport> CheckKernel(const LoadedKernel& kernel, const Schedule& schedule,
                                        const KernelReference& reference,
                                        const CheckOptions& options = {});

/// What workers run before a kernel is published: loads the object, checks its descriptor, then
/// CheckKernel on job.reference, or on each of job.members. Without a reference, or on a machine
/// that lacks job.isa, the report says why nothing was compared.
class ReferenceChecker final : public KernelChecker {
 public:
  explicit ReferenceChecker(CheckOptions options = {}) : options_(options) {}

  absl::StatusOr<CheckReport> Check(const CompileJob& job, std::string_view shared_object) override;

 private:
  const CheckOptions options_;
};

}  // namespace fusion
