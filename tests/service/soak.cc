// Many clients of all kinds at once, against a real fusiond with its default limits:
//
//   soak --clients 64 --seconds 60 [--seed N] [--json] [--memory-limit 32MiB]
//        [--server-flag=--store-limit=64MiB]...
//
// Each client has a connection of its own and makes one random call after the other: plans known
// and new, in every mode and as a stream, kernels, reports, lists, requests that are wrong, calls
// taken back. Prints what was called, how often and how long it took, and the server's memory.
// Exit code 1 if anything ended otherwise than it should, if a kind of call was never made, or if
// the server's memory grew, from when every known plan was made, beyond what its caches may take:
// --memory-limit and as much for what is recent, half of that again for what allocators keep, and
// what the store has not written out yet.
// Beside it, what its memory and its file descriptors did over the second half (HoldingsWatch).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "core/base/statistics/quantile.h"
#include "tests/service/fusion_caller.h"
#include "tests/service/holdings_watch.h"
#include "tests/service/process_memory.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

using grpc::StatusCode;
using Codes = std::set<StatusCode>;

// A call that takes longer is one that hangs.
constexpr std::chrono::minutes kDeadline(2);

// RocksDB's memtables: the 64 MiB of their log, and as much while they are written out.
constexpr int64_t kLogBytes = int64_t{128} << 20;

/// What calls of one kind came to.
struct Tally {
  std::vector<double> ms;
  std::map<std::string, int64_t> unexpected;  // in words, and how often
};

/// Requests that every client repeats: the first time cold, then warm.
std::vector<v1::PlanFusionRequest> KnownRequests() {
  std::vector<v1::PlanFusionRequest> requests;
  for (const char* name : {"mlp", "layernorm", "mha", "bias_gelu", "lstm_cell", "gpt2_layer"}) {
    requests.push_back(RequestFor(SentModel(name)));
    requests.push_back(requests.back());
    requests.back().mutable_target()->set_threads(2);
  }
  requests.push_back(RequestFor(SentModel("mlp")));
  requests.back().mutable_options()->set_fusion(v1::FUSION_MODE_OP_BY_OP);
  requests.push_back(RequestFor(SentModel("bias_gelu")));
  requests.back().mutable_options()->set_numerics(v1::NUMERICS_BITWISE);
  requests.push_back(RequestFor(SentModel("layernorm")));
  requests.back().mutable_hints()->set_memory_pressure(0.9);
  requests.push_back(RequestFor(SentModel("bert_layer"), v1::PLAN_MODE_PLAN_ONLY));
  requests.back().mutable_target()->set_isa("avx2");
  return requests;
}

/// One caller, on a thread of its own.
class SoakClient {
 public:
  struct Action {
    const char* name;
    double weight;
    std::string (SoakClient::*call)();  // gives what is wrong with how it ended, or nothing
  };
  static const std::vector<Action>& Actions();

  /// The `number`-th of `clients`.
  SoakClient(const std::string& address, const std::vector<v1::PlanFusionRequest>& known,
             uint64_t seed, size_t number, size_t clients)
      : caller_(address), known_(known), random_(seed), number_(number), clients_(clients) {}

  void RunUntil(std::chrono::steady_clock::time_point end) {
    auto on_time = [end] { return std::chrono::steady_clock::now() < end; };
    // Most calls need a plan to be about.
    while (on_time() && last_.kernels().empty()) Do(Actions().front());
    if (last_.kernels().empty()) return;
    // However short the time: between them, clients call everything once.
    for (size_t i = number_; i < Actions().size(); i += clients_) Do(Actions()[i]);
    std::vector<double> weights;
    for (const Action& action : Actions()) weights.push_back(action.weight);
    std::discrete_distribution<size_t> pick(weights.begin(), weights.end());
    while (on_time()) Do(Actions()[pick(random_)]);
  }

  const std::map<std::string, Tally>& tallies() const { return tallies_; }

 private:
  void Do(const Action& action) {
    Nanoseconds start = Clock::Real().Now();
    std::string wrong = (this->*action.call)();
    Tally& tally = tallies_[action.name];
    tally.ms.push_back(ToMilliseconds(Clock::Real().Now() - start));
    if (!wrong.empty()) ++tally.unexpected[wrong];
  }

