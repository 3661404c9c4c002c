#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/refusal.h"
#include "core/bundle/options.h"
#include "core/bundle/tile_search.h"
#include "core/tensor/bound_strides.h"
#include "core/tensor/host_tensor.h"
#include "core/tensor/output_extent.h"
#include "core/tensor/shared_buffer.h"
#include "core/tensor/size_expr.h"

namespace fusion {

/// Where a plan tensor lives at run time.
enum class Space : uint8_t {
  kInput,     // the caller's, by graph input
  kOutput,    // the caller's, by graph output
  kWeight,    // the client's constants, by canonical weight position
  kConstant,  // bytes carried by the plan (folded, not scalar)
  kPrepared,  // written once by the prepare launches, then read-only
  kArena,     // scratch between kernels of one run
  kPass,      // elsewhere in each pass of a loop, see PlanLoop: which place
};

/// Different candidates that a plan tells about, and places of one: what is beyond is only counted.
inline constexpr size_t kMaxCandidateEntries = 4096;
inline constexpr size_t kMaxCandidatePlaces = 64;

/// Largest arena, prepared area or padded tensor of a plan: kMaxTensorBytes, and as much again as
/// the padding of packed layouts and alignment may add.
inline constexpr int64_t kMaxSpaceBytes = kMaxTensorBytes << 7;

struct PlanTensor {
  DType dtype = DType::kF32;
  Dims dims;
  Dims strides;  // elements
  Space space = Space::kArena;
  int index = 0;  // kInput, kOutput, kWeight, kConstant, kPass: which one
  /// Bytes from the start of the space (kPrepared, kArena), or of the caller's memory of a shared
  /// buffer (kOutput), where new rows begin.
  int64_t offset = 0;
  int64_t bytes = 0;  // occupied, padding included
  /// Of a plan with symbols: what `dims` and then `strides` are for their values, and, where it
  /// differs, at which element `offset` is; those are for the largest ones. Empty: always the same.
  std::vector<SizeExpr> sizes;
};

/// What the benefit model expects of one kernel, every term kept. Times in microseconds, sizes in
/// bytes.
struct Estimate {
  double time_us = 0;  // max(compute, memory) + stall + launch + tiling loss
  double compute_us = 0;
  double product_us = 0;  // part of compute_us: matrix products
  double memory_us = 0;
  double off_chip_us = 0;  // part of memory_us: waiting for the last level
  // Part of the shorter of compute and memory that does not hide behind the longer, and what
  // scratch beyond the private cache costs.
  double stall_us = 0;
  double launch_us = 0;
  double tiling_loss_us = 0;
  double flops = 0;              // multiply-add counts 2
  int64_t activation_bytes = 0;  // off chip: each distinct activation once in, once out
  int64_t recompute_bytes = 0;   // activation bytes read again because blocks recompute
  int64_t weight_bytes = 0;      // distinct weights, read once
  int64_t on_chip_bytes = 0;     // tiles of one block in PlanDevice::on_chip_level
  int64_t tasks = 0;             // parallel blocks over all phases
  double waves = 0;              // tasks / units
};

enum class KernelState : uint8_t { kPending, kReady, kFailed };

/// Outcome of running a kernel against the evaluator before it was published.
struct CheckReport {
  bool verified = false;
  std::string reason;  // why not, if not verified ("needs avx512, this machine has avx2")
  double max_abs = 0;
  double max_rel = 0;  // max|a-b| / max|b|
  int64_t elements = 0;
  int64_t outside = 0;  // elements outside atol + rtol * max|b|
};

struct PlanKernel {
  Digest key;  // known at plan time: schedule, target, compiler, flags, ABI, codegen version
  std::string symbol;   // "fk_<first 16 hex digits of key>"
  std::string label;    // op types, for people
  std::string backend;  // "cpu"
  std::string isa;
  int phases = 1;
  int64_t scratch_bytes = 0;    // of one thread; the loaded kernel takes no more
  int64_t workspace_bytes = 0;  // of one run, likewise
  /// The dims that it is called with, for the values of the plan's symbols.
  std::vector<SizeExpr> sizes;
};

enum class GroupKind : uint8_t { kInner, kCrossOperator, kPipeline, kAllInOne, kPrepare };

/// True for a launch of kernels put in a row, one or several phases of each.
constexpr bool RunsInTurn(GroupKind kind) {
  return kind == GroupKind::kAllInOne || kind == GroupKind::kPipeline;
}

/// Sums over some launches, as often as loops run them (PlanLoop::counted_passes).
struct PlanTotals {
  int64_t kernels = 0;  // phases executed per inference, prepare excluded
  int64_t launches = 0;
  int64_t activation_bytes = 0;
  int64_t weight_bytes = 0;
  double estimated_us = 0;
};

struct PlanGroup {
  GroupKind kind = GroupKind::kInner;
  std::vector<int> nodes;  // canonical node positions, ascending
  std::string label;       // op types in order
  int kernel = 0;
  Estimate estimate;
  PlanTotals op_by_op;  // the same ops, one kernel per node
  /// What the time is mostly made of: "products", "elements", "launch", "idle units", or the name
  /// of a memory level. Empty for a group without an estimate.
  std::string bound;
  std::string tiles;  // how its kernel is cut, for people
  /// How what the kernel computes tile by tile was derived from the ops, and what it assumes of NaN
  /// and infinities: lines for people. Ops are numbered within what runs as one part of the kernel.
  /// Empty: the ops as they are.
  std::vector<std::string> derivation;
  /// StructureHash of its ops: equal for kernels of one structure, whatever their sizes. Empty if
  /// fewer than two of them compute something, and for one that RunsInTurn.
  std::string structure;
  /// Name of the registered kernel that it runs (core/bundle/rules/registered_kernel.h); empty: a
  /// generated one.
  std::string registered;
};

/// One call of a kernel: params in the order of its schedule.
struct PlanLaunch {
  int group = 0;
  int kernel = 0;
  std::vector<int> tensors;
};

/// Launches that run once in each of several passes, which are made one after the other. Places
/// (Space::kPass) are numbered over all loops of a plan, and mean something in the launches of
/// their loop alone. What is named here is row-major.
struct PlanLoop {
  int first = 0;          // of its launches, in Plan::launches
  int launches = 0;       // at least one, those of loops within this one included
  int64_t most = 0;       // passes at most
  bool must_end = false;  // a run that would make more passes fails
  /// Tensors, -1 where there is none: how many passes are asked for (i64 scalar); whether there is
  /// a first one; what a pass writes, whether there is a next one (bools of one element).
  int count = -1;
  int begins = -1;
  int goes_on = -1;
  int pass = -1;    // i64 scalar of the arena: gets the number of the pass that begins
  int passes = -1;  // i64 scalar: gets how many were made

