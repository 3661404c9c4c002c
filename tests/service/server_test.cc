// The real fusiond, its real workers and store, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kService = "fusion.v1.FusionService";

// Compiles what it is tried out with and nothing else.
constexpr std::string_view kIdleCompiler = R"(#!/bin/sh
case "$1" in --version|-print-prog-name=*) exec /usr/bin/g++ "$@";; esac
grep -q fusion_probe kernel.cc && exec /usr/bin/g++ "$@"
echo "kernel.cc:1: error: not today"
exit 1
)";

TEST_F(ServerTest, MatMulAddReluIsCompiledCheckedAndDelivered) {
  Start();
  v1::PlanFusionResponse response = caller_->Plan(RequestFor(LinearReluModel().proto()));
  EXPECT_EQ(response.cache(), v1::CACHE_OUTCOME_MISS);
  EXPECT_EQ(response.plan_key().size(), 32u);
  EXPECT_EQ(response.plan().totals().kernels(), 1);
  EXPECT_THAT(response.binding().inputs(), ElementsAre("x"));
  EXPECT_THAT(response.binding().outputs(), ElementsAre("y"));
  ASSERT_GT(response.stages_size(), 3);
  EXPECT_EQ(response.stages(0).stage(), "decode");
  ASSERT_THAT(response.kernels(), SizeIs(response.plan().kernels_size()));
  for (const v1::KernelStatus& kernel : response.kernels()) {
    EXPECT_EQ(kernel.state(), v1::KERNEL_STATE_READY);
    EXPECT_TRUE(kernel.check().verified()) << kernel.check().reason();
    EXPECT_FALSE(kernel.cached());
    EXPECT_GT(kernel.compile_ms(), 0);
  }

  std::vector<StreamedKernel> kernels;
  std::vector<std::string> keys = KeysOf(response);
  grpc::Status status = caller_->GetKernels(keys, &kernels);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_THAT(kernels, SizeIs(keys.size()));
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(kernels[i].key, keys[i]);
    EXPECT_EQ(kernels[i].state, v1::KERNEL_STATE_READY);
    EXPECT_EQ(kernels[i].binary.substr(1, 3), "ELF");
    Digest digest = Sha256(kernels[i].binary);
    EXPECT_EQ(std::string(digest.bytes.begin(), digest.bytes.end()), kernels[i].content_sha256);
    EXPECT_EQ(kernels[i].content_sha256, response.kernels(static_cast<int>(i)).content_sha256());
    EXPECT_EQ(static_cast<int64_t>(kernels[i].binary.size()),
              response.kernels(static_cast<int>(i)).bytes());
  }
}

TEST_F(ServerTest, ABertLayerIsCompiledOnceAndFoundInMemoryAndAfterARestartInTheStore) {
  StartWithStore();
  v1::PlanFusionRequest request = RequestFor(SentModel("bert_layer"));
  v1::PlanFusionResponse cold = caller_->Plan(request);
  EXPECT_EQ(cold.cache(), v1::CACHE_OUTCOME_MISS);
  EXPECT_THAT(StatesOf(cold), Each(v1::KERNEL_STATE_READY));
  EXPECT_LE(cold.plan().totals().kernels(), 9);
  EXPECT_EQ(cold.plan().fallbacks_size(), 0);

  v1::PlanFusionResponse warm = caller_->Plan(request);
  EXPECT_EQ(warm.cache(), v1::CACHE_OUTCOME_HIT_MEMORY);
  EXPECT_EQ(warm.plan().SerializeAsString(), cold.plan().SerializeAsString());
  EXPECT_EQ(warm.plan_key(), cold.plan_key());

  v1::PlanFusionResponse other = caller_->Plan(RequestFor(SentModel("bert_layer", 1, /*seed=*/7)));
  EXPECT_EQ(other.cache(), v1::CACHE_OUTCOME_HIT_MEMORY) << "weight values are in no key";
  EXPECT_EQ(Status()["workers"]["done"], cold.plan().kernels_size());

  EXPECT_EQ(daemon_->Stop().exit_code, 0);
  StartWithStore();
  v1::PlanFusionResponse later = caller_->Plan(request);
  EXPECT_EQ(later.cache(), v1::CACHE_OUTCOME_HIT_STORE);
  EXPECT_EQ(later.plan().SerializeAsString(), cold.plan().SerializeAsString());
  for (const v1::KernelStatus& kernel : later.kernels()) EXPECT_TRUE(kernel.cached());
  std::vector<StreamedKernel> kernels;
  EXPECT_TRUE(caller_->GetKernels(KeysOf(later), &kernels).ok());
  EXPECT_THAT(kernels, SizeIs(later.plan().kernels_size()));
  EXPECT_EQ(Status()["workers"]["done"], 0) << "nothing was compiled again";
}

