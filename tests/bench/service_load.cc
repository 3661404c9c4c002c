// What fusiond takes beside a gRPC server that does nothing, and how it stands more than it can do:
//
//   service_load warm --seconds 2 --rounds 15
//     PlanFusion that was answered before, and an echo of the same sizes in turn, 8 calls under way
//   service_load warm --nodes 10000
//     the same for a graph of so many nodes, and what parsing its bytes takes
//   service_load overload --seconds 60 --times 4 --rounds 21 --round-seconds 5
//     plans of new graphs, four times as many as it makes, for so long; then in turn as many as it
//     makes, four times that, and the most that could be expected: as many as it makes while a gRPC
//     server beside it does nothing but refuse the other three parts
//
// Servers are processes of their own; this one makes the load. JSON on stdout.
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/files/unique_fd.h"
#include "core/base/statistics/median_interval.h"
#include "core/base/statistics/quantile.h"
#include "tests/models/onnx_builder.h"
#include "tests/service/bare_server.h"
#include "tests/service/fusion_caller.h"
#include "tests/service/holdings_watch.h"
#include "tests/service/load_generator.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

using grpc::StatusCode;
using nlohmann::ordered_json;

constexpr char kPlan[] = "/fusion.v1.FusionService/PlanFusion";

/// The echo in a process of its own, until this one ends. Without `bytes` it refuses.
class EchoProcess {
 public:
  EchoProcess(const std::string& self, const std::string& address, std::optional<size_t> bytes) {
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string size = StrCat("--bytes=", bytes.value_or(0));
    execl(self.c_str(), self.c_str(), "echo", "--address", address.c_str(),
          bytes.has_value() ? size.c_str() : nullptr, nullptr);
    _exit(127);
  }
  ~EchoProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  EchoProcess(const EchoProcess&) = delete;
  EchoProcess& operator=(const EchoProcess&) = delete;

 private:
  pid_t pid_ = -1;
};

std::unique_ptr<TestDaemon> StartDaemon(std::vector<std::string> args = {}) {
  absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND, std::move(args));
  if (!daemon.ok()) {
    std::fprintf(stderr, "%s\n", std::string(Message(daemon.status())).c_str());
    std::exit(1);
  }
  return *std::move(daemon);
}

// Of the loopback interface; nobody has it now.
int FreePort() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), generic, size) != 0 || getsockname(fd.get(), generic, &size) != 0) return 0;
  return ntohs(address.sin_port);
}

// Nodes without names, and tensors between them with short ones.
void Shorten(onnx::GraphProto* graph) {
  std::map<std::string, std::string> names;
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    node.clear_name();
    for (std::string& input : *node.mutable_input()) {
      if (auto it = names.find(input); it != names.end()) input = it->second;
    }
    if (node.output(0) == graph->output(0).name()) continue;
    std::string& name = names[node.output(0)];
    name = StrCat("value", names.size());
    node.set_output(0, name);
  }
}

// Blocks of three ops, all alike: many nodes, few kernels.
// Without `rows` they have a name. `lean`: one weight and short names, so that the request is small
// beside its answer.
onnx::ModelProto Chain(int64_t nodes, std::optional<int64_t> rows, bool lean = false) {
  OnnxBuilder b("chain", /*seed=*/1, /*dynamic=*/!rows.has_value());
  const NamedDim first = rows.has_value() ? NamedDim{*rows} : NamedDim{8, "rows"};
  std::string x = b.Input("x", DType::kF32, {first, {64}});
  const std::string shared = lean ? b.Weight("w", {64, 64}) : "";
  for (int64_t i = 0; i + 3 <= nodes; i += 3) {
    auto scope = b.Enter(lean ? "b" : StrCat("block.", i / 3));
    x = b.Op("Relu", {b.Op("MatMul", {x, lean ? shared : b.Weight("weight", {64, 64})})});
    x = b.Op("Softmax", {x});
  }
  b.Output(x, DType::kF32, {first, {64}});
  onnx::ModelProto model = std::move(b).Finish();
  if (lean) Shorten(model.mutable_graph());
  // As a client sends it.
  for (onnx::TensorProto& weight : *model.mutable_graph()->mutable_initializer()) {
    weight.clear_raw_data();
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    onnx::StringStringEntryProto* entry = weight.add_external_data();
    entry->set_key("location");
    entry->set_value("weights");
  }
  return model;
}

