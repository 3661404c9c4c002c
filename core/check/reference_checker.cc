#include "core/check/reference_checker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "core/check/forgiving.h"
#include "core/check/kernel_run.h"
#include "core/device/host_isa.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/graph/program/half_precision.h"

namespace fusion {
namespace {

CheckReport NotCompared(std::string reason) {
  CheckReport report;
  report.reason = std::move(reason);
  return report;
}

// Boxes of every output at `place` (0: begin, 1: end, per dim), as large as `points` iteration
// points allow.
std::vector<Box> BoxesAt(const Program& program, const std::vector<double>& place, double points) {
  std::vector<Dims> extents;
  std::vector<Dims> sizes;
  for (ValueId v : program.outputs) {
    extents.push_back(program.value(v).type.shape.ToDims());
    Dims one = extents.back();
    for (int64_t& size : one) size = std::min<int64_t>(size, 1);
    sizes.push_back(std::move(one));
  }
  auto boxes = [&](const std::vector<Dims>& of_size) {
    std::vector<Box> result;
    for (size_t o = 0; o < of_size.size(); ++o) {
      Box box{Dims(of_size[o].size()), of_size[o]};
      for (size_t d = 0; d < of_size[o].size(); ++d) {
        double room = static_cast<double>(extents[o][d] - of_size[o][d]);
        box.begin[d] = static_cast<int64_t>(place[d % place.size()] * room + 0.5);
        box.end[d] += box.begin[d];
      }
      result.push_back(std::move(box));
    }
    return result;
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t o = 0; o < sizes.size(); ++o) {
      for (size_t d = sizes[o].size(); d-- > 0;) {
        if (sizes[o][d] == extents[o][d]) continue;
        std::vector<Dims> larger = sizes;
        larger[o][d] = std::min(sizes[o][d] * 2, extents[o][d]);
        if (EvaluationPoints(program, boxes(larger)) > points) continue;
        sizes = std::move(larger);
        grown = true;
      }
    }
  }
  return boxes(sizes);
}

// Limit for all samples of one set of inputs together, in multiples of CheckOptions::points. A
// kernel whose cheapest sample exceeds it is not compared.
constexpr double kMostPoints = 100;

// The samples to compare, each with a box per output. `packed`: an output is a packed copy, which
// is compared as a whole.
std::vector<std::vector<Box>> SampleBoxes(const Program& program, const CheckOptions& options,
                                          bool packed) {
  std::vector<Box> whole;
  for (ValueId v : program.outputs) {
    whole.push_back(Box::Whole(program.value(v).type.shape.ToDims()));
  }
  if (packed || EvaluationPoints(program, whole) <= options.points) return {whole};
  std::mt19937_64 random(7);
  std::vector<std::vector<Box>> samples;
  double spent = 0;
  for (int i = 0; i < options.boxes; ++i) {
    std::vector<double> place(8, i == 0 ? 1 : 0);
    for (double& p : place) p = i < 2 ? p : static_cast<double>(random() % 1000) / 1000;
    std::vector<Box> boxes = BoxesAt(program, place, options.points / options.boxes);
    spent += EvaluationPoints(program, boxes);
    if (!samples.empty() && spent > kMostPoints * options.points) break;
    samples.push_back(std::move(boxes));
  }
  return samples;
}

HostTensor Cut(const HostTensor& from, const Box& box) {
  HostTensor part(from.dtype(), box.Extents());
  Dims strides = RowMajorStrides(from.dims());
  Dims index = box.begin;
  int64_t size = DTypeBytes(from.dtype());
  for (int64_t e = 0; e < part.elements(); ++e) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    std::copy_n(from.bytes() + at * size, size, part.bytes() + e * size);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < box.end[d]) break;
      index[d] = box.begin[d];
    }
  }
  return part;
}

bool HasPackedOutput(const KernelReference& reference) {
  return std::any_of(reference.params.begin(), reference.params.end(),
                     [](const auto& p) { return p.output && p.packed; });
}

