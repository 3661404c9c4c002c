#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/bundle/options.h"

namespace fusion {

/// Maximum number of parts of a split reduction.
inline constexpr int kMostSplitParts = 64;

/// The tile length of a dim of a kernel.
struct LockedTile {
  std::string dim;   // its name in the kernel's schedule
  int64_t tile = 1;  // elements, 1..extent of the dim
};

/// How one matrix product of a kernel is blocked.
struct LockedProduct {
  int op = 0;               // position among the ops of the kernel's SMG
  bool swap = false;        // true: the first operand gives the columns, else the second
  int rows = 1;             // of the register block
  int columns = 1;          // of the register block
  bool stage_rows = false;  // copy rows of an operand next to each other first
};

/// The tiling of a kernel. With the ops it determines the schedule.
struct LockedTiling {
  std::vector<LockedTile> grid;         // parallel blocks, last dim fastest
  std::optional<LockedTile> streamed;   // the dim streamed through a block
  std::vector<LockedProduct> products;  // every product once
  /// A reduced dim that is split over blocks; `tile` is the number of parts, 2..kMostSplitParts. If
  /// set, the fields above are empty and `phases` has two tilings: of the parts and of their merge.
  std::optional<LockedTile> split;
  std::vector<LockedTiling> phases;
  /// Extents of the dims of the tiled ops, for LockUse::kFit and kMember. Only within the process:
  /// neither in lock files nor in digests.
  std::vector<int64_t> extents = {};
};

/// A subset of a kernel's ops that runs as the next of its sequential phases.
struct LockedSequentialPhase {
  std::vector<int> ops;  // positions among the ops of the group, ascending
  int choice = 0;        // position in the `choices` of the lock or body; that choice has no turns
};

/// Consecutive phases of LockedChoice::turns that run as a pipeline, without barriers between them.
struct LockedPipeline {
  int first = 0;   // number of the first phase, counted without pipelines; a split turn has two
  int phases = 0;  // at least two
  /// Dims of the grid of the first phase and the length that a task takes through all phases. At
  /// least one.
  std::vector<LockedTile> slices;
};

/// The tiling of a group's kernel: either `parts` or `turns`.
struct LockedChoice {
  /// One: the tiling of the kernel. Several: independent sets of ops run side by side in one
  /// launch, one tiling each, in the order of their first ops.
  std::vector<LockedTiling> parts;
  /// At least two sets of ops that run as sequential phases of one launch. Together they contain
  /// each op of the group once.
  std::vector<LockedSequentialPhase> turns = {};
  std::vector<LockedPipeline> pipelines = {};  // only with turns; ascending
};

/// Ops that run as one kernel, or one repeat (an op that runs a body several times).
struct LockedGroup {
  std::vector<int> ops;  // positions in the program (`fusionctl show MODEL program`), ascending
  int choice = 0;        // position in the `choices` of the same lock or body; 0 for a repeat
  int body = -1;         // repeat: position in the `bodies` of the same lock or body; else -1
};

/// The decisions for one program: the body of a repeat, or a variant. Fields as in PlanLock.
struct LockedBody {
  std::vector<LockedGroup> groups;
  std::vector<LockedChoice> choices;
  std::vector<LockedBody> bodies = {};
};

/// The decisions for a variant of a plan.
struct LockedVariant {
  int64_t most = 0;  // PlanVariant::most
  LockedBody decisions;
};

/// Expected digests of a kernel. A digest that is not set is not compared.
struct LockedKernel {
  std::string label;               // op types, for people; not compared
  std::optional<Digest> schedule;  // SHA-256 of the schedule's text
  std::optional<Digest> source;    // SHA-256 of the source; not set also if there is no backend
  std::optional<Digest> key;       // PlanKernel::key
};

/// To which graph a lock is applied.
enum class LockUse : uint8_t {
  kAsIs,    // the graph that it was made for
  kFit,     // that graph with smaller extents: tiles are shortened to fit, as at run time
  kMember,  // another member of the family whose largest member the lock was made for: decisions
            // that depend on extents use those of LockedTiling::extents
};

/// A pinned plan: the decisions to repeat when the graph is planned again, and the expected digests
/// of the result. Versions, target and device only appear in error messages about a different
/// result; they are not compared.
struct PlanLock {
  int planner_version = 0;
  int codegen_version = 0;
  std::string target;            // device spec name
  std::optional<Digest> device;  // SHA-256 of DeviceSpec::KeyText
  Digest graph;                  // SHA-256 of CanonicalGraph::key_text
  FusionMode fusion = FusionMode::kFused;
  Numerics numerics = Numerics::kFp32Accumulate;
  std::vector<LockedGroup> groups;  // in execution order; each op except views in one group
  std::vector<LockedChoice> choices;
  std::vector<LockedBody> bodies = {};
  std::vector<LockedVariant> variants = {};
  std::vector<LockedKernel> kernels;  // in the order of Plan::kernels; empty: not compared
  std::optional<Digest> plan;         // of the plan without estimates, device limits and fallbacks
  /// Only within the process: neither in lock files nor in digests.
  LockUse use = LockUse::kAsIs;
};

/// Digest of everything in a lock except LockedTiling::extents and PlanLock::use.
Digest DigestOf(const PlanLock& lock);

/// A lock of the program of a body or a variant, with its decisions. Other fields have defaults.
PlanLock LockOf(const LockedBody& body, LockUse use);

/// Checks that the positions in groups and turns name existing choices and bodies, and that choices
/// of turns have no turns; within bodies and variants too. InvalidArgument, naming the field:
/// `groups[3].choice: 9; expected 0..8`.
absl::Status CheckChoices(const PlanLock& lock);

}  // namespace fusion