  static std::string Expect(const grpc::Status& status, const Codes& codes = {StatusCode::OK}) {
    if (codes.count(status.error_code()) > 0) return "";
    return StrCat("code ", static_cast<int>(status.error_code()), ": ", status.error_message());
  }

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  v1::PlanFusionRequest Known() {
    return known_[static_cast<size_t>(Below(static_cast<int64_t>(known_.size())))];
  }

  // A graph of its own: rows are part of the plan's key. What compiles is one of a few, or the
  // compile workers would be all that is tested.
  v1::PlanFusionRequest Unknown(v1::PlanMode mode) {
    int64_t different = mode == v1::PLAN_MODE_PLAN_ONLY ? 1'000'000 : 32;
    return RequestFor(LinearReluModel(1 + Below(different)).proto(), mode);
  }

  std::string PlanKnown() {
    v1::PlanFusionResponse response;
    std::string wrong = Expect(caller_.Plan(Known(), &response));
    if (!wrong.empty()) return wrong;
    if (response.plan_key().size() != 32) return "an answer without a plan key";
    bool compiled = !response.kernels().empty();
    for (const v1::KernelStatus& kernel : response.kernels()) {
      compiled &= kernel.state() == v1::KERNEL_STATE_READY;
    }
    if (compiled) last_ = std::move(response);
    return "";
  }

  std::string PlanNew() {
    v1::PlanFusionResponse response;
    return Expect(caller_.Plan(Unknown(v1::PLAN_MODE_PLAN_ONLY), &response));
  }

  std::string CompileNew() {
    v1::PlanFusionResponse response;
    std::string wrong = Expect(caller_.Plan(Unknown(v1::PLAN_MODE_COMPILE), &response));
    for (const v1::KernelStatus& kernel : response.kernels()) {
      if (kernel.state() != v1::KERNEL_STATE_READY) return "a kernel is not ready";
    }
    return wrong;
  }

  std::string PlanByDeadline() {
    v1::PlanFusionRequest request = Below(8) == 0 ? Unknown(v1::PLAN_MODE_BY_DEADLINE) : Known();
    request.set_mode(v1::PLAN_MODE_BY_DEADLINE);
    request.set_ready_within_ms(static_cast<uint32_t>(Below(20)));
    v1::PlanFusionResponse response;
    return Expect(caller_.Plan(request, &response));
  }

