#include "core/check/kernel_race.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "core/base/statistics/quantile.h"
#include "core/check/kernel_run.h"
#include "core/device/host_isa.h"
#include "core/graph/evaluate/test_values.h"
#include "core/runtime/loaded_kernel.h"
#include "core/runtime/task_pool.h"
#include "core/schedule/lower/reference.h"

namespace fusion {
namespace {

constexpr int64_t kLine = 64;  // bytes
// Parts of memory that a thread touches before it takes the next.
constexpr int64_t kPartsPerThread = 4;

// Reported for a run shorter than a tick of the clock: ratios need a value above 0.
constexpr double kLeastUs = 1e-3;

double MicrosecondsBetween(Nanoseconds from, Nanoseconds to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// Reads and writes every cache line of some memory, without changing it.
void Touch(std::byte* data, int64_t bytes, TaskPool* pool) {
  const int64_t parts = pool->threads() * kPartsPerThread;
  const int64_t lines = (bytes + kLine - 1) / kLine;
  pool->Run(parts, [&](int64_t begin, int64_t end, int /*worker*/) {
    for (int64_t line = lines * begin / parts; line < lines * end / parts; ++line) {
      volatile std::byte* at = data + line * kLine;
      *at = *at;
    }
  });
}

absl::StatusOr<HostTensor> MemoryOf(int64_t bytes) {
  return HostTensor::Create(DType::kU8, {std::max<int64_t>(1, bytes)});
}

// Identifies params that runners can share: whether it is an output, its position in the reference,
// and its size in bytes.
using ParamKey = std::tuple<bool, int, int64_t>;

ParamKey KeyOf(const Buffer& buffer, const KernelReference::Param& param) {
  return {param.output, param.index, StoredBytes(buffer)};
}

// The memory of params. Runners share params with equal keys, except packed ones.
class ParamMemory {
 public:
  // `inputs`: by input of the reference.
  absl::StatusOr<HostTensor*> Of(const Buffer& buffer, const KernelReference& reference,
                                 const KernelReference::Param& param,
                                 const std::vector<HostTensor>& inputs) {
    const ParamKey key = KeyOf(buffer, param);
    if (!param.packed) {
      auto known = shared_.find(key);
      if (known != shared_.end()) return known->second;
    }
    if (param.output) {
      ASSIGN_OR_RETURN(HostTensor stored,
                       HostTensor::Create(buffer.dtype, Dims{StoredElements(buffer)}));
      all_.push_back(std::make_unique<HostTensor>(std::move(stored)));
    } else {
      ASSIGN_OR_RETURN(HostTensor stored, ToStorage(buffer, reference, param,
                                                    inputs[static_cast<size_t>(param.index)]));
      all_.push_back(std::make_unique<HostTensor>(std::move(stored)));
    }
    if (!param.packed) shared_[key] = all_.back().get();
    return all_.back().get();
  }

 private:
  std::vector<std::unique_ptr<HostTensor>> all_;
  std::map<ParamKey, HostTensor*> shared_;
};

// A kernel ready to run again and again.
class Runner {
 public:
  static absl::StatusOr<std::unique_ptr<Runner>> Load(const KernelRace& race,
                                                      const KernelRace::Runner& from) {
    auto runner = std::make_unique<Runner>();
    ASSIGN_OR_RETURN(runner->kernel_, LoadKernel(race.backend, from.binary, from.symbol));
    ASSIGN_OR_RETURN(runner->schedule_, ParseSchedule(from.schedule));
    ASSIGN_OR_RETURN(runner->reference_, ParseReference(from.reference));
    const FusionKernelDescriptor& d = runner->kernel_->descriptor();
    if (d.dims != 0 || runner->kernel_->guarded()) {
      return InvalidArgument("takes sizes, or checks its accesses");
    }
    if (d.tensors != runner->schedule_.params ||
        runner->reference_.params.size() != static_cast<size_t>(d.tensors)) {
      return InvalidArgument("takes ", d.tensors, " tensors, its schedule ",
                             runner->schedule_.params);
    }
    return runner;
  }

  // Bytes that it needs in addition to the params in `shared`. Adds its own params to `shared`.
  int64_t Bytes(int threads, std::set<ParamKey>* shared) const {
    const FusionKernelDescriptor& d = kernel_->descriptor();
    int64_t bytes = threads * ScratchStride() + static_cast<int64_t>(d.workspace_bytes);
    for (size_t p = 0; p < reference_.params.size(); ++p) {
      const Buffer& buffer = schedule_.buffer(static_cast<BufferId>(p));
      const KernelReference::Param& param = reference_.params[p];
      const bool fresh = param.packed || shared->insert(KeyOf(buffer, param)).second;
      if (fresh) bytes += StoredBytes(buffer);
    }
    return bytes;
  }
  const Program& program() const { return reference_.program; }

  absl::Status Bind(const std::vector<HostTensor>& inputs, int threads, ParamMemory* memory) {
    for (size_t p = 0; p < reference_.params.size(); ++p) {
      const Buffer& buffer = schedule_.buffer(static_cast<BufferId>(p));
      ASSIGN_OR_RETURN(HostTensor * at,
                       memory->Of(buffer, reference_, reference_.params[p], inputs));
      const BufferLayout& layout = buffer.layout;
      tensors_.push_back({at->bytes(), layout.blocked < 0 ? layout.strides.data() : nullptr});
      if (buffer.kind == ParamKind::kInput) activations_.push_back(at);
    }
    const auto workspace = static_cast<int64_t>(kernel_->descriptor().workspace_bytes);
    ASSIGN_OR_RETURN(scratch_, MemoryOf(threads * ScratchStride()));
    ASSIGN_OR_RETURN(workspace_, MemoryOf(workspace));
    args_ = {static_cast<unsigned>(sizeof(FusionKernelArgs)),
             FUSION_KERNEL_ABI_VERSION,
             tensors_.data(),
             nullptr,
             workspace_.bytes(),
             scratch_.bytes(),
             static_cast<uint64_t>(ScratchStride())};
    return absl::OkStatus();
  }

  void WriteActivations(TaskPool* pool) {
    for (HostTensor* tensor : activations_) Touch(tensor->bytes(), tensor->byte_size(), pool);
  }

  // Microseconds of one run.
  absl::StatusOr<double> Run(TaskPool* pool) {
    const FusionKernelDescriptor& d = kernel_->descriptor();
    std::atomic<bool> failed{false};
    const Nanoseconds start = Clock::Real().Now();
    for (int phase = 0; phase < d.phases; ++phase) {
      pool->Run(d.tasks(phase, nullptr), [&](int64_t begin, int64_t end, int worker) {
        if (!kernel_->Run(args_, phase, begin, end, worker).ok()) failed = true;
      });
    }
    const Nanoseconds end = Clock::Real().Now();
    if (failed) return Internal("the kernel answered an error");
    return std::max(MicrosecondsBetween(start, end), kLeastUs);
  }

 private:
  int64_t ScratchStride() const {
    const auto bytes = static_cast<int64_t>(kernel_->descriptor().scratch_bytes);
    return (bytes + kLine - 1) / kLine * kLine;
  }

  std::shared_ptr<const LoadedKernel> kernel_;
  Schedule schedule_;
  KernelReference reference_;
  std::vector<FusionTensor> tensors_;
  std::vector<HostTensor*> activations_;
  HostTensor scratch_{DType::kU8, {1}};
  HostTensor workspace_{DType::kU8, {1}};
  FusionKernelArgs args_{};
};

bool SameInputs(const Program& a, const Program& b) {
  return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                    [&](ValueId x, ValueId y) {
                      return a.value(x).type.ToString() == b.value(y).type.ToString();
                    });
}

class RaceCourse {
 public:
  explicit RaceCourse(const KernelRace& race)
      : race_(race), end_(Clock::Real().Now() + race.limit) {}