// Iteration points of the cheapest sample.
double LeastPoints(const KernelReference& reference, const CheckOptions& options) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<Box>& boxes :
       SampleBoxes(reference.program, options, HasPackedOutput(reference))) {
    least = std::min(least, EvaluationPoints(reference.program, boxes));
  }
  return least;
}

// True if the expression has a discontinuous function: two correct roundings of its argument may
// lie on different sides of a jump and give different results.
bool Jumps(const Expr& e, std::set<const void*>* seen) {
  if (!seen->insert(e.id()).second) return false;
  switch (e.op()) {
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
    case ScalarOp::kRound:
    case ScalarOp::kSign:
    case ScalarOp::kMod:
    case ScalarOp::kEq:
    case ScalarOp::kNe:
    case ScalarOp::kLt:
    case ScalarOp::kLe:
    case ScalarOp::kGt:
    case ScalarOp::kGe:
    case ScalarOp::kBitCast:
      return true;
    case ScalarOp::kCast:
      // The steps of a narrow float are as large as those of an integer.
      if (!IsFloat(e.type()) || IsNarrowFloat(e.type())) return true;
      break;
    default:
      break;
  }
  return std::any_of(e.args().begin(), e.args().end(),
                     [&](const Expr& arg) { return Jumps(arg, seen); });
}

// Kinds of inputs, in messages.
constexpr std::string_view kRandom = "random values";
constexpr std::string_view kSpecial = "special values";
constexpr std::string_view kSingleNaN = "a single NaN";

// Maximum number of inputs in which a single NaN is tried.
constexpr size_t kMostNaNs = 4;

// One kernel, compared on one set of inputs after the other.
class Comparison {
 public:
  Comparison(const LoadedKernel& kernel, const Schedule& schedule, const KernelReference& reference,
             const CheckOptions& options)
      : kernel_(kernel),
        schedule_(schedule),
        reference_(reference),
        options_(options),
        of_rounded_(OutputsOfRoundedFactors(reference.program)) {
    // Only computed, hence rounded, arguments can lie on the other side of a jump.
    const Program& program = reference.program;
    for (const LoopOp& op : program.ops) {
      bool computed = std::any_of(op.inputs.begin(), op.inputs.end(),
                                  [&](ValueId v) { return program.value(v).producer != kNoLoop; });
      std::set<const void*> seen;
      jumps_ |= computed && op.kind == LoopOp::kLoop && Jumps(op.body.value, &seen);
    }
  }

