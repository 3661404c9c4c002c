#include "client/fusionctl/measure/resilient_run.h"

#include <nlohmann/json.hpp>

#include "client/fallback/resilient_model.h"
#include "client/fused_model.h"
#include "client/fusion_request.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/output_summary.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/connection.h"
#include "client/fusionctl/service/session.h"
#include "core/base/threads/shortage.h"

namespace fusion {
namespace {

constexpr Nanoseconds kKeepTimeout = std::chrono::seconds(5);

/// A run of one model, and the clients that may plan it.
struct ResilientRun {
  const Arguments& arguments;
  const ModelFile& file;
  const RunInputs& inputs;
  Progress* progress;
  std::shared_ptr<BundleCache> cache;  // null: none
  std::string no_server;          // why there is no address; empty: there is one, or need not be
  ClientOptions connection = {};  // to the server of --server
};

ResilientOptions OptionsOf(const ResilientRun& run) {
  ResilientOptions out;
  out.load_deadline = FromSeconds(run.arguments.load_deadline);
  out.client = run.connection;
  out.client.deadline = out.load_deadline;
  out.policy = run.arguments.prefer_cache ? CachePolicy::kPreferCache : CachePolicy::kPreferService;
  out.cache = run.cache;
  return out;
}

absl::StatusOr<std::unique_ptr<ResilientModel>> LoadModelOf(
    const ResilientRun& run, const std::shared_ptr<ResilientClient>& client) {
  run.progress->Show("asking for a plan");
  // There is only one run, so a plan that arrives later is of no use.
  ResilientModelOptions options{
      .fall_back = run.arguments.fallback, .upgrade = false, .refresh_cache = false};
  options.model.reports.enabled = false;
  const ModelFile& file = run.file;
  return ResilientModel::Load(
      client, file.Request(run.arguments, run.inputs.options), file.bare(),
      {.load = [&file](const std::string& name) { return file.Weight(name); },
       .take = [&file](const std::string& name) { return file.TakeWeight(name); }},
      options);
}

std::string ReasonOf(const ResilientRun& run, const ResilientModel& model) {
  if (!run.no_server.empty()) return run.no_server;
  return model.reason();
}

Json StatsJson(const ClientStats& stats) {
  return {{"asked", stats.asked},
          {"retries", stats.retries},
          {"breaker_opens", stats.breaker_opens},
          {"from_service", stats.from_service},
          {"from_cache", stats.from_cache},
          {"fetched_kernels", stats.fetched_kernels},
          {"fallbacks", stats.fallbacks},
          {"cache_hits", stats.cache.hits},
          {"cache_misses", stats.cache.misses},
          {"cache_corrupt", stats.cache.corrupt},
          {"cached_kernels", stats.cache.kernel_hits},
          {"stored_files", stats.cache.stored},
          {"evicted_files", stats.cache.evicted}};
}

Json RunJson(const ResilientRun& run, const ResilientModel& model, const ResilientClient& client,
             const std::vector<double>& latency_us, const std::vector<HostTensor>& outputs) {
  Json out = {{"data", run.inputs.data.name},
              {"mode", RunModeName(model.mode())},
              {"reason", ReasonOf(run, model)},
              {"latency_us", LatencyJson(latency_us)},
              {"outputs", OutputsJson(model.outputs(), outputs)},
              {"client", StatsJson(client.stats())}};
  if (std::shared_ptr<const FusedModel> fused = model.fused()) {
    out["plan_key"] = fused->reply().plan_key.ToHex();
    out["totals"] = TotalsJson(fused->plan().totals);
  }
  return out;
}

std::string RunText(const ResilientRun& run, const ResilientModel& model,
                    const std::vector<double>& latency_us, const std::vector<HostTensor>& outputs) {
  const std::shared_ptr<const FusedModel> fused = model.fused();
  const std::string reason = ReasonOf(run, model);
  return StrCat(Bold(run.arguments.model), ": ", RunModeName(model.mode()),
                fused == nullptr ? std::string()
                                 : StrCat(", ", Count(fused->plan().totals.kernels, "kernel"),
                                          " on ", TargetText(fused->plan())),
                ", ", SourceText(run.inputs), "\n", reason.empty() ? "" : "reason: ", reason,
                reason.empty() ? "" : "\n", "\n", OutputsText(model.outputs(), outputs),
                "\nlatency: ", LatencyText(latency_us), "\n");
}

absl::StatusOr<ExitCode> RunWith(const ResilientRun& run, std::vector<std::string> addresses) {
  const Arguments& arguments = run.arguments;
  ASSIGN_OR_RETURN(std::shared_ptr<ResilientClient> client,
                   ResilientClient::Create(std::move(addresses), OptionsOf(run)));
  ASSIGN_OR_RETURN(std::unique_ptr<ResilientModel> model, LoadModelOf(run, client));
  std::vector<double> latency_us;
  std::vector<HostTensor> outputs;
  // A first run touches arenas and wakes threads; op by op there is nothing to warm, but to wait.
  const int warmup = model->mode() == RunMode::kOpByOp ? 0 : 1;
  for (int i = -warmup; i < arguments.repeat; ++i) {
    run.progress->Show("running", std::max(0, i), arguments.repeat);
    const Nanoseconds begin = Clock::Real().Now();
    ASSIGN_OR_RETURN(outputs, model->Run(run.inputs.data.inputs));
    if (i >= 0) latency_us.push_back(ToMicroseconds(Clock::Real().Now() - begin));
  }
  if (!arguments.out.empty()) {
    RETURN_IF_ERROR(SaveOutputs(arguments, model->outputs(), outputs));
  }
  client->AwaitKept(kKeepTimeout);  // so that the numbers are of the whole run
  run.progress->Clear();
  if (arguments.json) {
    PrintJson(RunJson(run, *model, *client, latency_us, outputs));
  } else {
    Print(RunText(run, *model, latency_us, outputs));
  }
  return kExitOk;
}

// Then neither a call nor an embedded fusiond is needed.
absl::StatusOr<bool> IsCached(const ResilientRun& run) {
  if (run.cache == nullptr) return false;
  ASSIGN_OR_RETURN(Digest digest,
                   RequestDigest(run.file.Request(run.arguments, run.inputs.options)));
  return run.cache->Find(digest, run.connection.verify_keys).has_value();
}

}  // namespace

bool IsResilient(const Arguments& arguments) {
  return !arguments.cache.empty() || arguments.fallback;
}

absl::StatusOr<ExitCode> RunResilient(const Arguments& arguments, const ModelFile& file,
                                      const RunInputs& inputs, Progress* progress) {
  ResilientRun run{arguments, file, inputs, progress, nullptr, ""};
  if (!arguments.cache.empty()) {
    BundleCacheOptions options;
    options.warn = [](const std::string& text) { PrintWarning(StrCat("warning: ", text)); };
    absl::StatusOr<std::shared_ptr<BundleCache>> cache =
        BundleCache::Open(arguments.cache, options);
    if (!cache.ok()) return BadInput(Annotate(cache.status(), "--cache"));
    run.cache = *std::move(cache);
  }
  ASSIGN_OR_RETURN(run.connection, ConnectionOf(arguments));
  RETURN_IF_ERROR(CheckThreads(kThreadsOfGrpc));
  if (!arguments.server.empty()) return RunWith(run, SplitAddresses(arguments.server));
  if (arguments.prefer_cache) {
    ASSIGN_OR_RETURN(bool cached, IsCached(run));
    if (cached) return RunWith(run, {});
  }
  bool started = false;
  absl::StatusOr<ExitCode> code =
      WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
        started = true;
        return RunWith(run, {client.address()});
      });
  if (code.ok() || started) return code;
  run.no_server = StrCat("no fusiond of its own: ", Message(code.status()));
  absl::StatusOr<ExitCode> without = RunWith(run, {});
  return without.ok() || absl::IsInvalidArgument(without.status()) ? without : code;
}

}  // namespace fusion
