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

/// Generalises the plan of the largest member by comparing it with the plans of all members
/// (MakeFamily). One use; not thread-safe. All arguments outlive it.
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

  // The error for the caller: `why` with the nodes and dims of the model.
  absl::Status Refusal(const absl::Status& why) const;

  // Estimated microseconds of a run at these values, after Run; nullopt if unknown.
  std::optional<double> TimeAt(const Units& units) const;

 private:
  // `why` with the values of the member. `form`: the kernels have another form there; the message
  // then suggests a multiple, because windows that divide a dim evenly at some of its values only
  // are the common case.
  absl::Status AtMember(const FamilyMember& member, const absl::Status& why, bool form) const;

  absl::Status CheckAlike(const Plan& plan);

  absl::Status CheckConstants(const Plan& plan) const;

  absl::StatusOr<SizeExpr> Fit(const std::vector<int64_t>& values);

  // Fits the sizes of one tensor over all members.
  absl::Status SizeTensor(size_t t);

  // Fits the sizes of all tensors that a launch, input, output or weight names. Memory that only
  // holds the tensors of loop bodies keeps its largest size.
  absl::Status SizeTensors();

  // Adds a plan tensor for each input whose shape alone the graph uses: no kernel reads it,
  // but its shape may be the only source of a symbol's value.
  void AddUnreadInputs();

  // Nullopt if its dims at the members are unknown.
  std::optional<PlanTensor> UnreadInput(size_t input);

  absl::Status SizeLoops();

  // Tensors that share memory within a launch must do so element by element in every member.
  absl::Status CheckInPlace();

  // Adds the nodes of a group to those that a refusal names.
  void Blame(int group);

  const Schedule& ScheduleOf(const PlanLaunch& launch) const;

  // Makes the kernels. Equal kernels of the largest member may become several.
  absl::Status MakeKernels();

  const PlannedKernel& KernelOf(size_t member, const std::vector<int>& key) const;

  absl::Status AddKernel(const std::vector<int>& key, const Backend* backend);

  // The text that identifies a kernel of a family: its source, and everything that it was proven
  // and checked for. The same source for another range is another kernel.
  std::string KeyTextOf(const GeneralSource& general, const CompileJob& job) const;

  // Adds a kernel that does not depend on the symbols; it equals that of a plan without symbols.
  absl::Status AddStatic(const PlannedKernel& kernel, const Backend* backend, PlanKernel* planned);

  // Checks that no dim exceeds its length in the largest member, which sizes local buffers.
  // `varies`: the dims whose lengths differ between members.
  absl::Status CheckExtents(const Schedule& most, const std::vector<int>& key,
                            std::vector<bool>* varies);

  absl::Status CheckNeeds(const GeneralSource& general) const;

  // Adds the cases of the kernel's check: the corners, points where each symbol is shorter or
  // longer than the others, and some between.
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
  std::vector<std::optional<GeneralText>> texts_;  // of schedules, by kernel; nullopt: static
  NamedKernels named_;
};

}  // namespace fusion