  absl::Status Run(uint64_t seed, bool special) {
    const Program& program = reference_.program;
    std::vector<HostTensor> inputs = RandomInputs(program, seed, special);
    std::optional<Program> doubtful;
    if (special && schedule_.loose) doubtful = WithInfiniteSumsUnknown(program);
    ASSIGN_OR_RETURN(std::vector<HostTensor> got, Run(inputs));
    RETURN_IF_ERROR(CompareInPlace(inputs, got));
    for (const std::vector<Box>& boxes :
         SampleBoxes(program, options_, HasPackedOutput(reference_))) {
      absl::StatusOr<std::vector<HostTensor>> wanted = Evaluate(program, boxes, inputs);
      if (absl::IsInvalidArgument(wanted.status())) {
        // The model does not allow these values, for example computed indices out of range.
        if (!special) refused_ = std::string(Message(wanted.status()));
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(wanted.status());
      std::vector<HostTensor> doubts;
      if (doubtful) {
        ASSIGN_OR_RETURN(doubts, Evaluate(*doubtful, boxes, inputs));
      }
      auto compare = [&](size_t o) {
        return CompareOutput(o, got[o], (*wanted)[o], boxes[o], special ? kSpecial : kRandom,
                             doubtful ? &doubts[o] : nullptr);
      };
      for (size_t o = 0; o < wanted->size(); ++o) {
        absl::Status equal = compare(o);
        if (!equal.ok() && special && IsFloat((*wanted)[o].dtype())) {
          RETURN_IF_ERROR(ForgiveRounding(boxes, inputs, o, got[o], &(*wanted)[o]));
          equal = compare(o);
        }
        RETURN_IF_ERROR(equal);
      }
    }
    return absl::OkStatus();
  }

  // With special values in many places a schedule may overlook some, and most results cannot be
  // judged. A single NaN must reach every result that depends on the number it replaces.
  absl::Status RunSingleNaNs(uint64_t seed) {
    if (!MayOverlook()) return absl::OkStatus();
    const Program& program = reference_.program;
    size_t tried = 0;
    for (size_t i = 0; i < program.inputs.size() && tried < kMostNaNs; ++i) {
      const TensorType& type = program.value(program.inputs[i]).type;
      if (!IsFloat(type.dtype) || NumElements(type.shape.ToDims()) == 0) continue;
      RETURN_IF_ERROR(RunSingleNaN(seed, i));
      ++tried;
    }
    return absl::OkStatus();
  }

  CheckReport TakeReport() {
    if (!refused_.empty()) return NotCompared(StrCat("no values to compare on: ", refused_));
    report_.verified = true;
    return std::move(report_);
  }

 private:
  absl::StatusOr<std::vector<HostTensor>> Run(const std::vector<HostTensor>& inputs,
                                              bool in_place = false) const {
    return RunKernel(kernel_, schedule_, reference_, inputs,
                     {.in_place = in_place, .sizes = &options_.sizes});
  }

  // True if the schedule may skip what a mask hides, and with it a NaN that the evaluator
  // multiplies by 0.
  bool MayOverlook() const { return schedule_.SkipsMasked() || schedule_.loose; }

  static absl::StatusOr<std::vector<HostTensor>> Evaluate(const Program& program,
                                                          const std::vector<Box>& boxes,
                                                          const std::vector<HostTensor>& inputs) {
    const std::vector<ValueId>& of = program.inputs;
    return EvaluateBoxes(program, boxes, [&](ValueId v) {
      auto at = std::find(of.begin(), of.end(), v);
      return at == of.end() ? nullptr : &inputs[static_cast<size_t>(at - of.begin())];
    });
  }

  // Replaces elements of `wanted` by those of `got` where the rounding of sums, or underflow,
  // decides which infinity or NaN results.
  absl::Status ForgiveRounding(const std::vector<Box>& boxes, const std::vector<HostTensor>& inputs,
                               size_t output, const HostTensor& got, HostTensor* wanted) {
    const HostTensor part = Cut(got, boxes[output]);
    const HostTensor before = *wanted;
    for (const Program& other :
         {WithSumsMoved(reference_.program, -4), WithSumsMoved(reference_.program, 4),
          WithUnderflowAsZero(reference_.program)}) {
      ASSIGN_OR_RETURN(std::vector<HostTensor> after, Evaluate(other, boxes, inputs));
      *wanted = ForgivingUnlikeInfinities(*wanted, part, before, after[output]);
    }
    return absl::OkStatus();
  }

  absl::Status RunSingleNaN(uint64_t seed, size_t input) {
    const std::vector<HostTensor> before = RandomInputs(reference_.program, seed, false);
    // Not near a border, where masks hide nearly everything or nothing.
    int64_t at = before[input].elements() / 3;
    auto with = [&](double number) {
      std::vector<HostTensor> inputs = before;
      inputs[input].SetDouble(at, number);
      return inputs;
    };
    const std::vector<HostTensor> after = with(before[input].GetDouble(at) + 1);
    const std::vector<HostTensor> special = with(std::numeric_limits<double>::quiet_NaN());
    ASSIGN_OR_RETURN(std::vector<HostTensor> got, Run(special));
    for (const std::vector<Box>& boxes :
         SampleBoxes(reference_.program, options_, HasPackedOutput(reference_))) {
      std::vector<std::vector<HostTensor>> results;
      for (const std::vector<HostTensor>* inputs : {&before, &after, &special}) {
        absl::StatusOr<std::vector<HostTensor>> result =
            Evaluate(reference_.program, boxes, *inputs);
        if (absl::IsInvalidArgument(result.status())) return absl::OkStatus();
        RETURN_IF_ERROR(result.status());
        results.push_back(*std::move(result));
      }
      for (size_t o = 0; o < got.size(); ++o) {
        HostTensor wanted =
            ForgivingWhereEqual(results[2][o], Cut(got[o], boxes[o]), results[0][o], results[1][o]);
        RETURN_IF_ERROR(CompareOutput(o, got[o], wanted, boxes[o], kSingleNaN));
      }
    }
    return absl::OkStatus();
  }

  // Running in place must give the same bits.
  absl::Status CompareInPlace(const std::vector<HostTensor>& inputs,
                              const std::vector<HostTensor>& apart) {
    if (schedule_.may_alias.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::vector<HostTensor> together, Run(inputs, /*in_place=*/true));
    for (size_t o = 0; o < apart.size(); ++o) {
      if (together[o].byte_view() != apart[o].byte_view()) {
        return Internal("output ", o, " changes when it shares the memory of an input");
      }
    }
    return absl::OkStatus();
  }

  Tolerance ToleranceOfOutput(size_t output, DType dtype) const {
    return of_rounded_[output] ? RoundedTolerance(dtype) : DefaultTolerance(dtype);
  }

  // The param that holds an output.
  size_t ParamOf(size_t output) const {
    for (size_t p = 0; p < reference_.params.size(); ++p) {
      const KernelReference::Param& param = reference_.params[p];
      if (param.output && static_cast<size_t>(param.index) == output) return p;
    }
    return reference_.params.size();
  }

  // `doubtful`: not finite where a loose schedule may have anything; null: nowhere.
  absl::Status CompareOutput(size_t output, const HostTensor& got, const HostTensor& wanted,
                             const Box& box, std::string_view inputs,
                             const HostTensor* doubtful = nullptr) {
    size_t p = ParamOf(output);
    if (p == reference_.params.size()) return Internal("no param holds output ", output);
    const KernelReference::Param& param = reference_.params[p];
    if (param.packed) {
      // A copy must have identical bytes, padding included.
      ASSIGN_OR_RETURN(HostTensor stored, ToStorage(schedule_.buffer(static_cast<BufferId>(p)),
                                                    reference_, param, wanted));
      if (stored.byte_view() == got.byte_view()) return absl::OkStatus();
      return Internal("packed output ", output, " is not the copy it should be");
    }
    HostTensor part = Cut(got, box);
    if (part.dtype() == DType::kBool && std::any_of(part.bytes(), part.bytes() + part.byte_size(),
                                                    [](std::byte b) { return b > std::byte{1}; })) {
      return Internal("output ", output, " holds a bool that is neither 0 nor 1");
    }
    const bool overlooks = inputs == kSpecial && IsFloat(wanted.dtype()) && MayOverlook();
    const HostTensor forgiven = !overlooks            ? wanted
                                : doubtful != nullptr ? ForgivingDoubtful(wanted, part, *doubtful)
                                                      : ForgivingNaN(wanted, part);
    Difference d = Compare(part, forgiven, ToleranceOfOutput(output, wanted.dtype()));
    if (inputs == kRandom) {
      report_.elements += wanted.elements();
      report_.outside += d.outside;
      report_.max_abs = std::max(report_.max_abs, d.max_abs);
      report_.max_rel = std::max(report_.max_rel, d.max_rel);
    }
    // At most one element in a thousand may sit on a jump.
    int64_t allowed = jumps_ ? 1 + wanted.elements() / 1000 : 0;
    if (!d.other_type && d.outside <= allowed) return absl::OkStatus();
    if (d.other_type) return Internal("output ", output, " is of another type");
    return Internal("output ", output, " on ", inputs, ": ", d.outside, " of ", wanted.elements(),
                    " elements differ (max |a-b| ", d.max_abs, "); element ", d.first_outside,
                    " of the box at ", DimsToString(box.begin), " is ",
                    part.GetDouble(d.first_outside), ", expected ",
                    wanted.GetDouble(d.first_outside));
  }

  const LoadedKernel& kernel_;
  const Schedule& schedule_;
  const KernelReference& reference_;
  const CheckOptions& options_;
  const std::vector<bool> of_rounded_;  // by output
  bool jumps_ = false;
  std::string refused_;  // why the evaluator has no result for random values
  CheckReport report_;
};

}  // namespace