  std::string PlanStreamed() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    auto reader = caller_.stub().PlanFusionStream(&context, Known());
    v1::PlanFusionEvent event;
    bool answered = false;
    bool behind = false;  // something came behind the answer
    while (reader->Read(&event)) {
      behind |= answered;
      answered |= event.has_response();
    }
    std::string wrong = Expect(reader->Finish());
    if (!wrong.empty()) return wrong;
    return answered && !behind ? "" : "a stream without its answer at the end";
  }

  std::string Kernels() {
    std::vector<std::string> keys;
    for (const v1::KernelStatus& kernel : last_.kernels()) {
      keys.push_back(kernel.key());
    }
    bool unknown = Below(4) == 0;
    if (unknown) keys.push_back(std::string(32, static_cast<char>(Below(256))));
    std::vector<StreamedKernel> kernels;
    std::string wrong = Expect(caller_.GetKernels(keys, &kernels));
    if (!wrong.empty()) return wrong;
    for (size_t i = 0; i < kernels.size(); ++i) {
      bool last = i + 1 == keys.size();
      v1::KernelState expected =
          unknown && last ? v1::KERNEL_STATE_UNKNOWN : v1::KERNEL_STATE_READY;
      if (kernels[i].state != expected) return "a kernel in another state than expected";
    }
    return kernels.size() == keys.size() ? "" : "not as many kernels as asked for";
  }

  std::string Report() {
    v1::ReportLatencyRequest request;
    request.set_plan_key(last_.plan_key());
    request.set_threads(last_.plan().threads());
    request.set_device("soak");
    v1::LaunchLatency* launch = request.add_launches();
    for (int i = 0; i < 8; ++i) launch->add_samples_us(static_cast<double>(10 + Below(100)));
    request.add_run_samples_us(500);
    v1::ReportLatencyResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    std::string wrong = Expect(caller_.stub().ReportLatency(&context, request, &response));
    if (!wrong.empty()) return wrong;
    return response.accepted_samples() == 9 ? "" : "not every sample was accepted";
  }

  std::string ReportWrong() {
    v1::ReportLatencyRequest request;
    request.set_plan_key(last_.plan_key());
    request.set_threads(1);
    request.add_launches()->add_samples_us(-1);
    v1::ReportLatencyResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    return Expect(caller_.stub().ReportLatency(&context, request, &response),
                  {StatusCode::INVALID_ARGUMENT});
  }

  std::string GetReport() {
    v1::GetReportRequest request;
    if (Below(2) == 0) request.set_plan_key(last_.plan_key());
    request.set_limit(10);
    v1::GetReportResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    return Expect(caller_.stub().GetReport(&context, request, &response));
  }

  std::string ListPlans() {
    v1::ListPlansRequest request;
    request.set_page_size(static_cast<int32_t>(1 + Below(20)));
    v1::ListPlansResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    std::string wrong = Expect(caller_.stub().ListPlans(&context, request, &response));
    if (!wrong.empty()) return wrong;
    return response.plans_size() <= request.page_size() ? "" : "a page larger than asked for";
  }

  std::string Capabilities() {
    v1::GetCapabilitiesResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    std::string wrong = Expect(caller_.stub().GetCapabilities(&context, {}, &response));
    return wrong.empty() && response.ops().empty() ? "capabilities without operators" : wrong;
  }

  std::string Malformed() {
    std::string response;
    std::string bytes(static_cast<size_t>(1 + Below(1000)), '\xff');
    return Expect(caller_.CallBytes("/fusion.v1.FusionService/PlanFusion", bytes, &response),
                  {StatusCode::INVALID_ARGUMENT});
  }

  std::string UnknownOp() {
    TestModel m;
    m.Input("x", {2, 4}).Node("Frobnicate", {"x"}, {"y"}, "odd one").Output("y");
    v1::PlanFusionResponse response;
    return Expect(caller_.Plan(RequestFor(m.proto()), &response), {StatusCode::UNIMPLEMENTED});
  }

  std::string NoTarget() {
    v1::PlanFusionRequest request = Known();
    request.clear_target();
    v1::PlanFusionResponse response;
    return Expect(caller_.Plan(request, &response), {StatusCode::INVALID_ARGUMENT});
  }

  // Bytes that would grow fiftyfold when parsed.
  std::string Explosive() {
    std::string graph(1'200'000, '\0');  // empty nodes: 2a 00
    for (size_t i = 0; i < graph.size(); i += 2) graph[i] = '\x2a';
    std::string bytes = "\x12";
    for (size_t left = graph.size(); left > 0; left >>= 7) {
      bytes += static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    }
    std::string response;
    return Expect(
        caller_.CallBytes("/fusion.v1.FusionService/PlanFusion", bytes + graph, &response),
        {StatusCode::RESOURCE_EXHAUSTED});
  }

  std::string Cancelled() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    v1::PlanFusionRequest request = Unknown(v1::PLAN_MODE_COMPILE);
    v1::PlanFusionResponse response;
    std::promise<grpc::Status> done;
    caller_.stub().async()->PlanFusion(&context, &request, &response, [&done](grpc::Status status) {
      done.set_value(std::move(status));
    });
    std::this_thread::sleep_for(std::chrono::microseconds(Below(3000)));
    context.TryCancel();
    return Expect(done.get_future().get(), {StatusCode::OK, StatusCode::CANCELLED});
  }

  // May be refused at once: what waits says that its answer would come too late.
  std::string ShortOfTime() {
    v1::PlanFusionResponse response;
    return Expect(caller_.Plan(Unknown(v1::PLAN_MODE_COMPILE), &response,
                               std::chrono::milliseconds(1 + Below(5))),
                  {StatusCode::OK, StatusCode::DEADLINE_EXCEEDED, StatusCode::RESOURCE_EXHAUSTED});
  }

  std::string Health() { return caller_.Healthy() ? "" : "the server does not say SERVING"; }

  const FusionCaller caller_;
  const std::vector<v1::PlanFusionRequest>& known_;
  std::mt19937_64 random_;
  std::map<std::string, Tally> tallies_;
  const size_t number_;
  const size_t clients_;
  v1::PlanFusionResponse last_;  // of PlanKnown, with all its kernels
};