  absl::StatusOr<RaceTimes> Run() {
    times_.runners.resize(race_.runners.size());
    runners_.resize(race_.runners.size());
    Load();
    std::vector<size_t> ready;
    for (size_t i = 0; i < runners_.size(); ++i) {
      if (runners_[i] != nullptr) ready.push_back(i);
    }
    if (ready.size() < 2 || ready[0] != 0 || Over()) return times_;
    const std::vector<HostTensor> inputs =
        RandomInputs(runners_[0]->program(), /*seed=*/1, /*adversarial=*/false);
    ParamMemory memory;
    const absl::Status bound = Bind(ready, inputs, &memory);
    if (absl::IsResourceExhausted(bound)) {
      times_.refusal = std::string(Message(bound));
      return times_;
    }
    RETURN_IF_ERROR(bound);
    TaskPool pool(race_.threads);
    if (pool.threads() != race_.threads) {
      times_.refusal =
          StrCat("this machine gives ", pool.threads(), " of ", race_.threads, " threads");
      return times_;
    }
    ASSIGN_OR_RETURN(const std::vector<Nanoseconds> took, WarmUp(ready, &pool));
    if (took.size() < ready.size()) return times_;
    LeaveOutWhatIsTooSlow(took, &ready);
    RETURN_IF_ERROR(RunAll(ready, &pool));
    RETURN_IF_ERROR(RunPairs(ready, &pool));
    return times_;
  }