TEST_F(ServerTest, TwelveEqualLayersAreASmallRequestAndTheKernelsOfOne) {
  Start();
  v1::PlanFusionRequest twelve = RequestFor(SentModel("bert_12l", 12), v1::PLAN_MODE_PLAN_ONLY);
  EXPECT_LT(twelve.ByteSizeLong(), 100'000u);
  auto plan = [&](int layers) {
    return caller_->Plan(RequestFor(SentModel("bert_12l", layers), v1::PLAN_MODE_PLAN_ONLY));
  };
  v1::PlanFusionResponse one = plan(1), two = plan(2), all = caller_->Plan(twelve);
  auto keys = [](const v1::PlanFusionResponse& response) {
    std::vector<std::string> all_keys = KeysOf(response);
    return std::set<std::string>(all_keys.begin(), all_keys.end());
  };
  EXPECT_EQ(keys(all), keys(two));
  EXPECT_EQ(static_cast<size_t>(all.plan().kernels_size()), keys(all).size()) << "no key twice";
  // Layers share the extended mask, which a kernel of the first of them makes besides its own work;
  // a single layer makes it where it needs it.
  EXPECT_EQ(all.plan().kernels_size(), one.plan().kernels_size() + 1);
  EXPECT_EQ(all.plan().totals().kernels(), 12 * one.plan().totals().kernels());
}

TEST_F(ServerTest, SixteenEqualRequestsAtOnceCompileEachKernelOnce) {
  StartGated();
  CloseGate();
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  std::vector<std::future<v1::PlanFusionResponse>> answers;
  for (int i = 0; i < 16; ++i) {
    answers.push_back(std::async(std::launch::async, [&] { return caller_->Plan(request); }));
  }
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 16; }));
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_singleflight_waiters") == 16; }));
  OpenGate();
  std::set<std::string> plans;
  int misses = 0;
  size_t kernels = 0;
  for (auto& answer : answers) {
    v1::PlanFusionResponse response = answer.get();
    plans.insert(response.plan().SerializeAsString());
    EXPECT_THAT(StatesOf(response), Each(v1::KERNEL_STATE_READY));
    misses += response.cache() == v1::CACHE_OUTCOME_MISS ? 1 : 0;
    kernels = static_cast<size_t>(response.kernels_size());
  }
  EXPECT_THAT(plans, SizeIs(1));
  EXPECT_EQ(misses, 1);
  EXPECT_EQ(Status()["workers"]["done"], kernels);
  EXPECT_EQ(Metric("fusion_compiles_total{result=\"ok\"}"), static_cast<double>(kernels));
}

TEST_F(ServerTest, PlanOnlyCompilesNothing) {
  Start();
  v1::PlanFusionResponse response =
      caller_->Plan(RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY));
  EXPECT_GT(response.plan().kernels_size(), 0);
  EXPECT_THAT(StatesOf(response), Each(v1::KERNEL_STATE_PENDING));
  EXPECT_EQ(Status()["workers"]["done"], 0);
  EXPECT_EQ(Status()["workers"]["running"], 0);
}

