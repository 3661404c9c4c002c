#pragma once

#include "core/compile/kernel_checker.h"

namespace fusion {

/// Checks that a shared object is a kernel at all: it loads, <symbol> and <symbol>_descriptor are
/// there, ABI version, sizes and ISA are what we asked for, and the task counts of its phases make
/// sense. Compares no numbers: `verified` is always false, with the reason. Loads nothing if this
/// machine lacks the job's ISA.
class DescriptorChecker final : public KernelChecker {
 public:
  explicit DescriptorChecker(Isa host_isa) : host_isa_(host_isa) {}

  absl::StatusOr<CheckReport> Check(const CompileJob& job,
                                    const std::string& shared_object_path) override;

 private:
  const Isa host_isa_;
};

}  // namespace fusion
