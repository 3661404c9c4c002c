#include <algorithm>
#include <cmath>
#include <map>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/input/data.h"
#include "client/fusionctl/measure/output_summary.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/repro/repro_files.h"
#include "core/base/files/launcher.h"
#include "core/base/files/scratch.h"
#include "core/bundle/symbol_values.h"
#include "core/bundle/tolerance.h"
#include "core/check/reference_checker.h"
#include "core/compile/job_runner.h"
#include "core/compile/toolchain.h"
#include "core/device/host_isa.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/runtime/executor.h"
#include "core/schedule/lower/reference.h"

namespace fusion {
namespace {

/// One kernel of the archive, compiled here.
struct ReplayedKernel {
  const PlanKernel* planned = nullptr;
  absl::Status status;  // of compiler, linker and check
  std::string binary;
  CheckReport check;
  double compile_ms = 0;
  bool same_bytes = false;  // as the service's
};

struct Replay {
  std::vector<ReplayedKernel> kernels;
  std::string compiler;  // version of the one here
  std::string not_run;   // why the plan was not run; empty: it was
  std::vector<Difference> outputs;
  bool pass = true;
};

bool HasFlag(const Repro& repro, std::string_view name) {
  return std::any_of(repro.fields.begin(), repro.fields.end(),
                     [&](const KeyField& f) { return f.name == name && f.value == "1"; });
}

// The plan that launches a kernel of `plan` (itself or a variant), and the kernel's index in it.
std::pair<const Plan*, int> LauncherOf(const Plan& plan, size_t k) {
  const auto number = static_cast<int>(k);
  const bool own = std::any_of(plan.groups.begin(), plan.groups.end(),
                               [number](const PlanGroup& g) { return g.kernel == number; });
  for (const PlanVariant& variant : plan.variants) {
    if (own) break;
    const std::vector<PlanKernel>& kernels = variant.plan->kernels;
    for (size_t v = 0; v < kernels.size(); ++v) {
      if (kernels[v].key == plan.kernels[k].key) return {variant.plan.get(), static_cast<int>(v)};
    }
  }
  return {&plan, number};
}

// The symbol values for which the texts of a kernel were made. Not always the largest of this plan:
// equal kernels are compiled once, for a plan that may have other ranges. nullopt: the texts do not
// depend on values.
std::optional<std::vector<int64_t>> UnitsOfTexts(const Plan& plan, int kernel,
                                                 const KernelReference& reference) {
  const PlanLaunch* launch = nullptr;
  for (const std::vector<PlanLaunch>* launches : {&plan.prepare, &plan.launches}) {
    for (const PlanLaunch& l : *launches) {
      if (l.kernel == kernel && launch == nullptr) launch = &l;
    }
  }
  if (launch == nullptr || launch->tensors.size() != reference.params.size()) return std::nullopt;
  std::vector<std::pair<const PlanTensor*, Dims>> found;
  for (size_t p = 0; p < reference.params.size(); ++p) {
    const KernelReference::Param& param = reference.params[p];
    if (param.packed) continue;
    const Program& program = reference.program;
    const ValueId value =
        (param.output ? program.outputs : program.inputs)[static_cast<size_t>(param.index)];
    found.emplace_back(&plan.tensors[static_cast<size_t>(launch->tensors[p])],
                       program.value(value).type.shape.ToDims());
  }
  std::vector<int64_t> units = MostUnits(plan.symbols);
  for (const auto& [tensor, dims] : found) {
    if (tensor->dims.size() != dims.size()) return std::nullopt;
    for (size_t d = 0; d < dims.size() && !tensor->sizes.empty(); ++d) {
      const int symbol = tensor->sizes[d].AsSymbol();
      if (symbol >= 0) units[static_cast<size_t>(symbol)] = dims[d];
    }
  }
  const bool fits = std::all_of(found.begin(), found.end(), [&](const auto& of) {
    return DimsAt(*of.first, units) == of.second;
  });
  return fits ? std::optional(std::move(units)) : std::nullopt;
}

// The compile job of a kernel, made from its texts.
absl::StatusOr<CompileJob> JobOf(const Repro& repro, size_t k) {
  const PlanKernel& planned = repro.plan.kernels[k];
  const KernelTexts& texts = repro.kernels[k];
  CompileJob job{.key = planned.key, .symbol = planned.symbol, .source = texts.source};
  job.schedule = texts.schedule;
  job.label = planned.label;
  job.backend = planned.backend;
  ASSIGN_OR_RETURN(job.isa, ParseIsa(planned.isa));
  job.numerics = repro.plan.numerics;
  job.scratch_bytes = planned.scratch_bytes;
  job.workspace_bytes = planned.workspace_bytes;
  job.debug = HasFlag(repro, "debug");
  if (planned.sizes.empty()) {
    job.reference = texts.reference;
    return job;
  }
  ASSIGN_OR_RETURN(const KernelReference reference, ParseReference(texts.reference));
  const auto [plan, kernel] = LauncherOf(repro.plan, k);
  const std::optional<std::vector<int64_t>> units = UnitsOfTexts(*plan, kernel, reference);
  if (!units) return job;  // not compared by itself: only as part of the plan
  CheckedMember member{.sizes = {}, .schedule = texts.schedule, .reference = texts.reference};
  for (const SizeExpr& size : planned.sizes) {
    std::optional<int64_t> value = size.Evaluate(*units);
    if (!value) return InvalidArgument("kernel ", planned.symbol, ": a size is too large");
    member.sizes.push_back(*value);
  }
  job.members.push_back(std::move(member));
  return job;
}

// Compiles and checks every kernel.
absl::Status CompileAll(const Repro& repro, const std::string& scratch, Progress* progress,
                        Replay* out) {
  std::unique_ptr<CommandRunner> commands = MakeProcessRunner(SiblingProgram("fusion-exec"));
  ToolchainOptions options;
  options.scratch_dir = scratch;
  ASSIGN_OR_RETURN(const Toolchain toolchain, Toolchain::Open(options, *commands));
  out->compiler = toolchain.version();
  ReferenceChecker checker;
  JobRunner jobs(scratch, *commands, checker, [](std::string_view) {});
  const size_t count = repro.kernels.size();
  for (size_t k = 0; k < count; ++k) {
    progress->Show("compiling", static_cast<int64_t>(k), static_cast<int64_t>(count));
    WorkerJob work;
    ASSIGN_OR_RETURN(work.job, JobOf(repro, k));
    RETURN_IF_ERROR(toolchain.SupportsIsa(work.job.isa));
    work.compile_argv = toolchain.CompileArgv(work.job.isa, work.job.numerics, work.job.debug);
    work.link_argv = toolchain.LinkArgv();
    WorkerResult result = jobs.Run(work);
    out->pass = out->pass && result.status.ok();
    const bool same = Sha256(result.binary) == repro.kernels[k].content;
    out->kernels.push_back({.planned = &repro.plan.kernels[k],
                            .status = std::move(result.status),
                            .binary = std::move(result.binary),
                            .check = std::move(result.check),
                            .compile_ms = result.compile_ms,
                            .same_bytes = same});
  }
  return absl::OkStatus();
}

// Random weights whose sums over the first extent stay near 1, like trained ones.
HostTensor RandomWeight(const TensorType& type, uint64_t seed) {
  HostTensor out = RandomTensor(type, seed);
  const bool scaled = IsFloat(type.dtype) && out.dims().size() > 1;
  const double scale =
      scaled ? 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, out.dims()[0]))) : 1;
  for (int64_t i = 0; i < out.elements(); ++i) {
    if (scaled) out.SetDouble(i, out.GetDouble(i) * scale);
    if (IsInteger(type.dtype)) out.SetInt(i, out.GetInt(i) & 1);
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Executor>> LoadPlan(const Repro& repro, const Replay& replay) {
  std::vector<std::shared_ptr<const LoadedKernel>> kernels;
  for (const ReplayedKernel& kernel : replay.kernels) {
    ASSIGN_OR_RETURN(kernels.emplace_back(),
                     LoadKernel(kernel.planned->backend, kernel.binary, kernel.planned->symbol));
  }
  ExecutorOptions options;
  options.sample_latencies = false;
  return Executor::Create(repro.plan, std::move(kernels), options);
}

// Runs the plan and the evaluator on the same inputs and weights.
absl::Status RunPlan(const Repro& repro, uint64_t seed, Replay* out) {
  ASSIGN_OR_RETURN(const Graph graph, ParseGraph(repro.graph));
  std::vector<TensorId> weight_ids;
  for (size_t t = 0; t < graph.tensors().size(); ++t) {
    if (graph.tensors()[t].kind == TensorKind::kWeight) {
      weight_ids.push_back(static_cast<TensorId>(t));
    }
  }
  if (weight_ids.size() != repro.plan.weights.size() ||
      graph.inputs().size() != repro.plan.inputs.size()) {
    return InvalidArgument("graph.txt has ", graph.inputs().size(), " inputs and ",
                           weight_ids.size(), " weights; expected ", repro.plan.inputs.size(),
                           " and ", repro.plan.weights.size(), " as the plan");
  }
  std::map<TensorId, HostTensor> weights;
  for (TensorId id : weight_ids) {
    weights.emplace(id, RandomWeight(graph.tensor(id).type, seed + static_cast<uint64_t>(id)));
  }
  ASSIGN_OR_RETURN(const std::vector<HostTensor> inputs, RandomData(graph, seed));
  ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, LoadPlan(repro, *out));
  RETURN_IF_ERROR(executor->Prepare([&](int i) -> absl::StatusOr<const HostTensor*> {
    return &weights.at(weight_ids[static_cast<size_t>(i)]);
  }));
  ASSIGN_OR_RETURN(const std::vector<HostTensor> got, executor->Run(inputs));
  ASSIGN_OR_RETURN(
      const std::vector<HostTensor> wanted,
      Evaluate(graph, inputs,
               [&](TensorId id) -> absl::StatusOr<const HostTensor*> { return &weights.at(id); },
               {.threads = repro.plan.threads}));
  for (size_t i = 0; i < got.size(); ++i) {
    const Tolerance tolerance = ToleranceOf(repro.plan.numerics, wanted[i].dtype());
    out->outputs.push_back(Compare(got[i], wanted[i], tolerance));
    out->pass = out->pass && out->outputs.back().ok();
  }
  return absl::OkStatus();
}