  /// What a pass hands to the next. The first reads `initial`; each writes `last` or `spare`, in
  /// turn, so that the last one at best writes `last`, where the value is in the end.
  struct Carried {
    int before = 0;  // place that a pass reads
    int after = 0;   // place that it writes
    int initial = 0;
    int last = 0;
    int spare = 0;  // tensor of the arena
    bool operator==(const Carried&) const = default;
  };
  std::vector<Carried> carried;

  /// A place that moves along a tensor of `most` elements, which its first dim counts: at element i
  /// in pass i, or at as many before the last one.
  struct Element {
    int place = 0;
    int whole = 0;
    bool from_end = false;
    bool written = false;  // by the passes; what those that were not made leave out is zero
    bool operator==(const Element&) const = default;
  };
  std::vector<Element> elements;
  /// Of a plan with symbols: what `most` is for their values; that is for the largest ones. Not
  /// set: always the same.
  std::optional<SizeExpr> open_most = {};

  /// Passes that totals of a plan count: `most`, or one if a run decides how many are made.
  int64_t counted_passes() const { return count < 0 && begins < 0 ? most : 1; }
  /// Places that it gives.
  size_t places() const { return 2 * carried.size() + elements.size(); }
  bool operator==(const PlanLoop&) const = default;
};

/// What an entry of the ledger is about.
enum class DecisionSubject : uint8_t {
  kCandidate,  // two sides that the search weighed on its way
  kGroup,      // a group of the plan: why it is one kernel
  kPair,       // two groups of the plan, one of which reads from the other: why they are two
  kSiblings,   // two groups that read the same value and not from each other: why they are two
};

/// A change that would turn a verdict.
struct WhatIf {
  std::string what;   // one of core/bundle/what_if_words.h
  double value = 0;   // that it would have to have
  std::string words;  // "gains if a launch cost more than 3.2 us (it costs 1.5 us)"
};

/// Where an entry holds.
struct DecisionPlace {
  std::vector<int> first;   // of candidates: canonical node positions, ascending
  std::vector<int> second;  // none: the entry is about one side
  int first_group = -1;     // of all but candidates: positions in Plan::groups
  int second_group = -1;
  std::vector<int> between;  // cyclic pairs: groups on the way from one to the other; the first few
};

/// An entry of the decision ledger: what became of a candidate, a group or a pair of groups, and
/// what it would take to turn it. Equal entries of repeated layers are one with several places.
struct PlanDecision {
  DecisionSubject subject = DecisionSubject::kCandidate;
  Verdict verdict = Verdict::kChosen;
  std::string code;    // of refusals: RefusalEntry::word; empty: chosen
  std::string reason;  // the first failing predicate in words with numbers; of chosen ones the gain
  /// The side that is read from; of a group: its nodes with one kernel each, added up.
  std::optional<Estimate> first;
  std::optional<Estimate> second;     // the side that reads
  std::optional<Estimate> together;   // as one kernel; not set: no kernel can hold it
  double benefit_us = 0;              // of one kernel, negative is a loss; 0 without `together`
  std::vector<WhatIf> what_ifs;       // the smallest change first
  std::vector<DecisionPlace> places;  // at least one
  int64_t times = 0;                  // that the entry holds; more than places: the first of them
};

/// A node that fuses with nothing because a kernel that held it failed; or, with `registered`, the
/// first node of a place where that registered kernel would run, had it not failed; or, with
/// kNoVariant for a node, no variant of a family because what it needs failed.
inline constexpr int kNoVariant = -1;
struct PlanFallback {
  int node = 0;
  std::string reason;
  std::string registered = {};
  bool operator==(const PlanFallback&) const = default;
};

/// A rewrite of the planner that a plan goes without, because it would have made a wrong one: a
/// fault of ours.
struct SkippedPass {
  std::string pass;  // of ProgramPasses
  std::string reason;
  bool operator==(const SkippedPass&) const = default;
};

/// One memory level of the device of a plan.
struct PlanLevel {
  std::string name;
  bool shared = false;           // by all units; else each unit has its own
  int64_t bytes = 0;             // 0: unbounded
  int64_t usable_bytes = 0;      // what the planner may fill
  double total_bytes_per_s = 0;  // of all units together
};

/// The limits a plan was made under, for people and tools.
struct PlanDevice {
  std::string kind;  // "CPU"
  std::string unit;  // "thread": Plan::threads of them run blocks
  /// True: what does not fit has no schedule. False: caches.
  bool explicit_memory = false;
  std::string on_chip_level;  // where the tiles of a block lie
  int64_t on_chip_bytes = 0;  // and how many bytes of them it may have
  std::vector<PlanLevel> levels;
};

/// A whole plan that the planner weighed: what it takes of time, of memory and of the compiler.
struct PlanPoint {
  std::string name;       // how it was found: one of those of core/plan/search/frontier.h
  double latency_us = 0;  // estimated time of a run, as rules weigh it
  /// What a run holds beside its inputs, its outputs and the weights: the arena, the scratch of all
  /// threads and the workspace.
  int64_t peak_bytes = 0;
  double compile_s = 0;  // estimated: all its kernels, one after the other, none of them cached
  int64_t launches = 0;
  int64_t kernels = 0;  // different ones, of prepare launches too
  bool chosen = false;  // this is the plan
  std::string reason;   // of the chosen one: what decided
};

/// What a plan with symbols costs where they have these values, beside a plan for nothing else.
struct PlanSample {
  std::vector<int64_t> values;  // in the order of Plan::symbols
  double family_us = 0;         // estimated time of a run
  double exact_us = 0;          // of the plan that would be made for these values alone
};

struct Plan;

/// Part of a family: a plan for those values of its symbols at which `measure` is no more than
/// `most`. Another one, with other groups and cuts, because few rows are other work than many.
struct PlanVariant {
  SizeExpr measure;  // as sizes count symbols
  int64_t most = 0;
  /// For the same inputs, outputs and weights; its symbols may end earlier, and it is for no more.
  /// It has no variants, no ledger, no samples and no frontier. Its prepared weights lie in the
  /// same memory as those of the plan, what both pack alike at the same place.
  std::shared_ptr<const Plan> plan;
};

/// Everything a client needs to run a graph, kernels by key. A plain value; no names of the client
/// are in it, so equal graphs share it. Positions (inputs, outputs, weights, nodes) are canonical:
/// see CanonicalGraph.
struct Plan {
  std::string target;  // device spec name
  std::string isa;
  int threads = 1;
  Numerics numerics = Numerics::kFp32Accumulate;
  FusionMode fusion = FusionMode::kFused;

