#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"
#include "core/bundle/plan.h"
#include "core/runtime/bound_tensor.h"
#include "core/runtime/latency_sampler.h"
#include "core/runtime/loaded_kernel.h"
#include "core/runtime/shared_memory.h"
#include "core/runtime/task_pool.h"

namespace fusion {

struct RunBinding;

struct ExecutorOptions {
  /// Threads of the executor's own pool; 0: Plan::threads. Ignored if `parallel_tasks` is set.
  int threads = 0;
  /// Runs tasks on the caller's threads instead of a pool of the executor. Called for every phase
  /// that has tasks, even for a single one; concurrent runs call it concurrently. `workers`: larger
  /// than any worker number that it passes; required with `parallel_tasks`.
  ParallelTasks parallel_tasks;
  int workers = 0;

  /// Limit of idle arenas that are kept for later runs. Concurrent runs may use more. 0: the number
  /// of workers or of usable cores, whichever is larger. A plan and its variants get equal shares.
  int max_idle_arenas = 0;
  /// The same limit in bytes. One arena is always kept, and one for each variant.
  int64_t max_idle_bytes = int64_t{1} << 30;

  /// Times some runs for TakeSamples(), so few that timing takes less than 0.5 % of the run time.
  bool sample_latencies = true;
  /// Clock for timing runs. Must outlive the executor.
  const Clock* clock = &Clock::Real();
};

/// The times of one run. Set if the run succeeds.
struct RunProfile {
  int variant = -1;  // position in Plan::variants of the plan that ran; -1: the plan itself
  /// By launch of that plan; for launches of loops the sum of all passes.
  std::vector<double> launch_us;
  double total_us = 0;  // with the set-up of the run, without copies to and from strided memory
};

/// The place where a guarded kernel (PlanOptions::guard) accessed an element outside a tensor.
struct RunFault {
  int group = -1;   // position in Plan::groups
  int tensor = -1;  // position in Plan::tensors; -1: a local buffer of the kernel
  /// Position in Plan::variants of the plan that `group` and `tensor` refer to; -1: the plan
  /// itself.
  int variant = -1;
};

/// The fault behind an error of a run; nullopt for other errors. It is a payload of the status,
/// which Annotate() keeps.
std::optional<RunFault> RunFaultOf(const absl::Status& status);

/// Memory that an executor holds, in bytes.
struct ExecutorMemory {
  int64_t prepared_bytes = 0;  // packed weights, shared by all runs
  /// Of one concurrent run: intermediate tensors, scratch and workspace (RunBytes of the plan),
  /// rounded up to pages. With variants the largest one's.
  int64_t arena_bytes = 0;
  int idle_arenas = 0;  // kept for later runs, those of variants included
};

/// Runs a plan with its kernels: owns packed weights, arenas and threads.
///
///   ASSIGN_OR_RETURN(auto executor, Executor::Create(plan, kernels, {}));
///   RETURN_IF_ERROR(executor->Prepare([&](int i) { return weight_bytes(binding.weights(i)); }));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, executor->Run(inputs));
///
/// Lifecycle: Create, Prepare, then any number of runs. After Prepare, runs are thread-safe and do
/// not wait for each other: each has its own arena, and they share kernels, weights and threads
/// (see TaskPool). Destroy the executor after the last run has returned.
///
/// The plan may come from the network: Create checks every position in it, and its kernels against
/// it. If the plan has symbols, each run may have other values of them; its arena has the size for
/// the largest values, and the run uses the plan or the first of its variants that covers its
/// values. TakeSamples() does not cover runs of plans with symbols or loops.
///
/// Prepare and runs compare the elements that kernels access with those of the tensors
/// (CheckReach): DataLoss, and the kernel does not run.
class Executor {
 public:
  /// `kernels[i]` is the loaded plan.kernels[i], those of variants included. InvalidArgument if the
  /// plan is malformed or the kernels do not match it, FailedPrecondition if one is null,
  /// ResourceExhausted if there is no memory for packed weights.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels, ExecutorOptions options);
  ~Executor();

  const Plan& plan() const { return plan_; }
  /// Upper bound of the threads of one run.
  int threads() const { return workers_; }
  /// Thread-safe.
  ExecutorMemory memory() const;

  /// Packs the weights. `weight(i)` returns the i-th weight of the plan, and is called at most once
  /// for each weight in use. Weights that kernels read directly (not packed) must stay in memory,
  /// unchanged, as long as the executor is used; the others may be freed after this returns. The
  /// returned pointer must not be null (InvalidArgument). Do not call Prepare during a run. A later
  /// call replaces the weights. After an error, runs fail until a call succeeds. InvalidArgument
  /// for a weight of another type or shape, ResourceExhausted if there is no memory; errors of
  /// `weight` and of kernels are passed on.
  absl::Status Prepare(const std::function<absl::StatusOr<const HostTensor*>(int)>& weight);