Json ReplayJson(const Repro& repro, const Replay& replay) {
  Json kernels = Json::array();
  for (const ReplayedKernel& k : replay.kernels) {
    kernels.push_back({{"key", k.planned->key.ToHex()},
                       {"symbol", k.planned->symbol},
                       {"ops", k.planned->label},
                       {"ok", k.status.ok()},
                       {"error", Message(k.status)},
                       {"verified", k.check.verified},
                       {"max_rel", k.check.max_rel},
                       {"compile_ms", k.compile_ms},
                       {"same_bytes", k.same_bytes}});
  }
  Json outputs = Json::array();
  for (const Difference& d : replay.outputs) {
    outputs.push_back(DifferenceJson(d));
  }
  return {{"plan_key", repro.plan_key.ToHex()},
          {"written_by", repro.program},
          {"target", repro.plan.target},
          {"isa", repro.plan.isa},
          {"compiler", replay.compiler},
          {"kernels", kernels},
          {"outputs", outputs},
          {"not_run", replay.not_run},
          {"pass", replay.pass}};
}

std::string ReplayText(const Arguments& arguments, const Repro& repro, const Replay& replay) {
  Table kernels({{"kernel"},
                 {"compile", Table::kRight},
                 {"code"},
                 {"check"},
                 {"max|a-b|/max|b|", Table::kRight},
                 {"ops", Table::kCut}});
  std::string faults;
  for (const ReplayedKernel& k : replay.kernels) {
    kernels.Add({k.planned->symbol, HumanMilliseconds(k.compile_ms),
                 k.binary.empty() ? "none"
                 : k.same_bytes   ? "the same"
                                  : "other",
                 !k.status.ok()     ? "FAILED"
                 : k.check.verified ? "passed"
                                    : k.check.reason,
                 ShortNumber(k.check.max_rel), k.planned->label});
    if (k.status.ok()) continue;
    faults +=
        StrCat("\n", k.planned->symbol, " (", k.planned->label, "): ", Message(k.status), "\n");
  }
  std::string out = StrCat(Bold(arguments.replay), ": plan ", repro.plan_key.ToHex().substr(0, 16),
                           " of ", repro.program, " for ", repro.plan.target, " (", repro.plan.isa,
                           "), compiled by ", replay.compiler, "\n\n", kernels.ToString(), faults);
  if (!replay.not_run.empty()) return StrCat(out, "\nnot run: ", replay.not_run, "\n");
  Table outputs({{"output"},
                 {"max|a-b|", Table::kRight},
                 {"max|a-b|/max|b|", Table::kRight},
                 {"outside", Table::kRight}});
  for (size_t i = 0; i < replay.outputs.size(); ++i) {
    const Difference& d = replay.outputs[i];
    outputs.Add({StrCat(i), ShortNumber(d.max_abs), ShortNumber(d.max_rel), StrCat(d.outside)});
  }
  return StrCat(out, "\n", outputs.ToString(), "\n", replay.pass ? Good("PASS") : Bad("FAIL"),
                " against the reference evaluator, random inputs and weights, seed ",
                arguments.seed, "\n");
}

}  // namespace

