#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/bundle/plan.h"
#include "core/runtime/loaded_kernel.h"
#include "core/runtime/task_pool.h"

namespace fusion {

struct ExecutorOptions {
  /// Threads of the executor's own pool; 0: as many as the plan was made for. Ignored with
  /// `parallel_tasks`.
  int threads = 0;
  /// The caller's threads instead of a pool of ours, and how many workers they are at most.
  ParallelTasks parallel_tasks;
  int workers = 0;
};

/// Where one run spent its time.
struct RunProfile {
  std::vector<double> launch_us;  // by plan launch
  double total_us = 0;
};

/// Runs a plan with its kernels: owns packed weights, arenas and threads.
///
///   ASSIGN_OR_RETURN(auto executor, Executor::Create(plan, kernels, {}));
///   RETURN_IF_ERROR(executor->Prepare([&](int i) { return weight_bytes(binding.weights(i)); }));
///   ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, executor->Run(inputs));
///
/// The plan may come from the network: every position in it is checked, and every kernel's param
/// count. Run may be called from several threads once Prepare is done: each run has its own arena,
/// all share kernels and weights.
class Executor {
 public:
  /// `kernels[i]` belongs to plan.kernels[i]. InvalidArgument if plan and kernels do not fit
  /// together, Unimplemented for kernels with run-time dims. This, Prepare and Run answer
  /// ResourceExhausted if there is no memory for what the plan asks for.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels, ExecutorOptions options);
  ~Executor();

  const Plan& plan() const { return plan_; }

  /// Packs the weights: `weight(i)` gives the bytes of the i-th weight of the plan. Weights that
  /// kernels read as they are must stay in memory and unchanged as long as the executor runs; the
  /// others may go after this returns.
  absl::Status Prepare(const std::function<absl::StatusOr<const HostTensor*>(int)>& weight);

  /// One inference. `inputs` by graph input, checked against the plan. FailedPrecondition before
  /// Prepare. If a kernel fails: the first status it answers, with its name.
  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs,
                                              RunProfile* profile = nullptr);
  /// The same into tensors of the caller's, which must have the types the plan says.
  absl::Status RunInto(const std::vector<const HostTensor*>& inputs,
                       const std::vector<HostTensor*>& outputs, RunProfile* profile = nullptr);

  /// Zeroed tensors of the types a run returns. ResourceExhausted if there is no memory for them.
  absl::StatusOr<std::vector<HostTensor>> MakeOutputs() const;

 private:
  struct Memory;
  struct Context;

  Executor(Plan plan, std::vector<std::shared_ptr<const LoadedKernel>> kernels,
           ExecutorOptions options);
  absl::Status CheckKernels() const;
  absl::Status Launch(const PlanLaunch& launch, const std::vector<void*>& base, Context* context);
  absl::StatusOr<std::unique_ptr<Context>> TakeContext();
  void GiveContext(std::unique_ptr<Context> context);
  void* Place(const PlanTensor& tensor, const std::vector<void*>& inputs,
              const std::vector<void*>& outputs, Context* context) const;

  Plan plan_;
  std::vector<std::shared_ptr<const LoadedKernel>> kernels_;
  ExecutorOptions options_;
  std::unique_ptr<TaskPool> pool_;
  int workers_ = 1;
  uint64_t scratch_stride_ = 0;
  uint64_t workspace_bytes_ = 0;
  std::unique_ptr<Memory> prepared_;
  std::vector<const std::byte*> weights_;
  bool ready_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_;  // guarded by mutex_
};

}  // namespace fusion