  /// Runs one inference and returns the model's outputs, in the order of Plan::outputs. `inputs`:
  /// one for each graph input, in order. `profile` may be null. FailedPrecondition before Prepare.
  /// InvalidArgument, naming the input, if one does not match the plan. ResourceExhausted if there
  /// is no memory, or if a loop would make more passes than it has room for. If a kernel fails: its
  /// first error (Internal), with the kernel's name. For guarded kernels the error also names the
  /// ops, the tensor and the element, RunFaultOf returns the place, and an index from the caller's
  /// data is InvalidArgument.
  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs,
                                              RunProfile* profile = nullptr);
  /// Run into the caller's tensors: one for each entry of plan.outputs, of the type and dims that
  /// the run has (MakeOutputs makes them). Outputs whose extent the run determines
  /// (plan.output_extents) have the largest extent; the last entries of plan.outputs are their
  /// counts. CutOutputs (core/tensor/output_extent.h) shrinks them to what Run returns. Tensors in
  /// shared buffers are copied to one and back; RunShared avoids that. Errors as Run;
  /// InvalidArgument also for an output of another type or dims.
  absl::Status RunInto(const std::vector<const HostTensor*>& inputs,
                       const std::vector<HostTensor*>& outputs, RunProfile* profile = nullptr);
  /// RunInto, but tensors in shared buffers stay in `memory`: their entries in `inputs` and
  /// `outputs` are ignored and may be null. After success `memory` contains the new elements, and
  /// `rows` counts them. After an error it has the elements and `rows` of before. No other run may
  /// use `memory` at the same time.
  absl::Status RunShared(const std::vector<const HostTensor*>& inputs,
                         const std::vector<HostTensor*>& outputs, SharedMemory* memory,
                         RunProfile* profile = nullptr);
  /// Runs on the caller's memory without any copy; the other forms copy tensors that have strides.
  /// Elements lie where the plan says (Plan::bound_strides; else dense). `inputs` and `outputs`: by
  /// position in the plan, with the dims of this run. An input and an output that share a buffer
  /// have the same `data`, with memory for the whole capacity. Memory between the elements is not
  /// written. InvalidArgument, naming the tensor, for another type or dims, and for too little
  /// memory. The caller ensures that elements are aligned to their size, and that no output
  /// overlaps an input or another output, unless the two share a buffer.
  absl::Status RunInPlace(const std::vector<BoundTensor>& inputs,
                          const std::vector<BoundTensor>& outputs, RunProfile* profile = nullptr);

  /// Zeroed tensors for RunInto, of the types that a run returns; of a plan with symbols with the
  /// dims for their largest values. ResourceExhausted if there is no memory.
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs() const;
  /// The same with the dims that a run with these inputs has. With `memory`, for RunShared: outputs
  /// in shared buffers are empty tensors. InvalidArgument for inputs that do not match the plan.
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs(const std::vector<const HostTensor*>& inputs,
                                                      const SharedMemory* memory = nullptr) const;

  /// The timed runs since the last call; empty without `sample_latencies`. Thread-safe.
  LatencySamples TakeSamples();
  /// Stops timing runs, for good. Thread-safe.
  void StopSampling();

 private:
  struct Memory;
  struct Step;
  struct CallTable;
  struct PhaseRun;
  struct Shapes;
  struct Context;
  // Entry `position` of a call table gets the address of the caller's tensor `index`.
  struct Patch {
    size_t position = 0;
    size_t index = 0;
    size_t tensor = 0;  // position in Plan::tensors
  };

  Executor(Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels,
           ExecutorOptions options);
  absl::Status CheckKernels() const;
  absl::Status SetUp();
  absl::Status MakeVariants();
  std::vector<bool> LaunchedKernels() const;
  absl::Status PrepareOwn(const std::function<absl::StatusOr<const HostTensor*>(int)>& weight,
                          const Plan* packed);
  std::vector<Step> MakeSteps(const std::vector<PlanLaunch>& launches, const Shapes* shapes) const;
  absl::Status RunBound(const RunBinding& binding, RunProfile* profile);
  absl::Status RunCopied(const std::vector<HostTensor*>& outputs, RunBinding* binding,
                         RunProfile* profile);
  absl::Status SetShapes(const std::vector<int64_t>& units, Context* context) const;
  absl::Status CheckAccesses(const std::vector<PlanLaunch>& launches,
                             const std::vector<Step>& steps, const CallTable& table) const;
  void FindPatches();
  CallTable MakeCallTable(const std::vector<PlanLaunch>& launches, Context* owner) const;
  absl::Status LocateFailure(const absl::Status& status, const PlanLaunch& launch) const;
  void* Place(const PlanTensor& tensor, const Context& context) const;
  absl::Status RunLaunches(const std::vector<PlanLaunch>& launches, const std::vector<Step>& steps,
                           const CallTable& table, bool timed, Context* context) const;
  absl::Status RunInPasses(bool timed, const RunBinding& binding, Context* context) const;
  absl::Status RunPhases(const Step& step, const FusionGuardedKernelArgs& args,
                         Context* context) const;
  absl::StatusOr<std::unique_ptr<Context>> MakeContext() const;
  absl::StatusOr<std::unique_ptr<Context>> TakeContext(bool* timed);
  void GiveContext(std::unique_ptr<Context> context, bool completed, bool timed);

  Plan plan_;
  std::vector<std::shared_ptr<const LoadedKernel>> kernels_;
  ExecutorOptions options_;
  std::shared_ptr<TaskPool> pool_;                   // null: options_.parallel_tasks
  std::vector<std::unique_ptr<Executor>> variants_;  // by Plan::variants
  int workers_ = 1;
  uint64_t scratch_stride_ = 0;
  uint64_t workspace_bytes_ = 0;
  int64_t context_bytes_ = 0;
  int idle_shares_ = 1;  // number of executors that share the limit of idle arenas
  size_t max_idle_ = 1;
  size_t sampled_values_ = 0;  // capacity of the sampler
  std::vector<Step> steps_;    // by plan launch
  std::vector<Patch> input_patches_;
  std::vector<Patch> output_patches_;
  // By launch: tensors whose address moves with the passes of loops.
  std::vector<std::vector<Patch>> place_patches_;
  std::shared_ptr<Memory> prepared_;  // packed weights, shared by the plan and its variants
  std::vector<const std::byte*> weights_;
  bool ready_ = false;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<LatencySampler> sampler_ ABSL_GUARDED_BY(mutex_);  // null: no sampling
};

}  // namespace fusion
