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

/// What planning needs, apart from its request. Equal keys: equal plans, if the same nodes stay
/// alone.
struct Work {
  Graph graph;  // canonical; of a family where its symbols have their largest values
  std::shared_ptr<const ShapeFamily> family;  // null: static shapes
  DeviceSpec device;
  PlanOptions options;
  RegisteredOptions registered;  // of the server; none where they do not apply
  /// What was measured for it, to be planned with; null: nothing yet, the tiles are the model's.
  std::shared_ptr<const TileSearch> search;
  std::string full_key;
  Digest key;
  /// Names what planning makes of it: `key`, which registered kernels are unused, and `search`.
  Digest planning_key;
  /// Of CanonicalGraph::key_text; only where a lock is given or asked for.
  std::optional<Digest> graph_sha256;
  std::string model_name;  // of the request, for people: names nothing
};
using WorkPtr = std::shared_ptr<const Work>;

/// The same work with these registered kernels unused, by name with the reason.
WorkPtr WithUnused(const WorkPtr& work, std::map<std::string, std::string> unused);
/// The same work of a model that is called so.
WorkPtr WithModelName(const WorkPtr& work, std::string_view model_name);
/// The same work with what was measured for it.
WorkPtr WithSearch(const WorkPtr& work, std::shared_ptr<const TileSearch> search);

/// A request after import: the work and the caller's words.
struct Resolved {
  WorkPtr work;
  Binding binding;
  std::vector<std::string> warnings;
};

/// From the bytes of a request to a canonical graph and its key. Bytes seen lately are recalled.
/// Thread-safe. `toolchain` outlives it.
class Resolver {
 public:
  /// `recalled_bytes`: of graphs of recent requests. `rules` come before those of every request;
  /// `registered` are for every request that they apply to. A level above `max_opt_level` is taken
  /// for it, with a warning. An import takes no more than `job`, all of them and what else is
  /// charged to `memory` (null: nothing, no bound; outlives the Resolver) no more than that.
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

  /// InvalidArgument and Unimplemented name node, tensor, rule or field in the caller's words;
  /// ResourceExhausted does where the import takes too much.
  absl::StatusOr<std::shared_ptr<const Resolved>> Resolve(const PlanRequest& request,
                                                          StageContext& stages);

  /// The work of a plan, from nothing but the plan's full key: what a request that has this key is
  /// resolved to. FailedPrecondition, saying why, for a key that does not hold all that planning
  /// needs (open dims, locks, measured tiles, constants and rules of which it has a digest), and
  /// for one that this server gives to no request: made with another compiler, planner or device.
  absl::StatusOr<WorkPtr> WorkOf(std::string_view full_key) const;

  /// What the graphs of recent requests take.
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
