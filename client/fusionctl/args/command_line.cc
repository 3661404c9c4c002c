#include <CLI/CLI.hpp>
#include <functional>
#include <map>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/help.h"
#include "client/fusionctl/args/model_options.h"
#include "client/fusionctl/args/option_words.h"
#include "core/base/files/access_limits.h"
#include "core/base/text/number_word.h"
#include "core/base/text/text.h"
#include "core/bundle/text.h"

namespace fusion {
namespace {

const Choices<ShowWhat> kShowWhats = {
    {"graph", ShowWhat::kGraph}, {"program", ShowWhat::kProgram},   {"smg", ShowWhat::kSmg},
    {"plan", ShowWhat::kPlan},   {"schedule", ShowWhat::kSchedule}, {"source", ShowWhat::kSource}};

const Choices<ShowFormat> kShowFormats = {
    {"text", ShowFormat::kText}, {"json", ShowFormat::kJson}, {"dot", ShowFormat::kDot}};

const Choices<StoreAction> kStoreActions = {
    {"stats", StoreAction::kStats},     {"verify", StoreAction::kVerify},
    {"compact", StoreAction::kCompact}, {"pin", StoreAction::kPin},
    {"unpin", StoreAction::kUnpin},     {"invalidate", StoreAction::kInvalidate},
    {"export", StoreAction::kExport},   {"import", StoreAction::kImport}};

const Choices<Shell> kShells = {
    {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};

constexpr const char* kSummary =
    "fusionctl plans, runs and checks ONNX models as fused kernels.\n"
    "Without --server it starts a fusiond of its own on a private socket and stops it at the end.";

// Credentials for the fusiond of --server, and how to verify the server.
void AddConnectionOptions(CLI::App* app, CLI::Option* server, Arguments* a) {
  CLI::Option* ca =
      app->add_option("--ca", a->ca, "speak TLS; the server's certificate is of this CA (PEM)")
          ->check(CheckNotEmpty)
          ->type_name("FILE");
  CLI::Option* cert =
      app->add_option("--cert", a->certificate, "certificate that says who we are (PEM)")
          ->needs(ca)
          ->check(CheckNotEmpty)
          ->type_name("FILE");
  CLI::Option* key = app->add_option("--key", a->key, "private key of --cert (PEM)")
                         ->needs(cert)
                         ->check(CheckNotEmpty)
                         ->type_name("FILE");
  cert->needs(key);
  CLI::Option* name = app->add_option("--server-name", a->server_name,
                                      "name in the server's certificate; default: of the address")
                          ->needs(ca)
                          ->check(CheckNotEmpty)
                          ->type_name("NAME");
  CLI::Option* token = app->add_option("--token-file", a->token_file,
                                       "file with the token that says who we are; default: the "
                                       "environment's FUSION_TOKEN")
                           ->check(CheckNotEmpty)
                           ->type_name("FILE");
  CLI::Option* priority =
      app->add_option_function<std::string>(
             "--priority", [a](const std::string& word) { a->background = word == "background"; },
             "background gives way to the calls of others; default: interactive")
          ->check(CLI::IsMember({"interactive", "background"}))
          ->type_name("{interactive,background}");
  CLI::Option* verify =
      app->add_option("--verify-key", a->verify_keys,
                      "take only plans and kernels that this key signed: an Ed25519 public key "
                      "(PEM), or hex digits for HMAC-SHA256; may be given more than once")
          ->allow_extra_args(false)
          ->check(CheckNotEmpty)
          ->type_name("FILE");
  for (CLI::Option* option : {ca, cert, key, name, token, priority, verify}) {
    option->needs(server)->group("Connection");
  }
}

void AddServiceOptions(CLI::App* app, Arguments* a) {
  CLI::Option* server = app->add_option("--server", a->server,
                                        "fusiond to ask, HOST:PORT or unix:/PATH; default: "
                                        "one of its own")
                            ->check(CheckAddresses)
                            ->type_name("ADDRESS");
  CLI::Option* store = app->add_option("--store", a->store,
                                       "directory in which the fusiond of its own keeps plans and "
                                       "kernels; default: none, every start is cold")
                           ->check(CheckNotEmpty)
                           ->type_name("DIR");
  for (CLI::Option* option :
       {store,
        app->add_option("--store-limit", a->store_limit_bytes,
                        "bytes of plans and kernels in --store, least used out first; default: 0, "
                        "nothing goes")
            ->transform(CLI::AsSizeValue(false))
            ->check(CLI::NonNegativeNumber)
            ->needs(store),
        app->add_flag("--insecure-permissions", a->insecure_permissions,
                      "use --store although others can write it")
            ->needs(store),
        app->add_option("--fusiond", a->fusiond,
                        "program of the fusiond of its own; default: the "
                        "one beside fusionctl")
            ->check(CheckNotEmpty)
            ->type_name("PROGRAM"),
        app->add_option("--workers", a->workers,
                        "compile workers of the fusiond of its own; "
                        "default: one per core")
            ->check(CLI::Range(1, 1024))
            ->type_name("N")}) {
    option->excludes(server)->group("Own fusiond");
  }
  AddConnectionOptions(app, server, a);
  app->add_option("--deadline", a->deadline,
                  "seconds that the service has for an answer; default: 300")
      ->check(CLI::Range(0.001, 86400.0))
      ->check(NumberError)
      ->type_name("S");
  app->add_flag("--json", a->json, "one JSON object on stdout");
  app->add_flag("--quiet", a->quiet, "no progress on stderr");
}

CLI::App* AddLocalCommand(CLI::App* app, const char* name, const char* help, Arguments* a,
                          CommandKind kind) {
  CLI::App* command = app->add_subcommand(name, help);
  command->callback([a, kind] { a->command = kind; });
  command->footer(HelpFooter(name));
  return command;
}

CLI::App* AddCommand(CLI::App* app, const char* name, const char* help, Arguments* a,
                     CommandKind kind) {
  CLI::App* command = AddLocalCommand(app, name, help, a, kind);
  AddServiceOptions(command, a);
  return command;
}

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
  plan->add_flag("--nodes", a->node_names, "name the nodes of each group");
  AddTarget(plan, a);
  plan->add_option("--write-lock", a->write_lock,
                   "also pin the plan: groups, cuts and digests in this file, for --lock to read")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  plan->add_flag(
      "!--plan-only,!--no-compile", a->compile,
      "estimates only, nothing is compiled; needed for a device without a code generator");
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
                  "compare with the tensors that --dump-tensors wrote into this directory instead")
      ->needs(compare)
      ->check(CheckNotEmpty)
      ->type_name("DIR");
  run->add_option("--dump-tensors", a->dump_tensors,
                  "write intermediate tensors into this directory as tensor_0.npy, ..., and "
                  "index.json, which says what each is")
      ->check(CheckNotEmpty)
      ->type_name("DIR");
  run->add_option("--tensor", a->tensors,
                  "compare and write only this tensor, or those of this node; may be given more "
                  "than once")
      ->allow_extra_args(false)
      ->check(CheckNotEmpty)
      ->type_name("NAME");
  AddTolerances(run, a);
}

// Options for runs without the service.
void AddResilience(CLI::App* run, Arguments* a) {
  CLI::Option* cache =
      run->add_option("--cache", a->cache,
                      "keep plans and kernels in this directory, and run by them when the service "
                      "is away")
          ->check(CheckNotEmpty)
          ->type_name("DIR");
  CLI::Option* user =
      run->add_flag("--user-cache", a->user_cache,
                    "the same in $XDG_CACHE_HOME/fusiond, by default ~/.cache/fusiond")
          ->excludes(cache);
  run->add_flag("--prefer-cache", a->prefer_cache,
                "with a cache: use what is there without asking the service");
  CLI::Option* fallback =
      run->add_flag("--fallback", a->fallback,
                    "run op by op, by the reference evaluator, if there is no plan in time");
  run->add_option("--load-deadline", a->load_deadline,
                  "with a cache or --fallback: seconds for plan and kernels, retries included")
      ->check(CLI::Range(0.001, 86400.0))
      ->check(NumberError)
      ->capture_default_str()
      ->type_name("S");
  for (CLI::Option* option : {cache, user, fallback}) option->group("When the service is away");
  run->get_option("--prefer-cache")->group("When the service is away");
  run->get_option("--load-deadline")->group("When the service is away");
}

void AddRun(CLI::App* app, Arguments* a) {
  CLI::App* run = AddModelCommand(app, "run", "runs a model and shows its outputs", a,
                                  CommandKind::kRun, /*with_isa=*/false);
  AddDataOptions(run, a);
  run->add_option(
         "--steps", a->steps,
         "also so many runs one after the other, each with what the one before left in the "
         "buffers of --share, as a decoder runs; --range leaves their dim open")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  run->add_option("--repeat", a->repeat, "runs that are timed, one after the other")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str()
      ->type_name("N");
  run->add_option("--out", a->out, "directory in which the outputs are written as output_0.pb, ...")
      ->check(CheckNotEmpty)
      ->type_name("DIR");
  run->add_flag("--kernels", a->per_kernel, "also each kernel: time, estimate, rates");
  run->add_option("--trace", a->trace,
                  "also a timeline of the plan and of one kernel per node, in this file, for "
                  "ui.perfetto.dev or chrome://tracing")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  run->add_flag("--npy", a->npy, "write the outputs as output_0.npy, ...")->needs("--out");
  AddIntermediates(run, a);
  AddResilience(run, a);
}

void AddBench(CLI::App* app, Arguments* a) {
  CLI::App* bench = AddModelCommand(
      app, "bench", "measures fused kernels against op by op, in pairs of runs in one process", a,
      CommandKind::kBench, /*with_isa=*/false);
  AddDataOptions(bench, a);
  CLI::Option* model = bench->get_option("MODEL")->required(false);
  CLI::Option* suite = bench->add_flag(
      "--suite", a->suite,
      "in the place of a model: six small ones, with one thread and with all, or with --threads");
  suite->excludes(model);
  // The suite has its own models, data and numerics.
  for (const char* name :
       {"--fusion", "--numerics", "--batch", "--bind", "--range", "--share", "--strides", "--fix",
        "--as-input", "--allow-fused", "--lock", "--data", "--input", "--seed"}) {
    suite->excludes(bench->get_option(name));
  }
  bench
      ->add_option("--seconds", a->seconds,
                   "time for pairs of runs; 10000 pairs are the most. Default: 5; 2 for each row "
                   "of --suite")
      ->check(CLI::Range(0.01, 86400.0))
      ->check(NumberError)
      ->type_name("S");
  bench->add_option("--pairs", a->pairs, "exactly so many pairs of runs, whatever they take")
      ->check(CLI::Range(1, kMaxBenchPairs))
      ->type_name("N");
  bench->add_option("--warmup", a->warmup, "pairs of runs before those that count")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->type_name("N");
  suite->excludes(
      bench->add_flag("--kernels", a->per_kernel, "also each kernel: time, estimate, rates"));
  bench->add_flag("!--no-report", a->report,
                  "do not tell the service of --server or --store what the kernels took");
}

void AddVerify(CLI::App* app, Arguments* a) {
  CLI::App* verify = AddModelCommand(
      app, "verify", "compares outputs with expected ones, or with the reference evaluator", a,
      CommandKind::kVerify, /*with_isa=*/true);
  AddDataOptions(verify, a);
  AddTolerances(verify, a);
}

void AddShow(CLI::App* app, Arguments* a) {
  CLI::App* show =
      AddCommand(app, "show", "one form of a model on its way to kernels", a, CommandKind::kShow);
  AddModelOrKernel(show, a);
  AddPlanOptions(show, a, /*with_isa=*/true);
  AddChoice(show, "WHAT", &a->what, kShowWhats, "form", " after the MODEL")->required();
  AddChoice(show, "--format", &a->format, kShowFormats, "notation (dot: graph, smg and plan)");
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
      AddCommand(app, "explain", "why the kernels of a plan are what they are, with numbers", a,
                 CommandKind::kExplain);
  explain
      ->add_option("PLAN", a->subject,
                   "a model, the key of a plan (8 of its digits or more), or a file of "
                   "explain --save")
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
                       "why this node is in its kernel, or why two nodes share one or do not; by "
                       "name, a part of the name that no other has, or position as #12")
          ->expected(1, 2)
          ->check(CheckNotEmpty)
          ->type_name("NODE");
  explain->add_option("--group", a->group, "why this group of the plan is what it is")
      ->check(CLI::Range(0, 1 << 30))
      ->excludes(why)
      ->type_name("N");
  explain->add_flag(
      "--miss", a->miss,
      "why the service had no plan of this model: the stored plan that is nearest, and "
      "in what it differs");
  explain->add_flag("--candidates", a->candidates, "also what the search weighed on its way");
  explain
      ->add_option("--dot", a->dot,
                   "also the graph before and after, groups coloured, in this file; of models only")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  explain
      ->add_option("--save", a->save, "also all of it in this file, for explain and diff to read")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  explain
      ->add_option("--svg", a->svg,
                   "the same as a picture; drawn by graphviz, which must be installed")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
}