const std::vector<SoakClient::Action>& SoakClient::Actions() {
  static const std::vector<Action> kActions = {
      {"plan known", 40, &SoakClient::PlanKnown},
      {"plan new", 8, &SoakClient::PlanNew},
      {"compile new", 0.5, &SoakClient::CompileNew},
      {"plan by deadline", 8, &SoakClient::PlanByDeadline},
      {"plan streamed", 8, &SoakClient::PlanStreamed},
      {"kernels", 15, &SoakClient::Kernels},
      {"report", 5, &SoakClient::Report},
      {"report wrong", 2, &SoakClient::ReportWrong},
      {"get report", 3, &SoakClient::GetReport},
      {"list plans", 3, &SoakClient::ListPlans},
      {"capabilities", 2, &SoakClient::Capabilities},
      {"malformed", 4, &SoakClient::Malformed},
      {"unknown op", 4, &SoakClient::UnknownOp},
      {"no target", 4, &SoakClient::NoTarget},
      {"explosive", 0.5, &SoakClient::Explosive},
      {"cancelled", 1, &SoakClient::Cancelled},
      {"short of time", 1, &SoakClient::ShortOfTime},
      {"health", 5, &SoakClient::Health},
  };
  return kActions;
}

struct SoakResult {
  std::map<std::string, Tally> tallies;
  double seconds = 0;
  int64_t memory_limit = 0;    // bytes, of the server
  int64_t resident_start = 0;  // bytes, once every known plan is made
  int64_t resident_end = 0;
  Holdings held;
  std::vector<std::string> server_errors;  // what it logged as one, how it ended
  std::vector<std::string> never_called;

  int64_t resident_limit() const { return resident_start + 2 * memory_limit * 3 / 2 + kLogBytes; }
  bool grew_too_much() const { return resident_start <= 0 || resident_end > resident_limit(); }
  bool sound() const { return unexpected() == 0 && never_called.empty() && !grew_too_much(); }

  int64_t calls() const {
    int64_t n = 0;
    for (const auto& [name, tally] : tallies) n += static_cast<int64_t>(tally.ms.size());
    return n;
  }
  int64_t unexpected() const {
    auto n = static_cast<int64_t>(server_errors.size());
    for (const auto& [name, tally] : tallies) {
      for (const auto& [words, count] : tally.unexpected) n += count;
    }
    return n;
  }
};

absl::StatusOr<SoakResult> Soak(int clients, double seconds, uint64_t seed, int64_t memory_limit,
                                std::vector<std::string> flags) {
  ScratchDir store;
  flags.insert(flags.end(),
               {"--store", store.path("store"), "--memory-limit", StrCat(memory_limit)});
  ASSIGN_OR_RETURN(std::unique_ptr<TestDaemon> daemon, TestDaemon::Start(FUSIOND, flags));
  const std::vector<v1::PlanFusionRequest> known = KnownRequests();
  SoakResult result;
  result.memory_limit = memory_limit;
  {
    FusionCaller first(daemon->address());
    for (const v1::PlanFusionRequest& request : known) {
      v1::PlanFusionResponse response;
      grpc::Status status = first.Plan(request, &response);
      if (!status.ok()) return Internal("cold plan: ", status.error_message());
    }
  }
  result.resident_start = MemoryOf(daemon->pid(), "VmRSS");
  auto begin = std::chrono::steady_clock::now();
  auto end = begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(seconds));
  std::vector<std::unique_ptr<SoakClient>> all;
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    all.push_back(std::make_unique<SoakClient>(
        daemon->address(), known, seed * 1000 + static_cast<uint64_t>(i), static_cast<size_t>(i),
        static_cast<size_t>(clients)));
  }
  HoldingsWatch watch(daemon->pid());
  for (auto& client : all) threads.emplace_back([&client, end] { client->RunUntil(end); });
  for (std::thread& thread : threads) thread.join();
  result.held = watch.Stop();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.resident_end = MemoryOf(daemon->pid(), "VmRSS");
  for (const auto& client : all) {
    for (const auto& [name, tally] : client->tallies()) {
      Tally& sum = result.tallies[name];
      sum.ms.insert(sum.ms.end(), tally.ms.begin(), tally.ms.end());
      for (const auto& [words, count] : tally.unexpected) sum.unexpected[words] += count;
    }
  }
  for (const SoakClient::Action& action : SoakClient::Actions()) {
    if (!result.tallies.contains(action.name)) result.never_called.emplace_back(action.name);
  }
  all.clear();
  ProgramEnd ended = daemon->Stop();
  if (ended.exit_code != 0) {
    result.server_errors.push_back(
        StrCat("fusiond ended with exit code ", ended.exit_code, ", signal ", ended.signal));
  }
  for (std::string_view line : StrSplit(ended.output, '\n')) {
    if (line.find("\"level\":\"error\"") != std::string_view::npos) {
      result.server_errors.emplace_back(line);
    }
  }
  return result;
}

