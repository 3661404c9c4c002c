#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/threads/mutex.h"
#include "core/bundle/answer.h"
#include "core/cache/memory/lru_map.h"
#include "core/compile/toolchain.h"
#include "core/device/device_spec.h"
#include "core/graph/build/canonical.h"
#include "core/pipeline/families/family.h"
#include "core/pipeline/requests/plan_request.h"
#include "core/pipeline/requests/stage.h"
#include "core/plan/planner.h"

namespace fusion {

/// The input of planning. Equal keys give equal plans if the same nodes are unfused.
struct Work {
  Graph graph;                                // canonical; of a family: at the largest values
  std::shared_ptr<const ShapeFamily> family;  // null: static shapes
  DeviceSpec device;
  PlanOptions options;
  RegisteredOptions registered;  // the server's registered kernels that apply
  /// Corrects the constants of `device`, in planning only.
  PlanCalibration calibration;
  /// Measured tilings to plan with; null: none yet, the benefit model chooses.
  std::shared_ptr<const TileSearch> search;
  std::string full_key;
  Digest key;
  /// Identifies the result of planning: `key`, the unused registered kernels, `search` and
  /// `calibration`.
  Digest planning_key;
  /// Of CanonicalGraph::key_text; set if the request has a lock or wants one.
  std::optional<Digest> graph_sha256;
  std::string model_name;  // of the request, for display; part of no key
};
using WorkPtr = std::shared_ptr<const Work>;

/// A copy in which these registered kernels are unused: name -> reason.
WorkPtr WithUnused(const WorkPtr& work, std::map<std::string, std::string> unused);
/// A copy with another model name.
WorkPtr WithModelName(const WorkPtr& work, std::string_view model_name);
/// A copy with these measured tilings.
WorkPtr WithSearch(const WorkPtr& work, std::shared_ptr<const TileSearch> search);
/// A copy that is planned with these constants.
WorkPtr WithCalibration(const WorkPtr& work, const PlanCalibration& calibration);

/// The spec that `work` is planned with: its device, with the constants of its calibration. Kernels
/// are generated and named for Work::device.
DeviceSpec PlanningDevice(const Work& work);

/// A request after import: the work and the caller's names.
struct Resolved {
  WorkPtr work;
  Binding binding;
  std::vector<std::string> warnings;
};

/// Resolves the bytes of a request to a canonical graph and its key. Results are cached by the
/// request's bytes. Thread-safe. `toolchain` outlives it.
class Resolver {
 public:
  /// `recalled_bytes`: limit of the cache of resolved requests. `rules` precede those of every
  /// request; `registered` are offered to every request that they apply to. A level above
  /// `max_opt_level` is lowered to it, with a warning. `job` limits each import; `memory` (null:
  /// unlimited; outlives the Resolver) limits all imports and everything else that is charged to
  /// it.
  Resolver(std::vector<DeviceSpec> specs, const Toolchain& toolchain, int64_t recalled_bytes,
           Rules rules = {}, RegisteredKernels registered = {}, int max_opt_level = kMaxOptLevel,
           const JobLimits& job = {}, JobMemory* memory = nullptr)
      : specs_(std::move(specs)),
        toolchain_(toolchain),
        rules_(std::move(rules)),
        registered_(std::move(registered)),
        max_opt_level_(max_opt_level),
        job_(job),
        memory_(memory),
        recalled_(recalled_bytes, LargestEntryBytes(recalled_bytes)) {}

  /// InvalidArgument and Unimplemented name node, tensor, rule or field in the caller's words.
  /// ResourceExhausted: the import exceeds its limits; it names what did. FailedPrecondition: see
  /// CanCompile and ImportFamily. kCancelled or kDeadlineExceeded if `stages.cancel` ends.
  absl::StatusOr<std::shared_ptr<const Resolved>> Resolve(const PlanRequest& request,
                                                          StageContext& stages);

  /// Restores the work of a plan from its full key alone: what a request with this key is resolved
  /// to. FailedPrecondition, with the reason, if the key does not hold everything that planning
  /// needs (open dims, locks, measured tiles or devices, or constants or rules that it holds
  /// only as a digest), or if this server gives such a key to no request because its compiler,
  /// planner or devices differ.
  absl::StatusOr<WorkPtr> WorkOf(std::string_view full_key) const;

  /// Forgets the least recently used of the cached requests; a quarter of their limit stays.
  void MakeRoom() {
    std::vector<std::pair<Digest, std::shared_ptr<const Resolved>>> forgotten;
    MutexLock lock(&mutex_);
    forgotten = recalled_.MakeRoom();
  }

  /// Bytes of the cached requests.
  int64_t recalled_bytes() const {
    MutexLock lock(&mutex_);
    return recalled_.cost();
  }

 private:
  absl::StatusOr<std::shared_ptr<const Resolved>> Import(const PlanRequest& request,
                                                         StageContext& stages) const;
  absl::StatusOr<WorkPtr> MakeWork(const CanonicalGraph& canonical, DeviceSpec device,
                                   std::shared_ptr<const ShapeFamily> family,
                                   std::string family_key, const PlanRequest& request) const;

  const std::vector<DeviceSpec> specs_;
  const Toolchain& toolchain_;
  const Rules rules_;
  const RegisteredKernels registered_;
  const int max_opt_level_;
  const JobLimits job_;
  JobMemory* const memory_;
  mutable Mutex mutex_;
  LruMap<Digest, std::shared_ptr<const Resolved>> recalled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