void AddDiff(CLI::App* app, Arguments* a) {
  CLI::App* diff = AddCommand(app, "diff", "what differs between two plans of one graph, and why",
                              a, CommandKind::kDiff);
  for (auto [name, field] : {std::pair{"PLAN", &a->subject}, std::pair{"OTHER", &a->other}}) {
    diff->add_option(name, *field,
                     "a plan key (8 of its digits or more), a model, or a file of explain "
                     "--save")
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
      app, "export", "writes a model in which the groups of its plan are nodes, for any runtime", a,
      CommandKind::kExport, /*with_isa=*/true);
  // The only form so far; it has a name so that others can be added.
  command
      ->add_flag("--fused", a->fused,
                 "each group a node of domain fusiond, which calls a function that holds its nodes")
      ->required();
  command
      ->add_option("--out", a->out,
                   "this file; where the model has external data, in its directory or above")
      ->required()
      ->check(CheckNotEmpty)
      ->type_name("FILE.onnx");
  AddTarget(command, a);
  command->add_flag(
      "!--plan-only,!--no-compile", a->compile,
      "nothing is compiled: nodes have the digests of kernels that are in the cache only");
}

void AddRepro(CLI::App* app, Arguments* a) {
  CLI::App* repro = AddCommand(
      app, "repro", "a plan as an archive that others can run, without weights; and such a run", a,
      CommandKind::kRepro);
  CLI::Option* plan =
      repro
          ->add_option("PLAN", a->subject,
                       "a model, or the key of a stored plan (8 of its digits or more)")
          ->check(CheckNotEmpty)
          ->type_name("KEY|FILE.onnx");
  CLI::Option* out = repro
                         ->add_option("-o,--out", a->out,
                                      "this file: a .tar.gz of plan, graph, sources, schedules")
                         ->needs(plan)
                         ->check(CheckNotEmpty)
                         ->type_name("FILE");
  repro
      ->add_option("--replay", a->replay,
                   "compile, check and run the plan of this file; needs no service. It runs code "
                   "of the file: only those of people that you trust")
      ->excludes(plan)
      ->excludes(out)
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  repro->add_option("--seed", a->seed, "of the numbers of --replay")
      ->check(CheckSeed)
      ->type_name("N");
  AddModelOptions(repro, a, CommandKind::kRepro,
                  [a, repro] { AddPlanOptions(repro, a, /*with_isa=*/true); });
}