  std::vector<PlanTensor> tensors;
  std::vector<std::shared_ptr<const HostTensor>> constants;
  std::vector<PlanKernel> kernels;  // those of variants too
  std::vector<PlanGroup> groups;
  std::vector<PlanLaunch> prepare;   // run once per set of weights, in order
  std::vector<PlanLaunch> launches;  // run per inference, in order
  std::vector<PlanLoop> loops;       // each before those within it; else by first launch
  std::vector<int> inputs;   // plan tensor of each graph input; -1 if the graph does not read it
  std::vector<int> outputs;  // of each graph output: those of the model, then counts of elements
  std::vector<OutputExtent> output_extents;  // that a run decides
  std::vector<SharedBuffer> shared_buffers;  // inputs and outputs that lie in one piece of memory
  /// Those that do not lie dense in memory of their own; their tensors have these strides.
  std::vector<BoundStrides> bound_strides;
  std::vector<int> weights;
  int64_t arena_bytes = 0;
  int64_t prepared_bytes = 0;

  /// Dims that the plan leaves open, by name of the request's dim_ranges (Binding::symbols). Sizes
  /// count symbols in units of their `multiple`. Totals and estimates are for the largest values.
  std::vector<DimRange> symbols;
  std::vector<PlanSample> samples;
  /// The first that is for the values of a run is what runs, see PlanAt; none: this plan.
  std::vector<PlanVariant> variants;

