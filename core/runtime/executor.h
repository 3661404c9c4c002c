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
  /// Threads of the executor's own pool; 0: as many as the plan was made for. Ignored with
  /// `parallel_tasks`.
  int threads = 0;
  /// The caller's threads instead of a pool of ours, and how many workers they are at most. Called
  /// for every phase of every kernel, also where that has one task.
  ParallelTasks parallel_tasks;
  int workers = 0;

  /// Arenas kept for later runs, at most; runs at once may use more of them. 0: as many as workers
  /// or cores, whichever is more. A plan and its variants keep equal shares of them.
  int max_idle_arenas = 0;
  /// And in bytes; one arena is kept in any case, of each variant too.
  int64_t max_idle_bytes = int64_t{1} << 30;

  /// Times some runs, for TakeSamples(): as many as take less than 0.5 % of all time.
  bool sample_latencies = true;
  /// That runs are timed with; lives as long as the executor.
  const Clock* clock = &Clock::Real();
};

/// Where one run spent its time.
struct RunProfile {
  int variant = -1;               // position in Plan::variants of what ran; -1: the plan itself
  std::vector<double> launch_us;  // by launch of that; of those of loops all passes together
  double total_us = 0;
};

/// Where a run with guarded kernels (PlanOptions::guard) left a tensor.
struct RunFault {
  int group = -1;   // position in Plan::groups
  int tensor = -1;  // position in Plan::tensors; -1: a buffer of the kernel
  /// Position in Plan::variants of the plan that these are of; -1: the plan itself.
  int variant = -1;
};

/// Of an error of Executor::Run; nullopt for other errors. Annotate() forgets it.
std::optional<RunFault> RunFaultOf(const absl::Status& status);

/// What an executor holds, in bytes.
struct ExecutorMemory {
  int64_t prepared_bytes = 0;  // packed weights, shared by all runs
  /// Of one run under way: intermediate tensors, scratch, workspace. RunBytes, and pages.
  int64_t arena_bytes = 0;
  int idle_arenas = 0;  // kept for later runs; each variant of the plan has its own
};

/// Runs a plan with its kernels: owns packed weights, arenas and threads.
///
///   ASSIGN_OR_RETURN(auto executor, Executor::Create(plan, kernels, {}));
///   RETURN_IF_ERROR(executor->Prepare([&](int i) { return weight_bytes(binding.weights(i)); }));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, executor->Run(inputs));
///
/// The plan may come from the network: every position in it is checked, and every kernel's param
/// count. Of a plan with symbols each run may have other values of them; its arena is as large as
/// the largest ones need. What runs is the plan or one of its variants, whichever is for those
/// values. Runs of such a plan, and of one with loops, are not timed for TakeSamples(). Run may be
/// called from several threads once Prepare is done: each run has its own arena, all share kernels
/// and weights. They share the threads too, see TaskPool: runs at once do not wait for each other.
class Executor {
 public:
  /// `kernels[i]` belongs to plan.kernels[i]. InvalidArgument if plan and kernels do not fit
  /// together. This, Prepare and Run answer ResourceExhausted if there is no memory for what the
  /// plan asks for.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels, ExecutorOptions options);
  ~Executor();

  const Plan& plan() const { return plan_; }
  /// Threads that a run uses at most.
  int threads() const { return workers_; }
  /// Thread-safe.
  ExecutorMemory memory() const;

  /// Packs the weights: `weight(i)` gives the bytes of the i-th weight of the plan. Weights that
  /// kernels read as they are must stay in memory and unchanged as long as the executor runs; the
  /// others may go after this returns. No run may be under way.
  absl::Status Prepare(const std::function<absl::StatusOr<const HostTensor*>(int)>& weight);

  /// One inference: the outputs of the model. `inputs` by graph input, checked against the plan.
  /// FailedPrecondition before Prepare. If a kernel fails: the first status it answers, with its
  /// name; of a guarded one also its ops, the tensor and the element, and RunFaultOf knows the
  /// place.
  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs,
                                              RunProfile* profile = nullptr);
  /// The same into tensors of the caller's, one for each entry of plan.outputs, which must have the
  /// types the plan says. Where a run decides extents (plan.output_extents), CutOutputs makes what
  /// Run returns of them. What shares buffers is copied into such and out of them: see RunShared.
  absl::Status RunInto(const std::vector<const HostTensor*>& inputs,
                       const std::vector<HostTensor*>& outputs, RunProfile* profile = nullptr);
  /// The same with the inputs and outputs that share buffers where they are: those places of
  /// `inputs` and `outputs` are not looked at and may be null. `memory` then has the new elements,
  /// and says how many there are; after an error what it held before. It is the caller's that no
  /// other run uses it at the same time.
  absl::Status RunShared(const std::vector<const HostTensor*>& inputs,
                         const std::vector<HostTensor*>& outputs, SharedMemory* memory,
                         RunProfile* profile = nullptr);
  /// The same on memory of the caller's as it is: nothing is copied, and elements lie where the
  /// plan says (Plan::bound_strides; else dense). The other forms copy what has strides. `inputs`
  /// and `outputs` by the positions of the plan; dims are those of the run. An input and an output
  /// that share a buffer begin at the same place, with the memory of all its capacity behind it.
  /// InvalidArgument, naming the tensor, for other types and for too little memory. Memory between
  /// the elements is not touched. It is the caller's that each element lies at a multiple of its
  /// size, and that no output overlaps an input or another output, but where they share a buffer.
  absl::Status RunInPlace(const std::vector<BoundTensor>& inputs,
                          const std::vector<BoundTensor>& outputs, RunProfile* profile = nullptr);

  /// Zeroed tensors of the types a run returns, of a plan with symbols for their largest values.
  /// ResourceExhausted if there is no memory for them.
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs() const;
  /// Those that a run with these inputs returns; with `memory` for RunShared: those that share
  /// buffers are empty then. InvalidArgument for inputs that no run takes.
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs(const std::vector<const HostTensor*>& inputs,
                                                      const SharedMemory* memory = nullptr) const;

  /// What runs took since the last call; nothing without `sample_latencies`. Thread-safe.
  LatencySamples TakeSamples();
  /// No run is timed any more: nobody wants to know. Thread-safe.
  void StopSampling();

 private:
  struct Memory;
  struct Step;
  struct CallTable;
  struct PhaseRun;
  struct Shapes;
  struct Context;
  // Tensor `position` of a call table is the caller's tensor `index`.
  struct Patch {
    size_t position = 0;
    size_t index = 0;
    size_t tensor = 0;  // of the plan
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
  std::shared_ptr<TaskPool> pool_;                   // null: the caller's threads
  std::vector<std::unique_ptr<Executor>> variants_;  // by Plan::variants
  int workers_ = 1;
  uint64_t scratch_stride_ = 0;
  uint64_t workspace_bytes_ = 0;
  int64_t context_bytes_ = 0;
  int idle_shares_ = 1;  // executors that keep arenas for one plan
  size_t max_idle_ = 1;
  size_t sampled_values_ = 0;  // that the sampler holds
  std::vector<Step> steps_;    // by plan launch
  std::vector<Patch> input_patches_;
  std::vector<Patch> output_patches_;
  std::vector<std::vector<Patch>> place_patches_;  // by launch: tensors at places of loops
  std::shared_ptr<Memory> prepared_;               // of the plan and its variants
  std::vector<const std::byte*> weights_;
  bool ready_ = false;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<LatencySampler> sampler_ ABSL_GUARDED_BY(mutex_);  // null: no sampling
};

}  // namespace fusion
