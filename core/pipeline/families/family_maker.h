#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/codegen/generalise.h"
#include "core/compile/toolchain.h"
#include "core/pipeline/families/family.h"
#include "core/pipeline/families/family_points.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

/// The plan of each member beside that of the largest one.
class FamilyMaker {
 public:
  // `symbols`: those of the family, or of a variant.
  FamilyMaker(const ShapeFamily& family, const std::vector<DimRange>& symbols,
              const DeviceSpec& device, const PlanOptions& options, const Toolchain& toolchain,
              PlannedModel* model, const CancelToken* cancel)
      : family_(family),
        symbols_(symbols),
        device_(device),
        options_(options),
        toolchain_(toolchain),
        model_(*model),
        cancel_(cancel),
        least_(LeastUnits(symbols)),
        most_(MostUnits(symbols)) {}

  absl::StatusOr<NamedKernels> Run();

  // Why there is no one plan, in the words of the model.
  absl::Status Refusal(const absl::Status& why) const;

  // Estimated time of a run where symbols have these values, once Run has made the kernels;
  // nullopt: it is not known.
  std::optional<double> TimeAt(const Units& units) const;

 private:
  // `why` kernels are not the same at a member, with its values. Forms that differ have an advice:
  // windows that divide a dim evenly at some of its values only are the common case.
  absl::Status AtMember(const FamilyMember& member, const absl::Status& why, bool form) const;

  absl::Status CheckAlike(const Plan& plan);

  absl::Status CheckConstants(const Plan& plan) const;

  absl::StatusOr<SizeExpr> Fit(const std::vector<int64_t>& values);

  // One of a plan's tensors in every member.
  absl::Status SizeTensor(size_t t);

  // Memory that bodies of loops lie in is nobody's by itself, and as large as it must be at most.
  absl::Status SizeTensors();

  // No kernel reads an input if the graph uses its shape alone. That shape may be the only place
  // that tells the value of a symbol, so the plan gets a tensor for it.
  void AddUnreadInputs();

  // Nullopt: what its dims are at the members is not known.
  std::optional<PlanTensor> UnreadInput(size_t input);

  absl::Status SizeLoops();

  // What shares memory within a launch must do so element by element in every member.
  absl::Status CheckInPlace();

  // The nodes that a refusal is about.
  void Blame(int group);

  const Schedule& ScheduleOf(const PlanLaunch& launch) const;

  // Kernels of the largest member that are one there may be several here.
  absl::Status MakeKernels();

  const PlannedKernel& KernelOf(size_t member, const std::vector<int>& key) const;

  absl::Status AddKernel(const std::vector<int>& key, const Backend* backend);

  // What the kernel of a family is: its source, and all that it was proven and checked for. The
  // same source for another range is another kernel.
  std::string KeyTextOf(const GeneralSource& general, const CompileJob& job) const;

  // The same kernel whatever the symbols are: that of a plan without them.
  absl::Status AddStatic(const PlannedKernel& kernel, const Backend* backend, PlanKernel* planned);

  // No dim is ever longer than in the largest member, which local buffers are made for.
  // `varies`: which dims are not as long in every member.
  absl::Status CheckExtents(const Schedule& most, const std::vector<int>& key,
                            std::vector<bool>* varies);

  absl::Status CheckNeeds(const GeneralSource& general) const;

  // Cases to check: the corners, where each symbol is shorter or longer than others, and some
  // values between.
  absl::Status AddMembers(const GeneralText& schedules, const std::vector<std::string>& references,
                          const std::vector<SizeExpr>& sizes, CompileJob* job) const;

  const ShapeFamily& family_;
  const std::vector<DimRange>& symbols_;
  const DeviceSpec& device_;
  PlanOptions options_;
  const Toolchain& toolchain_;
  PlannedModel& model_;
  const CancelToken* cancel_;
  const Units least_;
  const Units most_;
  std::vector<Units> points_;
  std::vector<PlannedModel> members_;
  std::map<std::vector<int64_t>, std::optional<SizeExpr>> fits_;
  CodegenIdentity codegen_;
  std::vector<int> blamed_;
  std::vector<std::optional<GeneralText>> texts_;  // of schedules, by kernel; static ones have none
  NamedKernels named_;
};

}  // namespace fusion