absl::StatusOr<CheckReport> CheckKernel(const LoadedKernel& kernel, const Schedule& schedule,
                                        const KernelReference& reference,
                                        const CheckOptions& options) {
  if (ParamBytes(schedule) > options.max_bytes) {
    return NotCompared(StrCat("needs ", ParamBytes(schedule) >> 20, " MiB of test values; limit ",
                              options.max_bytes >> 20, " MiB"));
  }
  double points = LeastPoints(reference, options);
  if (points > kMostPoints * options.points) {
    return NotCompared(
        StrCat("one sample takes ", points / 1e6, " million points of the evaluator"));
  }
  Comparison comparison(kernel, schedule, reference, options);
  RETURN_IF_ERROR(comparison.Run(1, false));
  if (options.special_values) {
    RETURN_IF_ERROR(comparison.Run(2, true));
    RETURN_IF_ERROR(comparison.RunSingleNaNs(3));
  }
  return comparison.TakeReport();
}

namespace {

// CheckKernel for each member. OK if every member that can be compared is right; the report sums
// them up.
absl::StatusOr<CheckReport> CheckMembers(const LoadedKernel& kernel,
                                         const std::vector<CheckedMember>& members,
                                         const CheckOptions& options) {
  CheckReport all;
  for (const CheckedMember& member : members) {
    ASSIGN_OR_RETURN(Schedule schedule, ParseSchedule(member.schedule));
    ASSIGN_OR_RETURN(KernelReference reference, ParseReference(member.reference));
    CheckOptions own = options;
    own.sizes = member.sizes;
    absl::StatusOr<CheckReport> report = CheckKernel(kernel, schedule, reference, own);
    if (!report.ok()) {
      return Annotate(report.status(), StrCat("with sizes ", StrJoin(member.sizes, ", ")));
    }
    if (!report->verified) {
      all.reason = report->reason;
      continue;
    }
    all.verified = true;
    all.elements += report->elements;
    all.outside += report->outside;
    all.max_abs = std::max(all.max_abs, report->max_abs);
    all.max_rel = std::max(all.max_rel, report->max_rel);
  }
  if (all.verified) all.reason.clear();
  return all;
}

// The kernel must not need more memory than the plan says.
absl::Status CheckMemory(const FusionKernelDescriptor& d, const CompileJob& job) {
  if (d.scratch_bytes <= static_cast<uint64_t>(job.scratch_bytes) &&
      d.workspace_bytes <= static_cast<uint64_t>(job.workspace_bytes)) {
    return absl::OkStatus();
  }
  return Internal("descriptor: ", d.scratch_bytes, " bytes of scratch and ", d.workspace_bytes,
                  " of workspace; expected at most ", job.scratch_bytes, " and ",
                  job.workspace_bytes);
}

}  // namespace