 private:
  void Load() {
    int64_t bytes = race_.displaced_bytes;
    std::set<ParamKey> shared;
    for (size_t i = 0; i < runners_.size(); ++i) {
      absl::StatusOr<std::unique_ptr<Runner>> loaded = Runner::Load(race_, race_.runners[i]);
      std::string& refusal = times_.runners[i].refusal;
      if (!loaded.ok()) {
        refusal = std::string(Message(loaded.status()));
        continue;
      }
      if (i > 0 && runners_[0] != nullptr &&
          !SameInputs(runners_[0]->program(), (*loaded)->program())) {
        refusal = "it has other inputs";
        continue;
      }
      std::set<ParamKey> with = shared;
      const int64_t own = (*loaded)->Bytes(race_.threads, &with);
      if (bytes > kMaxRaceBytes - own) {
        refusal = StrCat("what is timed before it needs ", HumanBytes(bytes), ", and it ",
                         HumanBytes(own), "; limit ", HumanBytes(kMaxRaceBytes));
        continue;
      }
      bytes += own;
      shared = std::move(with);
      runners_[i] = *std::move(loaded);
    }
  }

  // Returns early, with OK, if the time is over; then WarmUp runs nothing.
  absl::Status Bind(const std::vector<size_t>& ready, const std::vector<HostTensor>& inputs,
                    ParamMemory* memory) {
    for (size_t i : ready) {
      if (Over()) return absl::OkStatus();
      RETURN_IF_ERROR(runners_[i]->Bind(inputs, race_.threads, memory));
    }
    ASSIGN_OR_RETURN(others_, MemoryOf(race_.displaced_bytes));
    std::fill_n(others_.bytes(), others_.byte_size(), std::byte{1});
    return absl::OkStatus();
  }

  // Duration of the first run of each, including its preparation; of fewer if the time is over.
  absl::StatusOr<std::vector<Nanoseconds>> WarmUp(const std::vector<size_t>& ready,
                                                  TaskPool* pool) {
    std::vector<Nanoseconds> took;
    for (size_t i : ready) {
      if (Over()) break;
      const Nanoseconds start = Clock::Real().Now();
      RETURN_IF_ERROR(RunOne(i, pool).status());
      took.push_back(Clock::Real().Now() - start);
    }
    return took;
  }