void AddReport(CLI::App* app, Arguments* a) {
  CLI::App* report = AddCommand(app, "report", "measured latencies of plans beside the estimates",
                                a, CommandKind::kReport);
  report
      ->add_option("PLAN", a->subject,
                   "key of a plan, 8 of its digits or more, or a model; default: every plan that "
                   "latencies were reported of")
      ->check(CheckNotEmpty)
      ->type_name("KEY|FILE.onnx");
  AddModelOptions(report, a, CommandKind::kReport, [a, report] {
    AddPlanOptions(report, a, /*with_isa=*/true);
    report->add_option("--data", a->data, "of a model: its symbolic dims are those of this data")
        ->check(CheckNotEmpty)
        ->type_name("DIR");
  });
  report->add_option("--html", a->html, "also as a page with charts, in this file")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
}

void AddToken(CLI::App* app, Arguments* a) {
  CLI::App* token =
      AddLocalCommand(app, "token", "a new token, and its entry for the file of fusiond --tokens",
                      a, CommandKind::kToken);
  const auto name_of = [](size_t most) {
    return [most](const std::string& word) { return CheckCallerName(word, most); };
  };
  token->add_option("NAME", a->name, "what the server's log calls it")
      ->required()
      ->check(name_of(kMaxCallerNameBytes))
      ->type_name("NAME");
  token->add_option("--tenant", a->tenant, "under which its calls are counted; default: default")
      ->check(name_of(kMaxTenantBytes))
      ->type_name("NAME");
  token
      ->add_option("--role", a->roles,
                   "what it may do; may be given more than once; default: plan and report")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"plan", "report", "admin"}))
      ->type_name("{plan,report,admin}");
  token->add_option("--expires", a->expires, "until then: 2027-01-31 or 2027-01-31T18:00:00Z")
      ->check(CheckTime)
      ->type_name("TIME");
  token
      ->add_option("--out", a->out,
                   "the token goes into this new file, which only its owner reads; stdout has the "
                   "entry alone")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  token->add_flag("--json", a->json, "one JSON object on stdout");
}