ordered_json SpreadJson(const std::vector<double>& values) {
  const MedianInterval interval = MedianOf(values);
  return {{"median", interval.median}, {"low", interval.low}, {"high", interval.high}};
}

double ParseMilliseconds(const std::string& request) {
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    const Nanoseconds start = Clock::Real().Now();
    v1::PlanFusionRequest parsed;
    onnx::ModelProto model;
    if (!parsed.ParseFromString(request) || !model.ParseFromString(parsed.onnx_model())) return 0;
    times.push_back(ToMilliseconds(Clock::Real().Now() - start));
  }
  return Quantile(times, 0.5);
}

struct WarmOptions {
  std::string model = "layernorm";
  int64_t nodes = 0;
  int64_t most_rows = 0;
  bool lean = false;
  bool tcp = false;
  int outstanding = 8;
  int connections = 2;
  double seconds = 2;
  int rounds = 15;
  std::string address;
};

int Warm(const std::string& self, const WarmOptions& options) {
  ScratchDir dir;
  std::unique_ptr<TestDaemon> daemon;
  if (options.address.empty()) {
    daemon = options.tcp ? StartDaemon()
                         : StartDaemon({"--listen", StrCat("unix:", dir.path("fusiond"))});
  }
  const std::string address = daemon == nullptr ? options.address : daemon->address();
  FusionCaller caller(address);
  const std::optional<int64_t> rows = options.most_rows > 0 ? std::nullopt : std::optional(8);
  v1::PlanFusionRequest message = options.nodes > 0
                                      ? RequestFor(Chain(options.nodes, rows, options.lean))
                                      : RequestFor(SentModel(options.model));
  if (options.most_rows > 0) {
    v1::DimRange& range = (*message.mutable_options()->mutable_dim_ranges())["rows"];
    range.set_min(1);
    range.set_max(options.most_rows);
  }
  v1::PlanFusionResponse response;
  grpc::Status made = caller.Plan(message, &response, std::chrono::minutes(10));
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.error_message().c_str());
    return 1;
  }
  const std::string request = message.SerializeAsString();
  const size_t reply_bytes = response.ByteSizeLong();
  const std::string echo_address =
      options.tcp ? StrCat("127.0.0.1:", FreePort()) : StrCat("unix:", dir.path("echo"));
  EchoProcess echo(self, echo_address, reply_bytes);
  const grpc::ByteBuffer buffer = AsBuffer(request);
  LoadGenerator ours(address, kPlan, options.connections);
  LoadGenerator bare(echo_address, kPlan, options.connections);
  auto same = [&](int64_t) { return buffer; };
  std::vector<double> qps, echo_qps, p99, echo_p99, p50, echo_p50, qps_ratio, p99_ratio;
  int64_t failed = 0;
  for (int round = -1; round < options.rounds; ++round) {
    const Load one = ours.Closed(same, options.outstanding, options.seconds);
    const Load other = bare.Closed(same, options.outstanding, options.seconds);
    if (round < 0) continue;  // the first warms both up
    for (const auto& [code, ms] : one.ms) {
      if (code != StatusCode::OK) failed += static_cast<int64_t>(ms.size());
    }
    qps.push_back(one.goodput());
    echo_qps.push_back(other.goodput());
    p50.push_back(one.Quantile(StatusCode::OK, 0.5));
    echo_p50.push_back(other.Quantile(StatusCode::OK, 0.5));
    p99.push_back(one.Quantile(StatusCode::OK, 0.99));
    echo_p99.push_back(other.Quantile(StatusCode::OK, 0.99));
    qps_ratio.push_back(qps.back() / echo_qps.back());
    p99_ratio.push_back(p99.back() / echo_p99.back());
  }
  // What the server itself says of one call at a time.
  std::vector<double> recall;
  for (int i = 0; i < 101; ++i) {
    if (!caller.Plan(message, &response).ok()) continue;
    if (response.stages_size() == 1 && response.stages(0).stage() == "recall") {
      recall.push_back(response.stages(0).milliseconds());
    }
  }
  const double parse = ParseMilliseconds(request);
  ordered_json out = {{"request_bytes", request.size()},
                      {"reply_bytes", reply_bytes},
                      {"outstanding", options.outstanding},
                      {"rounds", options.rounds},
                      {"failed", failed},
                      {"qps", SpreadJson(qps)},
                      {"echo_qps", SpreadJson(echo_qps)},
                      {"qps_ratio", SpreadJson(qps_ratio)},
                      {"p50_ms", SpreadJson(p50)},
                      {"echo_p50_ms", SpreadJson(echo_p50)},
                      {"p99_ms", SpreadJson(p99)},
                      {"echo_p99_ms", SpreadJson(echo_p99)},
                      {"p99_ratio", SpreadJson(p99_ratio)},
                      {"recalled_calls", recall.size()},
                      {"recall_ms", recall.empty() ? 0 : Quantile(recall, 0.5)},
                      {"parse_ms", parse}};
  std::printf("%s\n", out.dump(2).c_str());
  return 0;
}