  int nodes = 0;  // nodes of the canonical graph
  PlanTotals totals;
  PlanTotals op_by_op;  // the same graph, one kernel per node
  std::vector<PlanFallback> fallbacks;
  std::vector<SkippedPass> skipped_passes;  // each pass once
  std::vector<PlanDecision> decisions;      // groups, then pairs, then siblings, then candidates
  /// Candidates that the search weighed: every join of two groups that it estimated, or that it
  /// refused without. `decisions` holds the first kMaxCandidateEntries different ones.
  int64_t candidates = 0;
  PlanDevice device;
  /// What could be had instead: plans none of which is better than another one in latency, peak
  /// bytes and compile time together. By latency; one is chosen. Empty: not told. All of them with
  /// the tiles that the model picks.
  std::vector<PlanPoint> frontier;
  /// How the tiles of its kernels were chosen, if not by the model alone.
  TileSearch search;
};

/// A compiled kernel and how it came to be.
struct KernelArtifact {
  Digest key;
  std::string full_key;  // the bytes whose SHA-256 is `key`; compared on every read
  Digest content;        // SHA-256 of `binary`
  std::string binary;    // shared object
  std::string source;
  std::string schedule;   // text form
  std::string compiler;   // command line, without paths of the machine
  std::string reference;  // text form of what it was compared with; empty: not known
  double compile_ms = 0;
  double check_ms = 0;
  CheckReport check;
  /// Where it was the model's pick: what became of it and its rivals, by race; the newest last.
  std::vector<MeasuredTiles> searches = {};
};

/// The values of a plan's symbols in units of their multiples, as sizes count them.
std::vector<int64_t> LeastUnits(const std::vector<DimRange>& symbols);
std::vector<int64_t> MostUnits(const std::vector<DimRange>& symbols);

/// Bytes that one run on `threads` threads holds beside its inputs, its outputs and the weights:
/// the arena, the scratch of all threads, the workspace of the kernel that has most of it. An
/// executor holds no more for it, but for rounding each to pages. For the largest values of the
/// symbols; of a plan with variants whichever of them takes most.
int64_t RunBytes(const Plan& plan, int threads);

/// Bytes of prepared weights of a plan and its variants together.
int64_t PreparedBytes(const Plan& plan);

/// Tensors that runs read or write: those of their launches, and those that loops name. Ascending.
std::vector<int> TensorsOfRuns(const Plan& plan);

/// Places that the loops of a plan give.
size_t PlacesOf(const Plan& plan);

/// By launch how often totals count it: 1, but for those of loops.
std::vector<int64_t> CountedRuns(const Plan& plan);

/// Checks that every position and offset of a plan stays in range, so that an executor may trust
/// it. `plan` may come from the network or from disk.
absl::Status Verify(const Plan& plan);

}  // namespace fusion
