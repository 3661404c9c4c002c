#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/refusal.h"
#include "core/bundle/cost_factors.h"
#include "core/bundle/cost_terms.h"
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
  kInput,     // the caller's memory of a graph input
  kOutput,    // the caller's memory of a graph output
  kWeight,    // the client's constants, by canonical weight position
  kConstant,  // bytes carried by the plan (folded, not scalar)
  kPrepared,  // written once by the prepare launches, then read-only
  kArena,     // memory between the kernels of one run
  kPass,      // a place: memory whose address differs in each pass of a loop, see PlanLoop
};

/// Limits of Plan::decisions: distinct candidates, and PlanDecision::places of one candidate. Those
/// beyond the limits are only counted.
inline constexpr size_t kMaxCandidateEntries = 4096;
inline constexpr size_t kMaxCandidatePlaces = 64;

/// Limit in bytes for the arena, the prepared area and a padded tensor of a plan. It exceeds
/// kMaxTensorBytes to allow for the padding of packed layouts and alignment.
inline constexpr int64_t kMaxSpaceBytes = kMaxTensorBytes << 7;

struct PlanTensor {
  DType dtype = DType::kF32;
  Dims dims;
  Dims strides;  // elements
  Space space = Space::kArena;
  /// kInput, kOutput, kWeight, kConstant: position in the list of that space. kPass: the place.
  int index = 0;
  /// Bytes. kPrepared, kArena: from the start of the space. kOutput of a shared buffer: from the
  /// start of the caller's memory to the first new row. Else 0.
  int64_t offset = 0;
  int64_t bytes = 0;  // occupied, padding included
  /// Of a plan with symbols: `dims`, then `strides`, as functions of the symbols; if the offset
  /// varies too, one more entry: `offset` in elements. `dims`, `strides` and `offset` themselves
  /// are for the largest values. Empty: nothing varies.
  std::vector<SizeExpr> sizes;
};

/// The benefit model's prediction for one launch of a kernel, term by term. Times in microseconds,
/// sizes in bytes.
struct Estimate {
  double time_us = 0;  // max(compute, memory) + stall + launch + tiling loss
  double compute_us = 0;
  double product_us = 0;  // part of compute_us: matrix products
  double memory_us = 0;
  double off_chip_us = 0;  // part of memory_us: waiting for the last level
  // Part of memory_us: data so small that a private cache may still hold them. A spec knows no
  // better than to count them at the rate of the shared level; measurements do
  // (DeviceSpec::local_part).
  double local_us = 0;
  // The part of the shorter of compute and memory time that does not overlap with the longer, plus
  // the cost of scratch that exceeds the private cache.
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

/// Result of comparing a kernel with the evaluator before it is published: a is the kernel's value,
/// b the evaluator's.
struct CheckReport {
  bool verified = false;
  std::string reason;  // why not, if not verified ("needs avx512, this machine has avx2")
  double max_abs = 0;
  double max_rel = 0;  // max|a-b| / max|b|
  int64_t elements = 0;
  int64_t outside = 0;  // elements outside atol + rtol * max|b|
};

struct PlanKernel {
  Digest key;  // of schedule, target, compiler, flags, ABI, codegen version: known at plan time
  std::string symbol;   // entry point: "fk_<first 16 hex digits of key>"
  std::string label;    // op types, for people
  std::string backend;  // "cpu"
  std::string isa;
  int phases = 1;
  int64_t scratch_bytes = 0;    // per thread; upper bound for the loaded kernel
  int64_t workspace_bytes = 0;  // per run; upper bound too
  /// FusionKernelArgs::dims as functions of the plan's symbols. Empty: static shape.
  std::vector<SizeExpr> sizes;
};

enum class GroupKind : uint8_t { kInner, kCrossOperator, kPipeline, kAllInOne, kPrepare };

/// True if one launch of the group runs several kernels as sequential phases.
constexpr bool RunsInSequence(GroupKind kind) {
  return kind == GroupKind::kAllInOne || kind == GroupKind::kPipeline;
}

/// Sums over launches. A launch within loops counts PlanLoop::counted_passes times.
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
  /// The terms of `estimate` with the constants of the device's spec, and the form of the kernel
  /// (core/benefit/kernel_form.h), for fitting constants to measurements. `form` is empty
  /// in plans of earlier versions, of open dims, in loop bodies, and where a registered kernel
  /// runs.
  CostTerms terms;
  std::string form;
  PlanTotals op_by_op;  // the same ops, one kernel per node
  /// The largest part of the estimated time: "products", "elements" (other arithmetic), "launch",
  /// "idle units", or the name of a memory level. Empty for a group without an estimate.
  std::string bound;
  std::string tiles;  // tiling of its kernel, for people
  /// How dependent reductions were decomposed to be computed tile by tile, and the assumptions
  /// about NaN and infinities: lines for people. Ops are numbered within one part of the kernel.
  /// Empty: the kernel computes the ops unchanged.
  std::vector<std::string> derivation;
  /// StructureHash of its ops: equal for kernels of one structure, regardless of sizes. Empty if
  /// fewer than two of the ops compute something (a copy or a cast does not), or if
  /// RunsInSequence(kind).
  std::string structure;
  /// Name of the registered kernel that runs the group (core/bundle/rules/registered_kernel.h).
  /// Empty: a generated kernel runs it.
  std::string registered;
};

