#include <CLI/CLI.hpp>
#include <functional>
#include <map>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/command_words.h"
#include "client/fusionctl/args/help.h"
#include "client/fusionctl/args/model_options.h"
#include "client/fusionctl/args/operator_commands.h"
#include "client/fusionctl/args/option_words.h"
#include "client/fusionctl/args/probe_options.h"
#include "client/fusionctl/args/service_options.h"
#include "client/fusionctl/args/top_options.h"
#include "core/base/files/access_limits.h"
#include "core/base/text/number_word.h"
#include "core/base/text/text.h"
#include "core/bundle/text.h"

namespace fusion {
namespace {

constexpr const char* kSummary =
    "fusionctl plans, runs and checks ONNX models as fused kernels.\n"
    "Without --server it starts an embedded fusiond on a private socket and stops it at the end.";

CLI::App* AddModelCommand(CLI::App* app, const char* name, const char* help, Arguments* a,
                          CommandKind kind, bool with_isa) {
  CLI::App* command = AddCommand(app, name, help, a, kind);
  AddModel(command, a);
  AddPlanOptions(command, a, with_isa);
  return command;
}

void AddPlan(CLI::App* app, Arguments* a) {
  CLI::App* plan = AddModelCommand(app, "plan", "groups, kernels, traffic and estimates of a model",
                                   a, CommandKind::kPlan, /*with_isa=*/true);
  plan->add_flag("--nodes", a->node_names, "list the nodes of each group");
  AddTarget(plan, a);
  plan->add_option(
          "--write-lock", a->write_lock,
          "also pin the plan: write its groups, tilings and digests to this file, for --lock")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  plan->add_flag("!--plan-only,!--no-compile", a->compile,
                 "estimates only, no compilation; required for a device without a code generator");
}

// The tolerances of comparisons.
void AddTolerances(CLI::App* app, Arguments* a) {
  app->add_option("--atol", a->atol, "absolute tolerance of floats; default 1e-5")
      ->check(CheckTolerance)
      ->type_name("A");
  app->add_option(
         "--rtol", a->rtol,
         "tolerance relative to max|b| of the tensor; default 1e-4, with --numerics fast 2^-6")
      ->check(CheckTolerance)
      ->type_name("R");
}

// Options about intermediate tensors.
void AddIntermediates(CLI::App* run, Arguments* a) {
  CLI::Option* compare =
      run->add_flag("--compare", a->compare,
                    "also compare every intermediate tensor, in order, with the reference "
                    "evaluator, and name the first node that differs");
  run->add_option("--reference", a->reference,
                  "compare with the tensors that --dump-tensors wrote to this directory instead")
      ->needs(compare)
      ->check(CheckNotEmpty)
      ->type_name("DIR");
  run->add_option("--dump-tensors", a->dump_tensors,
                  "write intermediate tensors to this directory as tensor_0.npy, ..., and "
                  "index.json, which describes them")
      ->check(CheckNotEmpty)
      ->type_name("DIR");
  run->add_option("--tensor", a->tensors,
                  "compare and write only this tensor, or the tensors of this node; may be given "
                  "more than once")
      ->allow_extra_args(false)
      ->check(CheckNotEmpty)
      ->type_name("NAME");
  AddTolerances(run, a);
}

// Options for runs without the service.
void AddResilience(CLI::App* run, Arguments* a) {
  CLI::Option* cache =
      run->add_option(
             "--cache", a->cache,
             "store plans and kernels in this directory for use when the service is unavailable")
          ->check(CheckNotEmpty)
          ->type_name("DIR");
  CLI::Option* user = run->add_flag("--user-cache", a->user_cache,
                                    "cache in $XDG_CACHE_HOME/fusiond, by default ~/.cache/fusiond")
                          ->excludes(cache);
  run->add_flag("--prefer-cache", a->prefer_cache,
                "with a cache: use cached plans without asking the service");
  CLI::Option* fallback =
      run->add_flag("--fallback", a->fallback,
                    "run op by op with the reference evaluator if no plan arrives in time");
  run->add_option("--load-deadline", a->load_deadline,
                  "with a cache or --fallback: time limit in seconds for plan and kernels, "
                  "including retries")
      ->check(CLI::Range(0.001, 86400.0))
      ->check(NumberError)
      ->capture_default_str()
      ->type_name("S");
  for (CLI::Option* option : {cache, user, fallback}) option->group("Service unavailable");
  run->get_option("--prefer-cache")->group("Service unavailable");
  run->get_option("--load-deadline")->group("Service unavailable");
}

void AddRun(CLI::App* app, Arguments* a) {
  CLI::App* run = AddModelCommand(app, "run", "runs a model and shows its outputs", a,
                                  CommandKind::kRun, /*with_isa=*/false);
  AddDataOptions(run, a);
  run->add_option(
         "--steps", a->steps,
         "also time this number of consecutive runs, each continuing with the --share buffers of "
         "the previous one, like a decoder; --range leaves their dim open")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  run->add_option("--repeat", a->repeat, "number of consecutive timed runs")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str()
      ->type_name("N");
  run->add_option("--out", a->out, "write the outputs to this directory as output_0.pb, ...")
      ->check(CheckNotEmpty)
      ->type_name("DIR");
  run->add_flag("--kernels", a->per_kernel, "also show time, estimate and rates of each kernel");
  run->add_option("--trace", a->trace,
                  "also write a timeline of the plan and of one kernel per node to this file, for "
                  "ui.perfetto.dev or chrome://tracing")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  run->add_flag("--npy", a->npy, "write the outputs as output_0.npy, ...")->needs("--out");
  AddIntermediates(run, a);
  AddResilience(run, a);
}

void AddBench(CLI::App* app, Arguments* a) {
  CLI::App* bench = AddModelCommand(
      app, "bench", "measures fused against op-by-op kernels in pairs of runs in one process", a,
      CommandKind::kBench, /*with_isa=*/false);
  AddDataOptions(bench, a);
  CLI::Option* model = bench->get_option("MODEL")->required(false);
  CLI::Option* suite = bench->add_flag(
      "--suite", a->suite,
      "instead of a model: six small built-in ones, with one thread and with all, or with "
      "--threads");
  suite->excludes(model);
  // The suite has its own models, data and numerics.
  for (const char* name :
       {"--fusion", "--numerics", "--batch", "--bind", "--range", "--share", "--strides", "--fix",
        "--as-input", "--allow-fused", "--lock", "--data", "--input", "--seed"}) {
    suite->excludes(bench->get_option(name));
  }
  bench
      ->add_option("--seconds", a->seconds,
                   "duration in seconds, at most 10000 pairs of runs; default: 5, or 2 for each "
                   "row of --suite")
      ->check(CLI::Range(0.01, 86400.0))
      ->check(NumberError)
      ->type_name("S");
  bench
      ->add_option("--pairs", a->pairs,
                   "exact number of pairs of runs, regardless of their duration")
      ->check(CLI::Range(1, kMaxBenchPairs))
      ->type_name("N");
  bench->add_option("--warmup", a->warmup, "pairs of warm-up runs, which do not count")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->type_name("N");
  suite->excludes(bench->add_flag("--kernels", a->per_kernel,
                                  "also show time, estimate and rates of each kernel"));
  bench->add_flag("!--no-report", a->report,
                  "do not report kernel times to the service of --server or --store");
}

void AddVerify(CLI::App* app, Arguments* a) {
  CLI::App* verify = AddModelCommand(
      app, "verify", "compares outputs with expected outputs or the reference evaluator", a,
      CommandKind::kVerify, /*with_isa=*/true);
  AddDataOptions(verify, a);
  AddTolerances(verify, a);
}

void AddShow(CLI::App* app, Arguments* a) {
  CLI::App* show =
      AddCommand(app, "show", "shows one compilation stage of a model", a, CommandKind::kShow);
  AddModelOrKernel(show, a);
  AddPlanOptions(show, a, /*with_isa=*/true);
  AddChoice(show, "WHAT", &a->what, kShowWhats, "stage", " after the MODEL")->required();
  AddChoice(show, "--format", &a->format, kShowFormats,
            "output format (dot: graph, smg and plan only)");
}

// For commands that take a plan key or a model: the options that `add` adds say how a model is
// planned, and one of them that is given is remembered.
void AddModelOptions(CLI::App* app, Arguments* a, CommandKind kind,
                     const std::function<void()>& add) {
  const size_t before = app->get_options().size();
  add();
  std::vector<CLI::Option*> planning = app->get_options();
  planning.erase(planning.begin(), planning.begin() + static_cast<std::ptrdiff_t>(before));
  app->callback([a, kind, planning] {
    a->command = kind;
    for (const CLI::Option* option : planning) {
      if (option->count() > 0 && a->model_option.empty()) a->model_option = option->get_name();
    }
  });
}

void AddExplain(CLI::App* app, Arguments* a) {
  CLI::App* explain =
      AddCommand(app, "explain", "explains the fusion decisions of a plan, with numbers", a,
                 CommandKind::kExplain);
  explain
      ->add_option("PLAN", a->subject,
                   "a model, a plan key (8 digits or more), or a file of explain --save")
      ->required()
      ->check(CheckNotEmpty)
      ->type_name("KEY|FILE|FILE.onnx");
  AddModelOptions(explain, a, CommandKind::kExplain, [a, explain] {
    AddPlanOptions(explain, a, /*with_isa=*/true);
    AddTarget(explain, a);
  });
  CLI::Option* why =
      explain
          ->add_option("--why,--why-not", a->why,
                       "explain why this node is in its kernel, or why two nodes share a kernel or "
                       "not; by name, unique part of a name, or position such as #12")
          ->expected(1, 2)
          ->check(CheckNotEmpty)
          ->type_name("NODE");
  explain->add_option("--group", a->group, "explain this group of the plan")
      ->check(CLI::Range(0, 1 << 30))
      ->excludes(why)
      ->type_name("N");
  explain->add_flag(
      "--miss", a->miss,
      "explain why the service had no plan of this model: the nearest stored plan and its "
      "differences");
  explain->add_flag("--candidates", a->candidates, "also show the candidates of the search");
  explain
      ->add_option(
          "--dot", a->dot,
          "also write the graph before and after, groups coloured, to this file; models only")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  explain
      ->add_option("--save", a->save,
                   "also write the full explanation to this file, for explain and diff")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  explain->add_option("--svg", a->svg, "like --dot, but as an SVG picture; requires graphviz")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
}

void AddDiff(CLI::App* app, Arguments* a) {
  CLI::App* diff =
      AddCommand(app, "diff", "explains the differences between two plans of one graph", a,
                 CommandKind::kDiff);
  for (auto [name, field] : {std::pair{"PLAN", &a->subject}, std::pair{"OTHER", &a->other}}) {
    diff->add_option(name, *field,
                     "a plan key (8 digits or more), a model, or a file of explain --save")
        ->required()
        ->check(CheckNotEmpty)
        ->type_name("KEY|FILE|FILE.onnx");
  }
  AddModelOptions(diff, a, CommandKind::kDiff, [a, diff] {
    AddPlanOptions(diff, a, /*with_isa=*/true);
    AddTarget(diff, a);
  });
}

void AddExport(CLI::App* app, Arguments* a) {
  CLI::App* command = AddModelCommand(
      app, "export", "writes a model whose nodes are the groups of its plan, for any runtime", a,
      CommandKind::kExport, /*with_isa=*/true);
  // The only form so far; it has a name so that others can be added.
  command
      ->add_flag("--fused", a->fused,
                 "each group becomes a node of domain fusiond that calls a function with its nodes")
      ->required();
  command
      ->add_option("--out", a->out,
                   "output file; for a model with external data, in its directory or above")
      ->required()
      ->check(CheckNotEmpty)
      ->type_name("FILE.onnx");
  AddTarget(command, a);
  command->add_flag("!--plan-only,!--no-compile", a->compile,
                    "no compilation: nodes have the digests of cached kernels only");
}

void AddRepro(CLI::App* app, Arguments* a) {
  CLI::App* repro = AddCommand(
      app, "repro", "writes a plan as a runnable archive without weights, or replays one", a,
      CommandKind::kRepro);
  CLI::Option* plan = repro
                          ->add_option("PLAN", a->subject,
                                       "a model, or the key of a stored plan (8 digits or more)")
                          ->check(CheckNotEmpty)
                          ->type_name("KEY|FILE.onnx");
  CLI::Option* out = repro
                         ->add_option("-o,--out", a->out,
                                      "output file, a .tar.gz of plan, graph, sources, schedules")
                         ->needs(plan)
                         ->check(CheckNotEmpty)
                         ->type_name("FILE");
  repro
      ->add_option("--replay", a->replay,
                   "compile, check and run the plan of this file, without a service. It runs code "
                   "from the file: use trusted files only")
      ->excludes(plan)
      ->excludes(out)
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  repro->add_option("--seed", a->seed, "seed of the numbers of --replay")
      ->check(CheckSeed)
      ->type_name("N");
  AddModelOptions(repro, a, CommandKind::kRepro,
                  [a, repro] { AddPlanOptions(repro, a, /*with_isa=*/true); });
}

void AddReport(CLI::App* app, Arguments* a) {
  CLI::App* report =
      AddCommand(app, "report", "compares measured latencies of plans with the estimates", a,
                 CommandKind::kReport);
  report
      ->add_option("PLAN", a->subject,
                   "a plan key (8 digits or more) or a model; default: every plan with reported "
                   "latencies")
      ->check(CheckNotEmpty)
      ->type_name("KEY|FILE.onnx");
  AddModelOptions(report, a, CommandKind::kReport, [a, report] {
    AddPlanOptions(report, a, /*with_isa=*/true);
    report->add_option("--data", a->data, "for a model: take its symbolic dims from this data")
        ->check(CheckNotEmpty)
        ->type_name("DIR");
  });
  report
      ->add_flag("--accuracy", a->accuracy,
                 "how far the estimates are from everything that was measured, by device, and the "
                 "constants that would fit better")
      ->excludes(report->get_option("PLAN"));
  report->add_option("--html", a->html, "also write a page with charts to this file")
      ->excludes(report->get_option("--accuracy"))
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  report
      ->add_option("--markdown", a->markdown,
                   "also write the report in Markdown to this file; -: to stdout, instead of the "
                   "text")
      ->excludes(report->get_option("--accuracy"))
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  CLI::Option* post =
      report
          ->add_option("--post", a->post,
                       "send the reports in this file instead: JSON objects as in proto/README.md, "
                       "one after the other or in an array; - is standard input")
          ->check(CheckNotEmpty)
          ->type_name("FILE");
  for (const char* other : {"PLAN", "--accuracy", "--html", "--markdown"}) {
    post->excludes(report->get_option(other));
  }
}

void AddTune(CLI::App* app, Arguments* a) {
  CLI::App* tune = AddModelCommand(
      app, "tune", "times other tiles of a model's kernels for some seconds, keeps what is faster",
      a, CommandKind::kTune, /*with_isa=*/true);
  tune->remove_option(tune->get_option("--lock"));  // which leaves nothing to try
  tune->remove_option(tune->get_option("--opt-level"));
  tune->add_option("--seconds", a->seconds,
                   "time for measuring, after the kernels are compiled; default: that of the level")
      ->check(CLI::Range(1, SecondsOfLevel(kMaxOptLevel)))
      ->check(NumberError)
      ->type_name("S");
  tune->add_option(
          "--opt-level", a->options.opt_level,
          "other tiles of each kernel: 1 up to 3 in 10 s, 2 up to 7 in 60 s, 3 up to 15 in "
          "240 s; default: the lowest that takes --seconds, or 2")
      ->check(CLI::Range(1, kMaxOptLevel))
      ->type_name("1..3");
}

void AddCommands(CLI::App* app, Arguments* a) {
  AddPlan(app, a);
  AddRun(app, a);
  AddBench(app, a);
  AddVerify(app, a);
  AddShow(app, a);
  AddModelCommand(app, "kernels", "the compiled kernels of a model and their checks", a,
                  CommandKind::kKernels, /*with_isa=*/true);
  AddExport(app, a);
  AddExplain(app, a);
  AddDiff(app, a);
  AddRepro(app, a);
  AddReport(app, a);
  AddTune(app, a);
  AddProbe(app, a);
  CLI::App* list = AddCommand(app, "list", "lists the stored plans of a service, newest first", a,
                              CommandKind::kList);
  list->add_option("--limit", a->limit, "maximum number of plans; default: all")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  list->add_flag("--full", a->full_keys, "show full keys (64 digits)");

  CLI::App* capabilities =
      AddCommand(app, "capabilities", "devices, operators and limits of a service", a,
                 CommandKind::kCapabilities);
  capabilities->add_flag("--ops", a->ops, "list every operator and its opsets");

  AddCommand(app, "status", "availability and round-trip time of the service", a,
             CommandKind::kStatus);
  AddTopOptions(AddCommand(app, "top", kTopHelp, a, CommandKind::kTop), a);
  AddEpochs(app, a);

  AddToken(app, a);
  AddStore(app, a);

  CLI::App* completion = AddLocalCommand(app, "completion", "prints a shell completion script", a,
                                         CommandKind::kCompletion);
  AddChoice(completion, "SHELL", &a->shell, kShells, "target shell")->required();
}

}  // namespace

std::unique_ptr<CLI::App> MakeCommandLine(Arguments* arguments) {
  auto app = std::make_unique<CLI::App>(kSummary, "fusionctl");
  FormatHelp(app.get());
  app->footer(HelpFooter(""));
  app->set_version_flag("--version", "fusionctl " FUSION_VERSION);
  app->require_subcommand(1);
  AddCommands(app.get(), arguments);
  return app;
}

}  // namespace fusion