TEST_F(ServerTest, ByDeadlineAnswersAtOnceAndGetKernelsWaitsForTheRest) {
  StartGated();
  CloseGate();
  v1::PlanFusionResponse response =
      caller_->Plan(RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_BY_DEADLINE));
  EXPECT_THAT(StatesOf(response), Contains(v1::KERNEL_STATE_PENDING));
  std::vector<StreamedKernel> kernels;
  grpc::Status impatient = caller_->GetKernels(KeysOf(response), &kernels, milliseconds(200));
  EXPECT_EQ(impatient.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(kernels, SizeIs(0));
  OpenGate();
  grpc::Status status = caller_->GetKernels(KeysOf(response), &kernels);
  EXPECT_TRUE(status.ok()) << status.error_message();
  ASSERT_THAT(kernels, SizeIs(response.plan().kernels_size()));
  for (const StreamedKernel& kernel : kernels) EXPECT_EQ(kernel.state, v1::KERNEL_STATE_READY);
}

TEST_F(ServerTest, ADeadlineOrACancellationEndsTheCallButNotTheWork) {
  StartGated({"--abandoned-build-seconds", "-1"});  // also if the build has not begun by then
  CloseGate();
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto());
  v1::PlanFusionResponse response;
  EXPECT_EQ(caller_->Plan(request, &response, milliseconds(300)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 0; }));

  grpc::ClientContext context;
  auto cancelled = std::async(std::launch::async, [&] {
    v1::PlanFusionResponse nothing;
    return caller_->stub().PlanFusion(&context, request, &nothing);
  });
  EXPECT_TRUE(Eventually(
      [&] { return Metric("fusion_inflight_calls") == 1 && Status()["workers"]["running"] > 0; }));
  context.TryCancel();
  EXPECT_EQ(cancelled.get().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 0; }));
  EXPECT_TRUE(daemon_->WaitForOutput("\"code\":\"CANCELLED\""));

  OpenGate();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_cache_writes_total{result=\"ok\"}") == 1; }));
  response = caller_->Plan(request);
  EXPECT_EQ(response.cache(), v1::CACHE_OUTCOME_HIT_MEMORY) << "finished for the next one";
}

TEST_F(ServerTest, KilledWhileCompilingTheNextServerStartsOnTheSameStore) {
  StartGated({"--store", dir_.path("store"), "--scratch", dir_.path()});
  v1::PlanFusionRequest first = RequestFor(LinearReluModel(4).proto());
  caller_->Plan(first);
  CloseGate();
  v1::PlanFusionRequest second = RequestFor(LinearReluModel(16).proto());
  auto lost = std::async(std::launch::async, [&] {
    v1::PlanFusionResponse nothing;
    return caller_->Plan(second, &nothing).error_code();
  });
  ASSERT_TRUE(Eventually([&] { return Status()["workers"]["running"] > 0; }));
  daemon_->Send(SIGKILL);
  EXPECT_EQ(daemon_->Wait().signal, SIGKILL);
  EXPECT_EQ(lost.get(), grpc::StatusCode::UNAVAILABLE);

  StartGated({"--store", dir_.path("store"), "--scratch", dir_.path()});
  EXPECT_EQ(caller_->Plan(first).cache(), v1::CACHE_OUTCOME_HIT_STORE);
  EXPECT_THAT(StatesOf(caller_->Plan(second)), Each(v1::KERNEL_STATE_READY));
  EXPECT_EQ(daemon_->Stop().exit_code, 0);
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("fusiond-"))
        << "left behind by the killed server: " << entry.path();
  }
}

TEST_F(ServerTest, DrainingSaysSoAndLetsRunningCallsEnd) {
  StartGated({"--drain-seconds", "3"});
  EXPECT_TRUE(caller_->Healthy());
  EXPECT_TRUE(caller_->Healthy(kService));
  EXPECT_EQ(HttpGet(daemon_->admin_address(), "/readyz").code, 200);
  CloseGate();
  auto running = std::async(std::launch::async,
                            [&] { return caller_->Plan(RequestFor(LinearReluModel().proto())); });
  ASSERT_TRUE(Eventually([&] { return Status()["workers"]["running"] > 0; }));
  daemon_->Send(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return HttpGet(daemon_->admin_address(), "/readyz").code == 503; }));
  EXPECT_EQ(HttpGet(daemon_->admin_address(), "/healthz").code, 200);
  EXPECT_TRUE(Eventually([&] { return !caller_->Healthy(); }));
  EXPECT_FALSE(caller_->Healthy(kService));
  OpenGate();
  EXPECT_THAT(StatesOf(running.get()), Each(v1::KERNEL_STATE_READY));
  ProgramEnd end = daemon_->Wait();
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output, HasSubstr("\"event\":\"stopped\""));
}

