#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/bundle/options.h"

namespace fusion {

/// Parts of a dim that a reduction is split into, at most.
inline constexpr int kMostSplitParts = 64;

/// A tile length of a dim of a kernel, by the name that the dim has in its schedule.
struct LockedTile {
  std::string dim;
  int64_t tile = 1;
};

/// How one matrix product of a kernel is blocked.
struct LockedProduct {
  int op = 0;  // position in the space-mapping graph of the ops
  bool swap = false;
  int rows = 1;  // of the register block
  int columns = 1;
  bool stage_rows = false;
};

/// What is left to decide of a kernel once its ops are known; everything else follows.
struct LockedCut {
  std::vector<LockedTile> grid;         // parallel blocks, last dim fastest
  std::optional<LockedTile> streamed;   // the dim streamed through a block
  std::vector<LockedProduct> products;  // every product once
  /// A reduced dim that is split, `tile` the number of its parts. Then nothing of the above is set,
  /// and `phases` has two: the parts, their merge.
  std::optional<LockedTile> split;
  std::vector<LockedCut> phases;
  /// Extents of the dims of the ops that were cut, see LockUse::kMember. Of cuts that never leave
  /// the process; not in digests.
  std::vector<int64_t> extents = {};
};

/// Some of a kernel's ops, which run as its next phases.
struct LockedTurn {
  std::vector<int> ops;  // positions among the ops of the group, ascending
  int choice = 0;        // position in PlanLock::choices of one without turns
};

/// Phases of a kernel that run as a pipeline, see `turns`.
struct LockedPipeline {
  int first = 0;                   // position of the first phase, as if there were no pipelines
  int phases = 0;                  // at least two
  std::vector<LockedTile> slices;  // dims of the first phase; at least one
};

/// A kernel's cut; of several sets of ops side by side in one launch one cut each.
struct LockedChoice {
  std::vector<LockedCut> parts;  // at least one, unless there are turns
  /// Of several sets one after the other in one launch, which hold every op of the group once: at
  /// least two, then there are no parts.
  std::vector<LockedTurn> turns = {};
  std::vector<LockedPipeline> pipelines = {};  // with turns: ascending
};

/// Ops that run as one kernel; or one op that repeats a body.
struct LockedGroup {
  std::vector<int> ops;  // positions in the program (`fusionctl show MODEL program`), ascending
  int choice = 0;        // position in `choices` beside it; of a repeat 0
  int body = -1;         // of a repeat: position in `bodies` beside it; else -1
};

/// What is decided of the ops of one program, as PlanLock says of a graph's: of the body of a
/// repeat, of a variant.
struct LockedBody {
  std::vector<LockedGroup> groups;
  std::vector<LockedChoice> choices;
  std::vector<LockedBody> bodies = {};
};

/// A variant of the plan of a family (PlanVariant).
struct LockedVariant {
  int64_t most = 0;
  LockedBody decisions;
};

/// What became of a kernel. A digest that is not there is not compared.
struct LockedKernel {
  std::string label;               // for people; not compared
  std::optional<Digest> schedule;  // SHA-256 of its text
  std::optional<Digest> source;    // SHA-256 of its text; none: no code generator
  std::optional<Digest> key;       // of the kernel
};

/// For which graph a lock is.
enum class LockUse : uint8_t {
  kAsIs,    // the one that it is of
  kFit,     // one with other dims: tiles that are longer than their dim are as long as it is
  kMember,  // one of a family of which that one is the largest: what is decided by how long dims
            // are is decided by its LockedCut::extents
};

/// A plan pinned: the decisions that planning a graph again shall take, and what must come out of
/// it. Versions and device are told where the outcome differs; they decide nothing.
struct PlanLock {
  int planner_version = 0;
  int codegen_version = 0;
  std::string target;            // device spec name
  std::optional<Digest> device;  // SHA-256 of DeviceSpec::KeyText
  Digest graph;                  // SHA-256 of CanonicalGraph::key_text
  FusionMode fusion = FusionMode::kFused;
  Numerics numerics = Numerics::kFp32Accumulate;
  std::vector<LockedGroup> groups;  // in the order in which they run
  std::vector<LockedChoice> choices;
  std::vector<LockedBody> bodies = {};
  std::vector<LockedVariant> variants = {};
  std::vector<LockedKernel> kernels;  // by Plan::kernels; none: not compared
  std::optional<Digest> plan;         // of what a run of the plan depends on
  /// Of locks that never leave the process; not in digests.
  LockUse use = LockUse::kAsIs;
};

/// Names everything in a lock: equal digests, equal locks.
Digest DigestOf(const PlanLock& lock);

/// What a lock says of a body or a variant, as a lock of that program.
PlanLock LockOf(const LockedBody& body, LockUse use);

/// Checks that the choices and bodies which groups and turns name are there, and that those of
/// turns have no turns, within bodies and variants too. InvalidArgument names the field:
/// `groups[3].choice: 9; expected 0..8`.
absl::Status CheckChoices(const PlanLock& lock);

}  // namespace fusion