void AddStore(CLI::App* app, Arguments* a) {
  CLI::App* store = AddCommand(app, "store",
                               "looks after the stored plans and kernels of a service: sizes, "
                               "checks, pins, copies",
                               a, CommandKind::kStore);
  AddChoice(store, "ACTION", &a->action, kStoreActions, "what to do")->required();
  store
      ->add_option("PLAN", a->plan_keys,
                   "plans that pin, unpin, invalidate and export are about: keys, 8 of their "
                   "digits or more; export without any: every plan")
      ->check(CheckNotEmpty)
      ->type_name("KEY");
  store
      ->add_option("--kernel", a->kernel_keys,
                   "invalidate this kernel, by its key or symbol, 8 of their digits or more; may "
                   "be given more than once")
      ->allow_extra_args(false)
      ->check(CheckNotEmpty)
      ->type_name("KEY");
  store->add_flag("--all", a->all, "invalidate everything, pinned plans too");
  store->add_option("--reason", a->reason, "invalidate: for the log of the service")
      ->type_name("TEXT");
  store->add_option("-o,--out", a->out, "export to this file")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  store
      ->add_option("--from", a->from,
                   "import this file of export. What no --import-key signed is made again here and "
                   "compared, or refused")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  CLI::Option* directory = store->get_option("--store");
  for (CLI::Option* option :
       {store
            ->add_option("--import-key", a->import_keys,
                         "import with --store: take entries that this key signed as they are, as "
                         "fusiond --import-key; may be given more than once")
            ->allow_extra_args(false),
        store->add_option("--signing-key", a->signing_key,
                          "export with --store: sign the entries, as fusiond --signing-key")}) {
    option->needs(directory)->check(CheckNotEmpty)->type_name("FILE")->group("Own fusiond");
  }
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

  CLI::App* list = AddCommand(app, "list", "the plans that a service has stored, newest first", a,
                              CommandKind::kList);
  list->add_option("--limit", a->limit, "so many at most; default: all")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  list->add_flag("--full", a->full_keys, "whole keys, 64 digits");

  CLI::App* capabilities =
      AddCommand(app, "capabilities", "devices, operators and limits of a service", a,
                 CommandKind::kCapabilities);
  capabilities->add_flag("--ops", a->ops, "every operator and its opsets");

  AddCommand(app, "status", "whether the service answers, and how fast", a, CommandKind::kStatus);

  AddToken(app, a);
  AddStore(app, a);

  CLI::App* completion = AddLocalCommand(app, "completion", "a script that completes command lines",
                                         a, CommandKind::kCompletion);
  AddChoice(completion, "SHELL", &a->shell, kShells, "for this shell")->required();
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