TEST_F(ServerTest, CallsThatDoNotEndInTimeAreCutOff) {
  StartGated({"--grace-seconds", "0.2"});
  CloseGate();
  auto running = std::async(std::launch::async, [&] {
    v1::PlanFusionResponse nothing;
    return caller_->Plan(RequestFor(LinearReluModel().proto()), &nothing).error_code();
  });
  ASSERT_TRUE(Eventually([&] { return Status()["workers"]["running"] > 0; }));
  EXPECT_EQ(daemon_->Stop().exit_code, 0);
  EXPECT_NE(running.get(), grpc::StatusCode::OK);
}

TEST_F(ServerTest, AFullServerRefusesAtOnceAndRecovers) {
  StartGated({"--request-threads", "1", "--request-queue", "1"});
  CloseGate();
  // Those of the start too count until their answers are sent.
  ASSERT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 0; }));
  std::vector<std::future<v1::PlanFusionResponse>> let_in;
  auto let_another_in = [&] {
    let_in.push_back(std::async(
        std::launch::async, [&] { return caller_->Plan(RequestFor(LinearReluModel().proto())); }));
  };
  let_another_in();
  EXPECT_TRUE(Eventually([&] { return Status()["workers"]["running"] > 0; })) << "has the thread";
  let_another_in();
  EXPECT_TRUE(Eventually([&] { return Status()["calls"]["queued"] == 1; })) << "waits for it";
  v1::PlanFusionResponse response;
  grpc::Status refused = caller_->Plan(RequestFor(LinearReluModel().proto()), &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("2 calls are under way"));
  EXPECT_EQ(Metric("fusion_admission_rejected_total{reason=\"calls\"}"), 1);
  OpenGate();
  for (auto& answer : let_in) EXPECT_THAT(StatesOf(answer.get()), Each(v1::KERNEL_STATE_READY));
  // A call counts until its answer is sent, a moment longer than the caller waits for it.
  ASSERT_TRUE(Eventually([&] { return Metric("fusion_inflight_calls") == 0; }));
  EXPECT_THAT(StatesOf(caller_->Plan(RequestFor(LinearReluModel().proto()))),
              Each(v1::KERNEL_STATE_READY));
}