/// One call of a kernel. Positions in Plan::groups, Plan::kernels and Plan::tensors.
struct PlanLaunch {
  int group = 0;
  int kernel = 0;
  std::vector<int> tensors;  // arguments, in the order of the kernel's params
};

/// A loop of a plan: consecutive launches that run once in each of several sequential passes.
///
/// A place (Space::kPass) is a tensor argument whose address the loop sets anew for each pass.
/// Places are numbered over all loops of a plan. Each belongs to one loop, and only the launches of
/// that loop may use it. All other int fields below are positions in Plan::tensors; these tensors
/// are row-major.
struct PlanLoop {
  int first = 0;          // first launch, in Plan::launches
  int launches = 0;       // at least one; includes those of nested loops
  int64_t most = 0;       // maximum number of passes, 0..2^31
  bool must_end = false;  // a run that would make more passes fails; else it stops after `most`
  int count = -1;    // i64 scalar, read before the loop: requested passes, < 0 is 0; -1: `most`
  int begins = -1;   // bool, read before the loop: whether there is a first pass; -1: yes
  int goes_on = -1;  // bool that each pass writes: whether there is a next one; -1: yes
  int pass = -1;     // i64 scalar, set before each pass to its number from 0; -1: not needed
  int passes = -1;   // i64 scalar, set at the end to the passes made; -1: not needed

  /// A value that each pass hands to the next. The first pass reads `initial`. Passes write `last`
  /// and `spare` alternately (double buffering), such that pass number min(count, most) writes
  /// `last`. If the loop ends elsewhere, the value is copied to `last`.
  struct Carried {
    int before = 0;   // place that a pass reads
    int after = 0;    // place that a pass writes
    int initial = 0;  // tensor: value before the first pass
    int last = 0;     // tensor: value after the loop
    int spare = 0;    // tensor of the same size, the second buffer
    bool operator==(const Carried&) const = default;
  };
  std::vector<Carried> carried;

  /// A place that moves along a tensor whose first dim has `most` elements. Pass i uses element i,
  /// with `from_end` element most - 1 - i.
  struct Element {
    int place = 0;
    int whole = 0;  // tensor
    bool from_end = false;
    bool written = false;  // passes write the elements; those of passes not made become zero
    bool operator==(const Element&) const = default;
  };
  std::vector<Element> elements;
  /// Of a plan with symbols: `most` as a function of them; `most` itself is for the largest values.
  /// Not set: `most` does not vary.
  std::optional<SizeExpr> open_most = {};

  /// The number of passes in PlanTotals: `most`, or 1 if it is only known at run time.
  int64_t counted_passes() const { return count < 0 && begins < 0 ? most : 1; }
  /// The number of places of the loop.
  size_t places() const { return 2 * carried.size() + elements.size(); }
  bool operator==(const PlanLoop&) const = default;
};

/// Subject of a ledger entry.
enum class DecisionSubject : uint8_t {
  kCandidate,  // two sides that the search considered joining
  kGroup,      // a group of the plan: why it is one kernel
  kPair,       // two groups, the second reads from the first: why they are not one
  kSiblings,   // two groups that read the same value, neither the other: why they are not one
};

/// A change that would reverse a verdict.
struct WhatIf {
  std::string what;   // the quantity, with its unit: a word of core/bundle/what_if_words.h
  double value = 0;   // the value that it would need
  std::string words;  // "gains if a launch cost more than 3.2 us (it costs 1.5 us)"
};

/// One place in the graph to which a ledger entry applies.
struct DecisionPlace {
  /// Sides of a candidate: canonical node positions, ascending. Empty for other subjects in a Plan;
  /// Explain fills them in. `second` empty: the entry has one side.
  std::vector<int> first;
  std::vector<int> second;
  int first_group = -1;  // position in Plan::groups; -1 for candidates
  int second_group = -1;
  std::vector<int> between;  // cyclic pairs: groups on the path between the two, at most 8
};