struct OverloadOptions {
  double seconds = 60;
  double times = 4;
  int rounds = 21;
  double round_seconds = 5;
  double fill_seconds = 60;
};

// Of a long overload, each shown by itself: its goodput must not fall meanwhile.
constexpr int kParts = 6;

int Overload(const std::string& self, const OverloadOptions& options) {
  ScratchDir dir;
  // With caches that are soon full.
  auto daemon =
      StartDaemon({"--listen", StrCat("unix:", dir.path("fusiond")), "--memory-limit", "32MiB"});
  LoadGenerator load(daemon->address(), kPlan, 4);
  std::atomic<int64_t> fresh{0};
  // Each binds the rows to a number that nobody has sent before; planning is what it takes. The
  // machine is the server's: all but the number is the same bytes, and a message may come in parts.
  const grpc::Slice same(
      RequestFor(Chain(12, std::nullopt), v1::PLAN_MODE_PLAN_ONLY).SerializeAsString());
  auto requests = [&](int64_t) {
    v1::PlanFusionRequest part;
    (*part.mutable_options()->mutable_dim_bindings())["rows"] = 1 + fresh++;
    const grpc::Slice parts[] = {same, grpc::Slice(part.SerializeAsString())};
    return grpc::ByteBuffer(parts, std::size(parts));
  };
  // What it remembers is full before anything is measured.
  load.Closed(requests, 32, options.fill_seconds);
  // As much as it can do, at the concurrency that suits it.
  auto at_peak = [&] { return load.Closed(requests, 32, options.round_seconds); };
  const double peak = at_peak().goodput();
  if (peak == 0) {
    std::fprintf(stderr, "no call ends OK\n");
    return 1;
  }
  auto overload = [&](const LoadGenerator& generator, double rate, double seconds) {
    return generator.Open(requests, rate, seconds, std::chrono::seconds(2));
  };
  HoldingsWatch watch(daemon->pid());
  const Load over = overload(load, options.times * peak, options.seconds);
  const Holdings held = watch.Stop();
  // Side by side, as a machine and what caches hold change over minutes.
  const std::string refuser_address = StrCat("unix:", dir.path("refuser"));
  EchoProcess refuser(self, refuser_address, std::nullopt);
  LoadGenerator excess(refuser_address, kPlan, 4);
  std::vector<double> peaks, goodputs, roofs;
  for (int round = 0; round < options.rounds; ++round) {
    peaks.push_back(at_peak().goodput());
    const double rate = options.times * peaks.back();
    goodputs.push_back(overload(load, rate, options.round_seconds).goodput());
    // What is sent above that costs sender and transport something, whoever refuses it how soon.
    std::thread beside([&] { overload(excess, rate - peaks.back(), options.round_seconds); });
    roofs.push_back(at_peak().goodput());
    beside.join();
    if (peaks.back() == 0 || roofs.back() == 0) {
      std::fprintf(stderr, "round %d: no call ends OK\n", round);
      return 1;
    }
  }
  ordered_json codes;
  int64_t other = 0;
  for (const auto& [code, ms] : over.ms) {
    codes[absl::StatusCodeToString(static_cast<absl::StatusCode>(code))] = ms.size();
    if (code != StatusCode::OK && code != StatusCode::RESOURCE_EXHAUSTED &&
        code != StatusCode::DEADLINE_EXCEEDED) {
      other += static_cast<int64_t>(ms.size());
    }
  }
  ordered_json out = {{"offered", options.times * peak},
                      {"goodput", over.goodput()},
                      {"goodput_of_parts", over.GoodputOfParts(kParts)},
                      {"rounds", options.rounds},
                      {"peak_goodput", SpreadJson(peaks)},
                      {"goodput_ratio", SpreadJson(Ratios(goodputs, peaks))},
                      {"roof_ratio", SpreadJson(Ratios(roofs, peaks))},
                      {"goodput_of_roof", SpreadJson(Ratios(goodputs, roofs))},
                      {"seconds", over.seconds},
                      {"codes", codes},
                      {"unexpected", other},
                      {"refused_p50_ms", over.Quantile(StatusCode::RESOURCE_EXHAUSTED, 0.5)},
                      {"refused_p99_ms", over.Quantile(StatusCode::RESOURCE_EXHAUSTED, 0.99)},
                      {"ok_p50_ms", over.Quantile(StatusCode::OK, 0.5)},
                      {"ok_p99_ms", over.Quantile(StatusCode::OK, 0.99)},
                      {"second_half", held.ToJson()}};
  std::printf("%s\n", out.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  CLI::App app("Load for fusiond.");
  app.require_subcommand(1);
  fusion::WarmOptions warm;
  CLI::App* warm_app = app.add_subcommand("warm", "beside an echo");
  warm_app->add_option("--model", warm.model, "generated model")->capture_default_str();
  warm_app->add_option("--nodes", warm.nodes, "a chain of so many nodes instead");
  warm_app->add_flag("--lean", warm.lean, "of such a chain: a small request for its answer");
  warm_app->add_flag("--tcp", warm.tcp, "over the loopback interface; default: a unix socket");
  warm_app->add_option("--most-rows", warm.most_rows,
                       "of such a chain, of which one plan is for all numbers of rows up to this");
  warm_app->add_option("--outstanding", warm.outstanding)->capture_default_str();
  warm_app->add_option("--connections", warm.connections)->capture_default_str();
  warm_app->add_option("--seconds", warm.seconds, "of each side, each round")
      ->capture_default_str();
  warm_app->add_option("--rounds", warm.rounds)->capture_default_str();
  warm_app->add_option("--address", warm.address, "a fusiond that runs; default: one of its own");
  fusion::OverloadOptions overload;
  CLI::App* overload_app = app.add_subcommand("overload", "more than it can do");
  overload_app->add_option("--seconds", overload.seconds)->capture_default_str();
  overload_app->add_option("--times", overload.times)->capture_default_str();
  overload_app->add_option("--rounds", overload.rounds, "of peak, overload and roof in turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  overload_app->add_option("--round-seconds", overload.round_seconds, "of each of them")
      ->capture_default_str();
  overload_app->add_option("--fill-seconds", overload.fill_seconds, "of the same load before")
      ->capture_default_str();
  std::string address;
  std::optional<size_t> bytes;
  CLI::App* echo_app = app.add_subcommand("echo", "the server that does nothing");
  echo_app->add_option("--address", address)->required();
  echo_app->add_option("--bytes", bytes, "of an answer; without it all is refused");
  CLI11_PARSE(app, argc, argv);
  if (*echo_app) {
    std::optional<std::string> answer;
    if (bytes.has_value()) answer.emplace(*bytes, 'x');
    fusion::BareServer server(address, answer);
    if (!server.running()) return 1;
    server.Wait();
    return 0;
  }
  if (*overload_app) return fusion::Overload(argv[0], overload);
  return fusion::Warm(argv[0], warm);
}