absl::StatusOr<CheckReport> ReferenceChecker::Check(const CompileJob& job,
                                                    std::string_view shared_object) {
  if (!HostRuns(job.isa)) {
    return NotCompared(StrCat("needs ", IsaName(job.isa), ", this machine has ", HostIsaName()));
  }
  auto loaded = LoadKernel(job.backend, shared_object, job.symbol);
  // Hand-written code fails to load because of a fault of its own, not because of another version
  // of our ABI.
  if (!loaded.ok() && !job.registered.empty()) return Internal(Message(loaded.status()));
  ASSIGN_OR_RETURN(auto kernel, std::move(loaded));
  if (kernel->descriptor().isa != IsaName(job.isa)) {
    return Internal("descriptor: isa ", Quote(kernel->descriptor().isa), "; expected ",
                    Quote(IsaName(job.isa)));
  }
  RETURN_IF_ERROR(CheckMemory(kernel->descriptor(), job));
  if (!job.members.empty()) return CheckMembers(*kernel, job.members, options_);
  if (job.reference.empty()) return NotCompared("not compared: no reference");
  ASSIGN_OR_RETURN(Schedule schedule, ParseSchedule(job.schedule));
  ASSIGN_OR_RETURN(KernelReference reference, ParseReference(job.reference));
  // The same for every numerics contract: kernels of one key are shared between contracts.
  return CheckKernel(*kernel, schedule, reference, options_);
}

}  // namespace fusion