/// An entry of the decision ledger: the verdict on a candidate, a group or a pair of groups, and
/// what would reverse it. Equal entries of repeated layers are one entry with several places.
struct PlanDecision {
  DecisionSubject subject = DecisionSubject::kCandidate;
  Verdict verdict = Verdict::kChosen;
  std::string code;    // RefusalEntry::word; empty: chosen
  std::string reason;  // chosen: the gain; else the first failing predicate, with numbers
  /// The producing side alone. Of a group: the sum over its nodes with one kernel each.
  std::optional<Estimate> first;
  std::optional<Estimate> second;     // the consuming side alone
  std::optional<Estimate> together;   // both as one kernel; not set: no kernel can hold them
  double benefit_us = 0;              // gain of one kernel, < 0 is a loss; 0 without `together`
  std::vector<WhatIf> what_ifs;       // the smallest change first
  std::vector<DecisionPlace> places;  // at least one
  int64_t times = 0;                  // number of places; if larger, `places` has the first ones
};

/// A place where the plan avoids a kernel that failed or was slow. Three cases:
/// - `registered` is empty: `node` is not fused, because a fused kernel that held it failed, or was
///   measured slower than its parts.
/// - `registered` is set: that registered kernel failed, and generated code runs instead. `node` is
///   the first node of the match, or the loop whose body contains it.
/// - `node` is kNoVariant: the family has no variant, because a kernel of the variant failed.
inline constexpr int kNoVariant = -1;
struct PlanFallback {
  int node = 0;
  std::string reason;
  std::string registered = {};
  bool operator==(const PlanFallback&) const = default;
};

/// A rewrite pass whose result failed verification. The plan is made without it: correct, maybe
/// slower. This reports a bug of the planner.
struct SkippedPass {
  std::string pass;  // name in ProgramPasses
  std::string reason;
  bool operator==(const SkippedPass&) const = default;
};

/// One memory level of the device of a plan.
struct PlanLevel {
  std::string name;
  bool shared = false;           // by all units; else each unit has its own
  int64_t bytes = 0;             // 0: unbounded
  int64_t usable_bytes = 0;      // the part that the planner may fill
  double total_bytes_per_s = 0;  // all units together
};

/// The limits a plan was made under, for people and tools.
struct PlanDevice {
  std::string kind;  // "CPU"
  std::string unit;  // "thread": what runs blocks, Plan::threads of them
  /// True: tiles that do not fit on chip have no schedule. False: levels are caches.
  bool explicit_memory = false;
  std::string on_chip_level;      // the level that holds the tiles of a block
  int64_t on_chip_bytes = 0;      // bytes that the tiles of one block may take there
  std::vector<PlanLevel> levels;  // nearest first, the last one is off chip
};

/// The costs of one complete plan that the planner considered: run time, memory, compile time.
struct PlanPoint {
  std::string name;       // how it was found: a name of core/plan/search/frontier.h
  double latency_us = 0;  // estimated time of a run, scaled by the factors of rules
  /// Memory of a run besides inputs, outputs and weights: the arena, the scratch of all threads and
  /// the largest workspace of a kernel.
  int64_t peak_bytes = 0;
  double compile_s = 0;  // estimated: all kernels sequentially, none cached
  int64_t launches = 0;
  int64_t kernels = 0;  // distinct ones, those of prepare launches included
  bool chosen = false;  // it became the plan
  std::string reason;   // why it was chosen; empty for the others
};

/// The cost of leaving symbols open, at one set of their values. Estimated times of a run.
struct PlanSample {
  std::vector<int64_t> values;  // in the order of Plan::symbols
  double family_us = 0;         // of this plan, or of its variant for these values
  double exact_us = 0;          // of a plan for these values alone
};

struct Plan;

/// A plan with other groups and tilings, for few elements. It applies to values of the symbols
/// within the ranges of plan->symbols for which `measure` <= `most`.
struct PlanVariant {
  SizeExpr measure;  // of the symbols, in units of their multiples
  int64_t most = 0;
  /// Has the inputs, outputs and weights of the parent plan, and ranges of symbols within the
  /// parent's. Has no variants, ledger, samples or frontier of its own. Its prepared weights lie in
  /// the parent's prepared memory; a tensor that both pack alike (PackAlike) has one offset.
  std::shared_ptr<const Plan> plan;
};

/// Everything a client needs to run a graph, with kernels named by key. A plain value. It contains
/// no names of the client, so equal graphs share it. Positions of inputs, outputs, weights and
/// nodes are canonical (CanonicalGraph); Binding has the caller's names for them.
struct Plan {
  std::string target;  // device spec name
  std::string isa;
  int threads = 1;
  Numerics numerics = Numerics::kFp32Accumulate;
  FusionMode fusion = FusionMode::kFused;