absl::StatusOr<ExitCode> ReplayRepro(const Arguments& arguments, Progress* progress) {
  progress->Show("reading");
  absl::StatusOr<ReproFiles> files = ReadReproArchive(arguments.replay);
  if (!files.ok()) return BadInput(Annotate(files.status(), "--replay"));
  absl::StatusOr<Repro> repro = FromFiles(*files);
  if (!repro.ok()) {
    return BadInput(Annotate(repro.status(), StrCat("--replay ", Quote(arguments.replay))));
  }
  ASSIGN_OR_RETURN(const Scratch scratch, Scratch::Create("/tmp", "fusionctl-"));
  Replay replay;
  RETURN_IF_ERROR(CompileAll(*repro, scratch.path(), progress, &replay));
  absl::StatusOr<Isa> isa = ParseIsa(repro->plan.isa);
  if (!isa.ok() || !HostRuns(*isa)) {
    replay.not_run = StrCat("needs ", repro->plan.isa, ", this machine has ", HostIsaName());
  } else if (!replay.pass) {
    replay.not_run = "a kernel of it failed";
  } else {
    progress->Show("running and evaluating");
    RETURN_IF_ERROR(RunPlan(*repro, arguments.seed, &replay));
  }
  progress->Clear();
  if (arguments.json) {
    PrintJson(ReplayJson(*repro, replay));
  } else {
    Print(ReplayText(arguments, *repro, replay));
  }
  return replay.pass ? kExitOk : kExitMismatch;
}

}  // namespace fusion