  // Removes the last, least promising runners while the time left does not suffice for the rounds
  // and pairs of all: two that are measured are better than sixteen that are not. `took`: by
  // position in `ready`.
  void LeaveOutWhatIsTooSlow(const std::vector<Nanoseconds>& took, std::vector<size_t>* ready) {
    const Nanoseconds left = end_ - Clock::Real().Now();
    while (ready->size() > 2) {
      Nanoseconds round{0};
      for (size_t k = 0; k < ready->size(); ++k) round += took[k];
      // The rival is not known yet, so a pair is charged as two average runs.
      const auto of = static_cast<int64_t>(ready->size());
      if (round * race_.least_runs + 2 * round * race_.least_pairs / of <= left) return;
      ready->pop_back();
    }
  }

  bool Over() const { return Clock::Real().Now() >= end_; }

  absl::StatusOr<double> RunOne(size_t i, TaskPool* pool) {
    Touch(others_.bytes(), race_.displaced_bytes, pool);
    runners_[i]->WriteActivations(pool);
    return runners_[i]->Run(pool);
  }

  // Runs whole rounds, until there are enough of them.
  absl::Status RunAll(const std::vector<size_t>& ready, TaskPool* pool) {
    const Nanoseconds enough = Clock::Real().Now() + race_.wanted;
    for (int round = 0; round < race_.most_runs; ++round) {
      if (round >= race_.least_runs && Clock::Real().Now() >= enough) break;
      std::map<size_t, double> us;
      for (size_t turn = 0; turn < ready.size(); ++turn) {
        if (Over()) return absl::OkStatus();
        const size_t i = ready[(turn + static_cast<size_t>(round)) % ready.size()];
        ASSIGN_OR_RETURN(us[i], RunOne(i, pool));
      }
      for (const auto& [i, took] : us) times_.runners[i].us.push_back(took);
    }
    return absl::OkStatus();
  }

  absl::Status RunPairs(const std::vector<size_t>& ready, TaskPool* pool) {
    if (times_.runners[0].us.empty() || race_.most_pairs == 0) return absl::OkStatus();
    size_t best = 0;
    double least = Quantile(times_.runners[0].us, 0.5);
    for (size_t i : ready) {
      const double median = Quantile(times_.runners[i].us, 0.5);
      if (median >= least) continue;
      best = i;
      least = median;
    }
    if (best == 0) return absl::OkStatus();
    times_.rival = static_cast<int>(best);
    const Nanoseconds enough = Clock::Real().Now() + race_.wanted_pairs;
    for (int pair = 0; pair < race_.most_pairs; ++pair) {
      if (pair >= race_.least_pairs && Clock::Real().Now() >= enough) break;
      double first = 0;
      double rival = 0;
      for (bool of_first : {pair % 2 == 0, pair % 2 != 0}) {
        if (Over()) return absl::OkStatus();
        ASSIGN_OR_RETURN((of_first ? first : rival), RunOne(of_first ? 0 : best, pool));
      }
      times_.first_us.push_back(first);
      times_.rival_us.push_back(rival);
    }
    return absl::OkStatus();
  }

  const KernelRace& race_;
  const Nanoseconds end_;
  RaceTimes times_;
  std::vector<std::unique_ptr<Runner>> runners_;  // null: refused
  HostTensor others_{DType::kU8, {1}};
};

}  // namespace

absl::StatusOr<RaceTimes> RunRace(const KernelRace& race) {
  RaceTimes times;
  if (!HostRuns(race.isa)) {
    times.refusal =
        StrCat("kernels need ", IsaName(race.isa), ", this machine has ", HostIsaName());
    return times;
  }
  if (race.threads > UsableCores()) {
    times.refusal = StrCat("the plan is for ", race.threads, " threads, this machine has ",
                           UsableCores(), " cores");
    return times;
  }
  if (race.runners.empty()) return times;
  return RaceCourse(race).Run();
}

}  // namespace fusion