TEST_F(ServerTest, GetKernelsAnswersInOrderAndSaysWhatIsMissing) {
  Start();
  std::vector<std::string> keys = KeysOf(caller_->Plan(RequestFor(LinearReluModel().proto())));
  std::string unknown(32, 'x');
  keys.insert(keys.begin(), unknown);
  keys.push_back(keys[1]);
  std::vector<StreamedKernel> kernels;
  ASSERT_TRUE(caller_->GetKernels(keys, &kernels).ok());
  ASSERT_THAT(kernels, SizeIs(keys.size()));
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(kernels[i].key, keys[i]);
  EXPECT_EQ(kernels[0].state, v1::KERNEL_STATE_UNKNOWN);
  EXPECT_THAT(kernels[0].error, HasSubstr("plan again"));
  EXPECT_EQ(kernels.back().binary, kernels[1].binary);

  kernels.clear();
  EXPECT_TRUE(caller_->GetKernels({}, &kernels).ok());
  EXPECT_THAT(kernels, SizeIs(0));
  grpc::Status many = caller_->GetKernels(std::vector<std::string>(4097, unknown), &kernels);
  EXPECT_EQ(many.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(many.error_message(), HasSubstr("keys: 4097 entries; expected at most 4096"));
  grpc::Status shorter = caller_->GetKernels({unknown, "abc"}, &kernels);
  EXPECT_EQ(shorter.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(shorter.error_message(), HasSubstr("keys[1]"));
}

TEST_F(ServerTest, DumpsAskedForComeBack) {
  Start();
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY);
  for (v1::DumpKind kind : {v1::DUMP_KIND_GRAPH, v1::DUMP_KIND_PROGRAM, v1::DUMP_KIND_SMG,
                            v1::DUMP_KIND_SCHEDULE, v1::DUMP_KIND_SOURCE}) {
    request.add_dumps(kind);
  }
  std::set<int> kinds;
  v1::PlanFusionResponse response = caller_->Plan(request);
  for (const v1::Dump& dump : response.dumps()) {
    EXPECT_FALSE(dump.text().empty()) << dump.name();
    kinds.insert(dump.kind());
  }
  EXPECT_THAT(kinds, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(ServerTest, ReflectionListsTheServicesWhereItIsWanted) {
  Start();
  EXPECT_THAT(caller_->Reflection(), Not(HasSubstr(kService)));
  Start({"--reflection"});
  std::string answer = caller_->Reflection();
  EXPECT_THAT(answer, HasSubstr(kService));
  EXPECT_THAT(answer, HasSubstr("grpc.health.v1.Health"));
}

TEST_F(ServerTest, AUnixSocketIsTheOwnersAndTakesThePlaceOfADeadOnes) {
  std::string path = dir_.path("fusiond.sock");
  Start({"--listen", StrCat("unix:", path)});
  struct stat facts {};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_TRUE(caller_->Healthy());
  daemon_->Send(SIGKILL);
  daemon_->Wait();
  EXPECT_TRUE(std::filesystem::exists(path)) << "nobody removed it";
  Start({"--listen", StrCat("unix:", path)});
  EXPECT_TRUE(caller_->Healthy());
  EXPECT_EQ(daemon_->Stop().exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ServerTest, MetricsAreWellFormedAndComplete) {
  StartWithStore();
  caller_->Plan(RequestFor(LinearReluModel().proto()));
  caller_->Plan(RequestFor(LinearReluModel().proto()));
  HttpAnswer answer = HttpGet(daemon_->admin_address(), "/metrics");
  EXPECT_THAT(answer.headers, HasSubstr("text/plain; version=0.0.4"));
  std::string typed;
  for (std::string_view line : StrSplit(answer.body, '\n')) {
    if (line.empty() || line.starts_with("# HELP ")) continue;
    if (line.starts_with("# TYPE ")) {
      typed = StrSplit(line, ' ')[2];
      continue;
    }
    EXPECT_TRUE(line.starts_with(typed)) << line << " is not of " << typed;
    size_t space = line.rfind(' ');
    ASSERT_NE(space, std::string_view::npos) << line;
    std::string value(line.substr(space + 1));
    size_t used = 0;
    EXPECT_NO_THROW(std::stod(value, &used)) << line;
    EXPECT_EQ(used, value.size()) << line;
  }
  for (const char* name : {"fusion_build_info",
                           "fusion_cache_requests_total",
                           "fusion_cache_bytes",
                           "fusion_cache_limit_bytes",
                           "fusion_recent_bytes",
                           "fusion_recent_limit_bytes",
                           "fusion_cache_evictions_total",
                           "fusion_compile_seconds",
                           "fusion_compiles_total",
                           "fusion_compile_queue_depth",
                           "fusion_compile_queue_limit",
                           "fusion_workers",
                           "fusion_singleflight_waiters",
                           "fusion_singleflight_shared_total",
                           "fusion_admission_rejected_total",
                           "fusion_measurements_ingested_total",
                           "fusion_measurements_bytes",
                           "fusion_store_writable",
                           "fusion_stage_seconds",
                           "grpc_server_started_total",
                           "grpc_server_handled_total",
                           "grpc_server_handling_seconds",
                           "grpc_server_msg_received_total",
                           "grpc_server_msg_sent_total",
                           "process_cpu_seconds_total",
                           "process_resident_memory_bytes",
                           "process_open_fds",
                           "process_start_time_seconds"}) {
    EXPECT_THAT(answer.body, HasSubstr(StrCat("# TYPE ", name, " ")));
  }
  EXPECT_EQ(Metric("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"PlanFusion\","
                   "grpc_service=\"fusion.v1.FusionService\",grpc_type=\"unary\"}"),
            2);
  EXPECT_EQ(Metric("fusion_plans_total{cache=\"memory\"}"), 1);
  EXPECT_EQ(Metric("fusion_store_writable{tier=\"disk\"}"), 1);
  EXPECT_GT(Metric("process_resident_memory_bytes"), 1e6);
}

TEST_F(ServerTest, TheStatusPageSaysWhatRuns) {
  StartWithStore();
  caller_->Plan(RequestFor(LinearReluModel().proto()));
  ASSERT_TRUE(Eventually([&] { return Status()["workers"]["sandbox"] != ""; }));
  json status = Status();
  EXPECT_EQ(status["version"], "0.1.0");
  EXPECT_EQ(status["ready"], true);
  EXPECT_EQ(status["addresses"][0], daemon_->address());
  EXPECT_EQ(status["admin"], daemon_->admin_address());
  EXPECT_EQ(status["config"]["store"], dir_.path("store"));
  EXPECT_EQ(status["toolchain"]["family"], "gcc");
  EXPECT_EQ(status["toolchain"]["isas"]["x86-64-v2"]["supported"], true);
  EXPECT_EQ(status["stores"].size(), 2u);
  EXPECT_EQ(status["stores"][1]["tier"], "disk");
  EXPECT_EQ(status["stores"][1]["plans"], 1);
  EXPECT_EQ(status["calls"]["PlanFusion"]["finished"]["OK"], 1);
  EXPECT_EQ(HttpGet(daemon_->admin_address(), "/nothing").code, 404);
}

TEST_F(ServerTest, TheAdminPortShowsWhatTheCompilerSaidAboutAKernel) {
  std::string compiler = dir_.Write("idle-g++", std::string(kIdleCompiler));
  ASSERT_EQ(chmod(compiler.c_str(), 0700), 0);
  Start({"--allow-compiler", compiler});
  v1::PlanFusionResponse response =
      caller_->Plan(RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY));
  ASSERT_GT(response.kernels_size(), 0);
  Digest key;
  ASSERT_EQ(response.kernels(0).key().size(), key.bytes.size());
  std::copy_n(response.kernels(0).key().begin(), key.bytes.size(), key.bytes.begin());
  auto log = [this](const std::string& name) {
    return HttpGet(daemon_->admin_address(), StrCat("/compile_log/", name));
  };
  EXPECT_EQ(log(key.ToHex()).code, 404) << "nothing was compiled yet";
  v1::PlanFusionResponse failed;
  EXPECT_FALSE(caller_->Plan(RequestFor(LinearReluModel().proto()), &failed).ok());
  HttpAnswer answer = log(key.ToHex());
  EXPECT_EQ(answer.code, 200);
  EXPECT_THAT(answer.headers, HasSubstr("text/plain"));
  EXPECT_THAT(answer.body, HasSubstr("kernel.cc:1: error: not today"));
  for (const char* name : {"", "abc", "abc.log"}) EXPECT_EQ(log(name).code, 400) << name;
  EXPECT_EQ(log("..%2f..%2fowner.lock").code, 400) << "no key";
}

TEST_F(ServerTest, EveryCallLeavesOneLineOfJson) {
  Start();
  v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY);
  request.set_request_id("caller-17");
  v1::PlanFusionResponse response = caller_->Plan(request);
  ASSERT_TRUE(daemon_->WaitForOutput("caller-17"));
  int lines = 0;
  std::string log = daemon_->Stop().output;
  for (std::string_view text : StrSplit(log, '\n')) {
    if (text.empty()) continue;
    json line = json::parse(text, nullptr, false);
    ASSERT_TRUE(line.is_object()) << text;
    if (line["event"] != "rpc") continue;
    ++lines;
    EXPECT_EQ(line["method"], "PlanFusion");
    EXPECT_EQ(line["request_id"], "caller-17");
    EXPECT_EQ(line["code"], "OK");
    EXPECT_EQ(line["cache"], "planned");
    EXPECT_THAT(line["peer"].get<std::string>(), testing::AnyOf(testing::StartsWith("127.0.0.1:"),
                                                                testing::StartsWith("unix:uid=")));
    EXPECT_EQ(line["plan"].get<std::string>().size(), 64u);
    EXPECT_THAT(line["stages_ms"].get<std::string>(), HasSubstr("decode="));
  }
  EXPECT_EQ(lines, 1);
}

}  // namespace
}  // namespace fusion