  std::vector<PlanTensor> tensors;
  std::vector<std::shared_ptr<const HostTensor>> constants;
  std::vector<PlanKernel> kernels;  // distinct ones, those of variants included
  std::vector<PlanGroup> groups;
  std::vector<PlanLaunch> prepare;   // run once per set of weights, in order
  std::vector<PlanLaunch> launches;  // run per inference, in order
  std::vector<PlanLoop> loops;       // by first launch; outer before nested loops
  std::vector<int> inputs;   // plan tensor of each graph input; -1 if the graph does not read it
  std::vector<int> outputs;  // of each output of the model, then of the counts of output_extents
  std::vector<OutputExtent> output_extents;  // extents that are only known after a run
  std::vector<SharedBuffer> shared_buffers;  // inputs and outputs that share memory
  /// Inputs and outputs that are not dense in the caller's memory. Their plan tensors have the same
  /// strides.
  std::vector<BoundStrides> bound_strides;
  std::vector<int> weights;  // plan tensor of each weight; -1: only prepared forms are read
  int64_t arena_bytes = 0;
  int64_t prepared_bytes = 0;

  /// Symbols: dims that the plan leaves open, in the order of Binding::symbols. Every SizeExpr
  /// takes a symbol in units: its value divided by its `multiple`. Totals and estimates are for the
  /// largest values.
  std::vector<DimRange> symbols;
  std::vector<PlanSample> samples;
  /// A run uses the first variant that applies to its symbols (PlanAt), else this plan.
  std::vector<PlanVariant> variants;

  int nodes = 0;  // nodes of the canonical graph
  PlanTotals totals;
  PlanTotals op_by_op;  // the same graph, one kernel per node
  std::vector<PlanFallback> fallbacks;
  std::vector<SkippedPass> skipped_passes;  // each pass once
  std::vector<PlanDecision> decisions;      // groups, then pairs, then siblings, then candidates
  /// Number of candidates: joins of two groups that the search estimated, or refused without an
  /// estimate. `decisions` holds the first kMaxCandidateEntries distinct ones.
  int64_t candidates = 0;
  PlanDevice device;
  PlanCalibration calibration;
  /// The Pareto frontier of latency, peak bytes and compile time. Ordered by latency; one point is
  /// chosen. All points have the tiles of the benefit model. Empty: not computed.
  std::vector<PlanPoint> frontier;
  /// The measured search for tiles, if there was one (PlanOptions::opt_level).
  TileSearch search;
};

/// A compiled kernel with its sources and its check.
struct KernelArtifact {
  Digest key;            // PlanKernel::key
  std::string full_key;  // the bytes whose SHA-256 is `key`; compared on every read
  Digest content;        // SHA-256 of `binary`
  std::string binary;    // shared object
  std::string source;
  std::string schedule;   // text form
  std::string compiler;   // command line, without local paths
  std::string reference;  // text form of the program it was compared with; empty: unknown
  double compile_ms = 0;
  double check_ms = 0;
  CheckReport check;
  /// Searches in which this kernel was the model's pick: results by race, the newest last, at most
  /// kMaxMeasuredTiles.
  std::vector<MeasuredTiles> searches = {};
};

/// The smallest and the largest values of symbols in units (value / multiple), as SizeExpr takes
/// them.
std::vector<int64_t> LeastUnits(const std::vector<DimRange>& symbols);
std::vector<int64_t> MostUnits(const std::vector<DimRange>& symbols);

/// Upper bound of the bytes that one run on `threads` threads allocates: the arena, the scratch of
/// all threads and the largest workspace of a kernel. Inputs, outputs and weights are not included,
/// nor is rounding to pages. For the largest values of the symbols, and the maximum over variants.
int64_t RunBytes(const Plan& plan, int threads);

/// Bytes of the prepared memory that a plan and its variants share.
int64_t PreparedBytes(const Plan& plan);

/// The tensors that a run reads or writes: those of launches and loops, without `prepare` and
/// variants. Positions in plan.tensors, ascending.
std::vector<int> TensorsOfRuns(const Plan& plan);

/// The number of places of all loops of a plan.
size_t PlacesOf(const Plan& plan);

/// By position in plan.launches: how often PlanTotals counts the launch. 1 outside of loops, else
/// the product of counted_passes of the loops around it, at most about 2^40.
std::vector<int64_t> CountedRuns(const Plan& plan);

/// Checks every position, size and offset of an untrusted plan, from the network or from disk. An
/// executor may rely on a plan that passes. InvalidArgument, naming the field, if it does not.
absl::Status Verify(const Plan& plan);

}  // namespace fusion