void PrintText(const SoakResult& r, int clients) {
  std::printf("%-18s %9s %10s %10s %10s\n", "call", "calls", "p50 ms", "p99 ms", "unexpected");
  for (const auto& [name, tally] : r.tallies) {
    int64_t unexpected = 0;
    for (const auto& [words, count] : tally.unexpected) unexpected += count;
    std::printf("%-18s %9zu %10.2f %10.2f %10lld\n", name.c_str(), tally.ms.size(),
                Quantile(tally.ms, 0.5), Quantile(tally.ms, 0.99),
                static_cast<long long>(unexpected));
  }
  for (const auto& [name, tally] : r.tallies) {
    for (const auto& [words, count] : tally.unexpected) {
      std::printf("unexpected: %s, %lld times: %s\n", name.c_str(), static_cast<long long>(count),
                  words.c_str());
    }
  }
  for (const std::string& error : r.server_errors) std::printf("server: %s\n", error.c_str());
  for (const std::string& name : r.never_called) std::printf("never called: %s\n", name.c_str());
  if (r.grew_too_much()) {
    std::printf("server memory: above its limit of %s\n", HumanBytes(r.resident_limit()).c_str());
  }
  std::printf(
      "%d clients, %.1f s: %lld calls, %.0f a second; server memory %s -> %s; %lld "
      "unexpected\n",
      clients, r.seconds, static_cast<long long>(r.calls()),
      static_cast<double>(r.calls()) / r.seconds, HumanBytes(r.resident_start).c_str(),
      HumanBytes(r.resident_end).c_str(), static_cast<long long>(r.unexpected()));
  std::printf("second half: %+.2f MiB a minute, %lld to %lld file descriptors\n",
              r.held.mib.a_minute, static_cast<long long>(r.held.least_fds),
              static_cast<long long>(r.held.most_fds));
}

void PrintJson(const SoakResult& r, int clients) {
  nlohmann::json calls = nlohmann::json::object();
  for (const auto& [name, tally] : r.tallies) {
    calls[name] = {{"calls", tally.ms.size()},
                   {"p50_ms", Quantile(tally.ms, 0.5)},
                   {"p99_ms", Quantile(tally.ms, 0.99)},
                   {"unexpected", tally.unexpected}};
  }
  nlohmann::json out = {{"clients", clients},
                        {"seconds", r.seconds},
                        {"calls", r.calls()},
                        {"calls_per_s", static_cast<double>(r.calls()) / r.seconds},
                        {"unexpected", r.unexpected()},
                        {"resident_start_bytes", r.resident_start},
                        {"resident_end_bytes", r.resident_end},
                        {"resident_limit_bytes", r.resident_limit()},
                        {"second_half", r.held.ToJson()},
                        {"never_called", r.never_called},
                        {"server_errors", r.server_errors},
                        {"by_call", std::move(calls)}};
  std::printf("%s\n", out.dump(1).c_str());
}

int Main(int argc, char** argv) {
  CLI::App app("Many clients of all kinds at once, against a real fusiond.");
  int clients = 64;
  double seconds = 60;
  uint64_t seed = 1;
  bool json = false;
  app.add_option("--clients", clients, "at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "how long")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.add_option("--seed", seed, "of what is called")->capture_default_str();
  app.add_flag("--json", json, "one JSON object");
  int64_t memory_limit = int64_t{256} << 20;
  app.add_option("--memory-limit", memory_limit, "of the server; see fusiond --help")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  std::vector<std::string> flags;
  app.add_option("--server-flag", flags, "passed to fusiond; may be given more than once")
      ->allow_extra_args(false);
  CLI11_PARSE(app, argc, argv);
  absl::StatusOr<SoakResult> result = Soak(clients, seconds, seed, memory_limit, flags);
  if (!result.ok()) {
    std::fprintf(stderr, "soak: %s\n", std::string(Message(result.status())).c_str());
    return 1;
  }
  if (json) {
    PrintJson(*result, clients);
  } else {
    PrintText(*result, clients);
  }
  return result->sound() ? 0 : 1;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
