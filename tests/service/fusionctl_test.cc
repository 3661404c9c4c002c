// The real fusionctl against the real fusiond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/files/file.h"
#include "core/onnx/model_io.h"
#include "core/onnx/reference_weights.h"
#include "core/onnx/test_data.h"
#include "tests/models/models.h"
#include "tests/service/dot_syntax.h"
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kHostile = "*/ \"q\" \\ #include <x>\n$(x) </svg> %s";

// --- verify

struct Layer {
  std::string model;
  int64_t seq = 0;  // 0: the generator's
  friend void PrintTo(const Layer& layer, std::ostream* out) { *out << layer.model; }
};

class VerifyTest : public FusionctlTest, public testing::WithParamInterface<Layer> {};

TEST_P(VerifyTest, PassesFusedWithoutFallbacks) {
  ModelParams params = FindModel(GetParam().model)->defaults;
  if (GetParam().seq > 0) params.seq = GetParam().seq;
  if (GetParam().seq > 0) params.past = 0;
  Json report = CtlJson({"verify", Write(GetParam().model, params)});
  EXPECT_TRUE(report["pass"]) << report;
  EXPECT_EQ(report["fallbacks"], 0);
  EXPECT_EQ(report["reference"], "evaluator");
  EXPECT_FALSE(report["random_weights"]);
  EXPECT_LT(report["groups"], report["nodes"]);
  EXPECT_GE(report["kernels"], report["groups"]);
  ASSERT_FALSE(report["outputs"].empty());
  for (const Json& output : report["outputs"]) {
    EXPECT_EQ(output["outside"], 0) << output;
    EXPECT_GT(output["elements"], 0);
    EXPECT_GT(output["max_abs"], 0) << "nothing of this size is exact";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, VerifyTest,
                         testing::Values(Layer{"bert_layer"}, Layer{"vit_block"},
                                         Layer{"gpt2_layer"}, Layer{"gpt2_layer_nopast", 32},
                                         Layer{"llama_small"}, Layer{"mlp4_m64_n1024"},
                                         Layer{"layernorm"}, Layer{"mha"}),
                         [](const auto& test) { return test.param.model; });

TEST_F(FusionctlTest, VerifyTakesItsDataFromFiles) {
  absl::StatusOr<GeneratedModel> model = GenerateModel(*FindModel("mlp"), SmallMlp());
  ASSERT_TRUE(model.ok());
  std::string path = Write(model->model);
  TestDataSet data = MakeData(*model);
  ASSERT_TRUE(SaveTestDataSet(dir_.path("test_data_set_0"), data).ok());
  Json report = CtlJson({"verify", path, "--data", dir_.path("test_data_set_0")});
  EXPECT_TRUE(report["pass"]);
  EXPECT_EQ(report["reference"], "data");

  // One element of one output, far from the first.
  HostTensor& output = data.outputs[0].value;
  int64_t last = output.elements() - 1;
  output.SetDouble(last, output.GetDouble(last) + 1);
  ASSERT_TRUE(SaveTestDataSet(dir_.path("test_data_set_1"), data).ok());
  report = CtlJson({"verify", path, "--data", dir_.path("test_data_set_1")}, /*code=*/1);
  EXPECT_FALSE(report["pass"]);
  EXPECT_EQ(report["outputs"][0]["outside"], 1);
  EXPECT_EQ(report["outputs"][0]["first_outside"], last);

  // Both sets of a case directory; the bad one counts.
  report = CtlJson({"verify", path, "--data", dir_.path()}, /*code=*/1);
  ASSERT_EQ(report["outputs"].size(), 2u);
  for (const Json& compared : report["outputs"]) EXPECT_EQ(compared["reference"], "data");
  EXPECT_EQ(report["outputs"][1]["data"], dir_.path("test_data_set_1"));
  EXPECT_EQ(CtlJson({"verify", path, "--data", dir_.path(), "--atol", "2"})["pass"], true);

  // An output more than the model has, and none at all.
  data.outputs.push_back({"more", data.outputs[0].value});
  ASSERT_TRUE(SaveTestDataSet(dir_.path("more"), data).ok());
  ProgramResult more = Ctl({"verify", path, "--data", dir_.path("more")});
  EXPECT_EQ(more.code, 3);
  EXPECT_THAT(more.err, HasSubstr("has output_1 and the model has 1 output"));
  data.outputs.clear();
  ASSERT_TRUE(SaveTestDataSet(dir_.path("inputs"), data).ok());
  report = CtlJson({"verify", path, "--data", dir_.path("inputs")});
  EXPECT_TRUE(report["pass"]);
  EXPECT_EQ(report["reference"], "evaluator") << "inputs alone are evaluated";
  EXPECT_THAT(Ctl({"verify", path, "--data", dir_.path("inputs")}).out,
              HasSubstr("the reference evaluator on the inputs in"));
  EXPECT_EQ(Ctl({"run", path, "--data", dir_.path("inputs"), "--repeat", "1"}).code, 0);
}

TEST_F(FusionctlTest, DataThatAreNoTensorsAreNotReadAsSuch) {
  onnx::ModelProto model = GenerateModel(*FindModel("mlp"), SmallMlp())->model;
  std::string input = model.graph().input(0).name();
  onnx::TypeProto tensor = model.graph().input(0).type();
  ASSERT_TRUE(MakeDirectories(dir_.path("data")).ok());
  ASSERT_TRUE(WriteFile(dir_.path("data/input_0.pb"), "no tensor").ok());
  *model.mutable_graph()
       ->mutable_input(0)
       ->mutable_type()
       ->mutable_sequence_type()
       ->mutable_elem_type() = tensor;
  ProgramResult result = Ctl({"verify", Write(model), "--data", dir_.path("data")});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err,
              HasSubstr(StrCat("input ", Quote(input), " is a sequence: not supported")));
  *model.mutable_graph()
       ->mutable_input(0)
       ->mutable_type()
       ->mutable_optional_type()
       ->mutable_elem_type() = tensor;
  result = Ctl({"verify", Write(model), "--data", dir_.path("data")});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr(StrCat("input ", Quote(input), " is optional: not supported")));
}

TEST_F(FusionctlTest, VerifyFailsOnExpectedOutputsOfAnotherShape) {
  absl::StatusOr<GeneratedModel> model = GenerateModel(*FindModel("mlp"), SmallMlp());
  ASSERT_TRUE(model.ok());
  TestDataSet data = MakeData(*model);
  data.outputs[0].value = data.outputs[0].value.Reshaped({data.outputs[0].value.elements()});
  ASSERT_TRUE(SaveTestDataSet(dir_.path("data"), data).ok());
  Json report = CtlJson({"verify", Write(model->model), "--data", dir_.path("data")}, 1);
  EXPECT_EQ(report["outputs"][0]["outside"], data.outputs[0].value.elements());
}

TEST_F(FusionctlTest, VerifyBindsOpenDimsToItsData) {
  ModelParams params = FindModel("bert_tiny")->defaults;
  params.dynamic = true;
  params.layers = 1;
  params.seq = 16;
  absl::StatusOr<GeneratedModel> model = GenerateModel(*FindModel("bert_tiny"), params);
  ASSERT_TRUE(model.ok()) << model.status();
  std::string path = Write(model->model);
  ProgramResult open = Ctl({"verify", path});
  EXPECT_EQ(open.code, 3);
  EXPECT_THAT(open.err, HasSubstr("symbolic"));
  params.dynamic = false;  // the same graph with the extents of the data
  TestDataSet data = MakeData(*GenerateModel(*FindModel("bert_tiny"), params));
  ASSERT_TRUE(SaveTestDataSet(dir_.path("data"), data).ok());
  EXPECT_TRUE(CtlJson({"verify", path, "--data", dir_.path("data")})["pass"]);
}

TEST_F(FusionctlTest, VerifyMakesWeightsUpForAModelStoredWithoutThem) {
  absl::StatusOr<GeneratedModel> model = GenerateModel("mlp");
  ASSERT_TRUE(model.ok());
  Json report = CtlJson({"verify", Write(*ReferenceWeights(model->model))});
  EXPECT_TRUE(report["pass"]);
  EXPECT_TRUE(report["random_weights"]);
}

TEST_F(FusionctlTest, VerifyPassesOpByOp) {
  Json report = CtlJson({"verify", Write("mlp", SmallMlp()), "--fusion", "op-by-op"});
  EXPECT_TRUE(report["pass"]);
  EXPECT_EQ(report["groups"], report["nodes"]);
}

// --- bad input

TEST_F(FusionctlTest, BadModelsAreBadInput) {
  std::string good = ReadFile(Write("mlp", SmallMlp()), int64_t{1} << 30).value();
  onnx::ModelProto unknown = ParseModel(good).value();
  unknown.mutable_graph()->mutable_node(0)->set_op_type("FlyToMoon");
  onnx::ModelProto cyclic = ParseModel(good).value();
  auto& nodes = *cyclic.mutable_graph()->mutable_node();
  *nodes[0].mutable_input(0) = nodes[nodes.size() - 1].output(0);
  struct Case {
    std::string bytes;
    std::string says;
  };
  for (const Case& c : {Case{"this is no model", "not an ONNX model"}, Case{"", "empty"},
                        Case{good.substr(0, good.size() / 2), "truncated"},
                        Case{unknown.SerializeAsString(), "FlyToMoon"},
                        Case{cyclic.SerializeAsString(), "cycle"}}) {
    for (const char* command : {"plan", "verify"}) {
      ProgramResult result = Ctl({command, dir_.Write("bad.onnx", c.bytes)});
      EXPECT_EQ(result.code, 3) << c.says << ": " << result.err;
      EXPECT_THAT(result.err, HasSubstr(c.says));
      ExpectOneErrorLine(result);
    }
  }
  ProgramResult result = Ctl({"plan", dir_.path("none.onnx")});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("none.onnx"));
}

TEST_F(FusionctlTest, AnUnknownIsaIsBadUsage) {
  ProgramResult result = Ctl({"plan", Write("mlp", SmallMlp()), "--isa", "abacus"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("abacus"), HasSubstr("avx512-amx")));
  ExpectOneErrorLine(result);
}

TEST_F(FusionctlTest, DataThatDoNotFitAreBadInput) {
  std::string path = Write("elementwise", {.rows = 2, .cols = 4, .depth = 2});
  onnx::ModelProto model = LoadModel(path).value();
  ASSERT_EQ(model.graph().input_size(), 2);
  std::string second = model.graph().input(1).name();
  auto verify = [&](const TestDataSet& data) {
    std::string directory = dir_.path(StrCat("data", counter_++));
    FUSION_CHECK(SaveTestDataSet(directory, data).ok(), "files of a test");
    ProgramResult result = Ctl({"verify", path, "--data", directory});
    EXPECT_EQ(result.code, 3) << result.out << result.err;
    ExpectOneErrorLine(result);
    return result.err;
  };
  NamedTensor fits{"", HostTensor(DType::kF32, {2, 4})};
  EXPECT_THAT(verify({.inputs = {fits}}), testing::AllOf(HasSubstr(second), HasSubstr("input_1")));
  NamedTensor wide{"", HostTensor(DType::kF32, {2, 5})};
  EXPECT_THAT(verify({.inputs = {fits, wide}}),
              testing::AllOf(HasSubstr(second), HasSubstr("f32[2,5]"), HasSubstr("[2,4]")));
  NamedTensor integers{"", HostTensor(DType::kI64, {2, 4})};
  EXPECT_THAT(verify({.inputs = {fits, integers}}), HasSubstr("i64"));
  EXPECT_THAT(verify({}), HasSubstr("is missing"));
  ProgramResult absent = Ctl({"verify", path, "--data", dir_.path("nowhere")});
  EXPECT_EQ(absent.code, 3);
  EXPECT_THAT(absent.err, HasSubstr("no such directory"));
}

onnx::ModelProto WithExternalWeight(const std::string& file, std::string* bytes) {
  ModelParams params = FindModel("mlp")->defaults;
  onnx::ModelProto model = GenerateModel(*FindModel("mlp"), params)->model;
  onnx::TensorProto* weight = model.mutable_graph()->mutable_initializer(0);
  *bytes = ReadInlineTensor(*weight, "weight")->byte_view();
  weight->clear_raw_data();
  weight->clear_float_data();
  weight->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* entry = weight->add_external_data();
  entry->set_key("location");
  entry->set_value(file);
  return model;
}

TEST_F(FusionctlTest, ExternalDataAreReadFromBesideTheModel) {
  std::string bytes;
  onnx::ModelProto model = WithExternalWeight("weights.bin", &bytes);
  std::string path = Write(model);
  ProgramResult missing = Ctl({"verify", path});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr(model.graph().initializer(0).name()));
  EXPECT_THAT(missing.err, HasSubstr("weights.bin"));
  ExpectOneErrorLine(missing);
  dir_.Write("weights.bin", bytes);
  Json report = CtlJson({"verify", path});
  EXPECT_TRUE(report["pass"]);
  EXPECT_FALSE(report["random_weights"]);
}

// --- usage and service

TEST_F(FusionctlTest, BadUsageIsSaidInOneLine) {
  ProgramResult result = BareCtl({"plan"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  ExpectOneErrorLine(result);
  result = BareCtl({"plan", "--json", "--no-such-option", "x"});
  EXPECT_EQ(result.code, 2);
  Json error = Json::parse(result.out, nullptr, false);
  EXPECT_EQ(error["error"]["code"], "USAGE");
}

TEST_F(FusionctlTest, ErrorsAreJsonToo) {
  ProgramResult result = Ctl({"plan", dir_.path("none.onnx"), "--json"});
  EXPECT_EQ(result.code, 3);
  Json error = Json::parse(result.out, nullptr, false);
  EXPECT_EQ(error["error"]["code"], "NOT_FOUND");
  EXPECT_THAT(error["error"]["message"].get<std::string>(), HasSubstr("none.onnx"));
  ExpectOneErrorLine(result);
}

TEST_F(FusionctlTest, AServiceThatIsNotThereIsExitCode4) {
  std::string model = Write("mlp", SmallMlp());
  ProgramResult result = BareCtl({"plan", model, "--server", "unix:" + dir_.path("nothing")});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, HasSubstr(dir_.path("nothing")));
  ExpectOneErrorLine(result);
  result = BareCtl({"plan", model, "--server", "no-such-host.invalid:80"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, AllOf(HasSubstr("no-such-host.invalid:80"),
                                HasSubstr("its host name cannot be looked up")));
  ExpectOneErrorLine(result);
  result = BareCtl({"plan", model, "--fusiond", dir_.path("no-program")});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, HasSubstr("no-program"));
  result = BareCtl({"plan", model, "--fusiond", "/bin/false"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, HasSubstr("fusiond ended"));
  ExpectOneErrorLine(result);
}

// A request beyond a limit is refused for what it is; a busy server is not its fault.
TEST_F(FusionctlTest, ALimitOfTheRequestIsExitCode3AndABusyServer4) {
  auto small = TestDaemon::Start(FUSIOND, {"--planning-steps", "2000"});
  ASSERT_TRUE(small.ok()) << small.status();
  const std::string model = Write("mlp", SmallMlp());
  ProgramResult result = BareCtl({"plan", model, "--plan-only", "--server", (*small)->address()});
  EXPECT_EQ(result.code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("takes more than the 2000 steps"));
  ExpectOneErrorLine(result);
  auto slow = TestDaemon::Start(FUSIOND, {"--tenant-limit", "*:rate=0.001,burst=1"});
  ASSERT_TRUE(slow.ok()) << slow.status();
  for (int i = 0; i < 3; ++i) {  // the first may be let in
    result = BareCtl({"plan", model, "--plan-only", "--server", (*slow)->address()});
  }
  EXPECT_EQ(result.code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("makes more than"));
}

TEST_F(FusionctlTest, TooLittleMemoryHereIsExitCode5) {
  TestModel huge;  // 4 TiB
  huge.Input("x", {1}).Ints("shape", {int64_t{1} << 40}).Node("Expand", {"x", "shape"}, {"y"});
  huge.Output("y");
  ProgramResult result = Ctl({"run", Write(huge.proto()), "--repeat", "1"});
  EXPECT_EQ(result.code, 5) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no memory for a tensor f32[1099511627776]"));
  ExpectOneErrorLine(result);
}

TEST_F(FusionctlTest, StatusOfTheService) {
  Json status = CtlJson({"status"});
  EXPECT_TRUE(status["serving"]);
  EXPECT_EQ(status["address"], daemon_->address());
  EXPECT_GT(status["round_trip_us"], 0);
}

// --- a server of its own

bool Exists(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0;
}

TEST_F(FusionctlTest, LeavesNothingOfItsOwnServerBehind) {
  ProgramResult result = BareCtl({"status", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  std::string address = Json::parse(result.out)["address"];
  ASSERT_THAT(address, StartsWith("unix:/"));
  std::string socket = address.substr(5);
  EXPECT_FALSE(Exists(socket));
  EXPECT_FALSE(Exists(socket.substr(0, socket.rfind('/'))));
}

TEST_F(FusionctlTest, ItsOwnServerDiesWithItWhateverKillsIt) {
  std::string model = Write("mlp", SmallMlp());
  for (int signal : {SIGTERM, SIGINT, SIGKILL}) {
    TestProcess ctl({FUSIONCTL, "run", model, "--repeat", "1000000"});
    pid_t child = 0;
    UniqueFd server = AwaitChild(ctl.pid(), "fusiond", &child);
    ASSERT_TRUE(server.valid()) << ctl.err();
    kill(ctl.pid(), signal);
    EXPECT_EQ(ctl.Wait(), -signal);
    EXPECT_TRUE(AwaitEnd(server)) << "signal " << signal;
  }
}

TEST_F(FusionctlTest, SaysHowItsOwnServerEnded) {
  // Not bubblewrap, which would stand between server and worker.
  const bool landlock = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) > 0;
  std::string program =
      dir_.Write("server", StrCat("#!/bin/sh\necho 'bug: one and one is three' >&2\nexec ", FUSIOND,
                                  " \"$@\" --sandbox ", landlock ? "landlock" : "none", "\n"));
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  std::string model = Write("mlp", SmallMlp());
  for (int signal : {SIGABRT, SIGKILL}) {
    TestProcess ctl({FUSIONCTL, "plan", model, "--fusiond", program, "--workers", "1"});
    pid_t server = 0;
    pid_t worker = 0;
    pid_t compiler = 0;
    ASSERT_TRUE(AwaitChild(ctl.pid(), "fusiond", &server).valid()) << ctl.err();
    ASSERT_TRUE(AwaitChild(server, "fusion-worker", &worker).valid()) << ctl.err();
    ASSERT_TRUE(AwaitChild(worker, "fusion-exec", &compiler).valid()) << "the call is under way";
    kill(server, signal);
    EXPECT_EQ(ctl.Wait(), 4);
    EXPECT_THAT(ctl.err(), HasSubstr(StrCat("fusiond ended: killed by signal ", signal, " (")));
    // Where there is less, its last words are about that.
    if (landlock) {
      EXPECT_THAT(ctl.err(), HasSubstr("; it said: bug: one and one is three"));
    }
  }
}

TEST_F(FusionctlTest, WhatAKilledOneLeftBehindIsRemoved) {
  std::string dead = "/tmp/fusionctl-killed-before";
  ASSERT_TRUE(MakeDirectories(dead).ok());
  ASSERT_TRUE(WriteFile(dead + "/owner.lock", "").ok());
  ASSERT_EQ(BareCtl({"status"}).code, 0);
  EXPECT_FALSE(Exists(dead));
}

TEST_F(FusionctlTest, AStoreOutlivesItsServer) {
  std::string model = Write("mlp", SmallMlp());
  std::vector<std::string> words = {"plan", model, "--store", dir_.path("store"), "--json"};
  ProgramResult cold = BareCtl(words);
  ASSERT_EQ(cold.code, 0) << cold.err;
  EXPECT_EQ(Json::parse(cold.out)["cache"], "planned");
  ProgramResult warm = BareCtl(words);
  ASSERT_EQ(warm.code, 0) << warm.err;
  EXPECT_EQ(Json::parse(warm.out)["cache"], "store");
}

TEST_F(FusionctlTest, AStoreOfAnotherProcessIsWaitedFor) {
  std::string model = Write("mlp", SmallMlp());
  std::string store = dir_.path("store");
  absl::StatusOr<std::unique_ptr<TestDaemon>> holder =
      TestDaemon::Start(FUSIOND, {"--store", store});
  ASSERT_TRUE(holder.ok()) << holder.status();
  ProgramResult refused = BareCtl({"plan", model, "--store", store});
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr(StrCat("open already in process ", (*holder)->pid())));
  ExpectOneErrorLine(refused);
  // Another one comes while the store is taken, and gets it when the holder ends.
  TestProcess waiting({FUSIONCTL, "plan", model, "--store", store});
  pid_t child = 0;
  ASSERT_TRUE(AwaitChild(waiting.pid(), "fusiond", &child).valid()) << waiting.err();
  EXPECT_EQ((*holder)->Stop().exit_code, 0);
  EXPECT_EQ(waiting.Wait(), 0) << waiting.err();
}

// --- plan, run, kernels

TEST_F(FusionctlTest, PlanShowsGroupsAndWhatTheySave) {
  std::string model = Write("mlp", SmallMlp());
  Json plan = CtlJson({"plan", model});
  EXPECT_EQ(plan["nodes"], 4);
  EXPECT_LT(plan["totals"]["kernels"], plan["op_by_op"]["kernels"]);
  EXPECT_LT(plan["totals"]["activation_bytes"], plan["op_by_op"]["activation_bytes"]);
  for (const Json& kernel : plan["kernels"]) {
    EXPECT_EQ(kernel["state"], "ready");
    EXPECT_TRUE(kernel["verified"]) << kernel;
  }
  std::vector<int> covered;
  for (const Json& group : plan["groups"]) {
    for (const Json& node : group["nodes"]) covered.push_back(node);
  }
  std::sort(covered.begin(), covered.end());
  EXPECT_THAT(covered, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(plan["stages"].empty());
  ProgramResult text = Ctl({"plan", model, "--nodes"});
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out, HasSubstr("op by op"));
  EXPECT_THAT(text.out, HasSubstr("\"/layers.0/Gemm\""));
  EXPECT_THAT(text.out, HasSubstr("from memory"));  // asked for a second time
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
}

TEST_F(FusionctlTest, PlansForAnotherMachine) {
  std::string model = Write("mlp", SmallMlp());
  for (const char* isa : {"x86-64-v2", "avx2", "avx512"}) {
    Json plan = CtlJson({"plan", model, "--isa", isa, "--threads", "5", "--no-compile"});
    EXPECT_EQ(plan["isa"], isa);
    EXPECT_EQ(plan["threads"], 5);
  }
}

// Kernels for less than this machine has are those that others run.
TEST_F(FusionctlTest, VerifiesKernelsOfALowerLevel) {
  const std::string model = Write("mlp", SmallMlp());
  EXPECT_EQ(CtlJson({"verify", model, "--isa", "x86-64-v2"})["pass"], true);
  EXPECT_THAT(Ctl({"verify", model, "--isa", "x86-64-v2"}).out, HasSubstr("(x86-64-v2, "));
  EXPECT_EQ(Ctl({"verify", model, "--isa", "abacus"}).code, 2);
}

TEST_F(FusionctlTest, RunShowsItsOutputsAndWritesThem) {
  absl::StatusOr<GeneratedModel> model = GenerateModel(*FindModel("mlp"), SmallMlp());
  ASSERT_TRUE(model.ok());
  std::string path = Write(model->model);
  TestDataSet data = MakeData(*model);
  HostTensor wanted = data.outputs[0].value;
  ASSERT_TRUE(SaveTestDataSet(dir_.path("data"), data).ok());
  Json run = CtlJson({"run", path, "--data", dir_.path("data"), "--out", dir_.path("out")});
  EXPECT_EQ(run["latency_us"]["n"], 1);
  EXPECT_EQ(run["data"], dir_.path("data"));
  const Json& output = run["outputs"][0];
  EXPECT_EQ(output["name"], data.outputs[0].name);
  EXPECT_EQ(output["elements"], wanted.elements());
  EXPECT_EQ(output["finite"], wanted.elements());
  EXPECT_LE(output["min"], output["mean"]);
  EXPECT_LE(output["mean"], output["max"]);
  ASSERT_EQ(output["first"].size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(output["first"][i].get<double>(), wanted.GetDouble(static_cast<int64_t>(i)), 1e-4);
  }
  absl::StatusOr<TestDataSet> written = LoadTestDataSet(dir_.path("out"));
  ASSERT_TRUE(written.ok()) << written.status();
  ASSERT_EQ(written->outputs.size(), 1u);
  EXPECT_EQ(written->outputs[0].value.dims(), wanted.dims());
  ProgramResult text = Ctl({"run", path, "--repeat", "3"});
  EXPECT_THAT(text.out, testing::AllOf(HasSubstr("random inputs"), HasSubstr("median of 3")));
  ProgramResult unwritable = Ctl({"run", path, "--out", dir_.path("no/such/parent")});
  EXPECT_EQ(unwritable.code, 3) << unwritable.out;
  ExpectOneErrorLine(unwritable);
}

TEST_F(FusionctlTest, KernelsShowsTheirChecks) {
  Json kernels = CtlJson({"kernels", Write("mlp", SmallMlp())})["kernels"];
  ASSERT_FALSE(kernels.empty());
  for (const Json& kernel : kernels) {
    EXPECT_GT(kernel["bytes"], 0);
    EXPECT_EQ(kernel["content_sha256"].get<std::string>().size(), 64u);
  }
}

// --- show

class ShowTest : public FusionctlTest, public testing::WithParamInterface<const char*> {};

TEST_P(ShowTest, HasATextAndAJsonForm) {
  std::string model = Write(
      "bert_tiny", {.seq = 16, .layers = 1, .hidden = 32, .heads = 2, .kv_heads = 2, .ff = 64});
  ProgramResult text = Ctl({"show", model, GetParam()});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_GT(text.out.size(), 200u);
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
  ProgramResult json = Ctl({"show", model, GetParam(), "--format", "json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_FALSE(Json::parse(json.out, nullptr, false).is_discarded());
  std::string form = GetParam();
  ProgramResult dot = Ctl({"show", model, form, "--format", "dot"});
  if (form == "graph" || form == "smg" || form == "plan") {
    EXPECT_EQ(dot.code, 0) << dot.err;
    EXPECT_EQ(DotError(dot.out), "") << dot.out;
  } else {
    EXPECT_EQ(dot.code, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, ShowTest,
                         testing::Values("graph", "program", "smg", "schedule", "plan", "source"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(FusionctlTest, PlanDotDrawsGroupsAsClusters) {
  std::string model = Write("bert_tiny");
  Json plan = CtlJson({"show", model, "plan"});
  std::string dot = Ctl({"show", model, "plan", "--format", "dot"}).out;
  for (size_t g = 0; g < plan["groups"].size(); ++g) {
    bool drawn = dot.find(StrCat("cluster_", g, " ")) != std::string::npos;
    EXPECT_EQ(drawn, !plan["groups"][g]["nodes"].empty()) << g;
  }
}

TEST_F(FusionctlTest, HostileNamesSurvive) {
  onnx::ModelProto model = GenerateModel(*FindModel("mlp"), SmallMlp())->model;
  onnx::GraphProto* graph = model.mutable_graph();
  graph->mutable_node(0)->set_name(kHostile);
  std::string old_input = graph->input(0).name();
  graph->mutable_input(0)->set_name(kHostile);
  std::string old_weight = graph->initializer(0).name();
  std::string weight = StrCat("w ", kHostile);
  graph->mutable_initializer(0)->set_name(weight);
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      if (input == old_input) input = kHostile;
      if (input == old_weight) input = weight;
    }
  }
  std::string path = Write(model);
  EXPECT_TRUE(CtlJson({"verify", path})["pass"]);
  Json plan = CtlJson({"plan", path});
  EXPECT_EQ(plan["node_names"][0], kHostile);
  EXPECT_EQ(plan["inputs"][0], kHostile);
  EXPECT_EQ(plan["weights"][0], weight);
  EXPECT_THAT(Ctl({"plan", path, "--nodes"}).out, HasSubstr("*/ "));
  std::string text = Ctl({"show", path, "graph"}).out;
  EXPECT_THAT(text, HasSubstr(Quote(kHostile)));
  EXPECT_THAT(Ctl({"show", path, "plan"}).out, HasSubstr(Quote(weight)));
  EXPECT_THAT(Ctl({"show", path, "source"}).out, Not(HasSubstr("#include <x>")));
  for (const char* form : {"graph", "plan", "smg"}) {
    EXPECT_EQ(DotError(Ctl({"show", path, form, "--format", "dot"}).out), "") << form;
  }
}

// --- another device

TEST_F(FusionctlTest, PlansForDevicesWithoutACodeGenerator) {
  std::string model = Write("bert_tiny");
  std::set<std::string> tiles;
  std::set<double> microseconds;
  for (const char* target : {"a100", "ascend_910", "ascend_910b", "h100", "h200"}) {
    Json plan = CtlJson({"plan", model, "--target", target, "--plan-only"});
    EXPECT_EQ(plan["target"], target);
    EXPECT_TRUE(plan["fallbacks"].empty());
    EXPECT_LT(plan["totals"]["kernels"], plan["op_by_op"]["kernels"]);
    const Json& device = plan["device"];
    EXPECT_NE(device["kind"], "CPU");
    EXPECT_EQ(device["units"], plan["threads"]);
    EXPECT_GT(device["units"], 20);
    EXPECT_EQ(device["explicit_memory"], true);
    EXPECT_GE(device["levels"].size(), 4U);
    std::string cut;
    for (const Json& group : plan["groups"]) {
      if (group["kind"] == "prepare") continue;
      EXPECT_LE(group["estimate"]["on_chip_bytes"], device["on_chip_bytes"]);
      EXPECT_NE(group["bound"], "");
      cut += StrCat(group["tiles"].get<std::string>(), "\n");
    }
    for (const Json& kernel : plan["kernels"]) {
      EXPECT_EQ(kernel["state"], "pending");
      EXPECT_EQ(kernel["isa"], plan["isa"]);
    }
    tiles.insert(cut);
    microseconds.insert(plan["totals"]["estimated_us"].get<double>());
  }
  EXPECT_GE(tiles.size(), 2U);
  EXPECT_GE(microseconds.size(), 3U);
}

TEST_F(FusionctlTest, APlanNamesItsDeviceAndWhatBoundsIt) {
  std::string model = Write("bert_tiny");
  ProgramResult h100 = Ctl({"plan", model, "--target", "h100", "--plan-only"});
  EXPECT_EQ(h100.code, 0) << h100.err;
  EXPECT_THAT(h100.out, HasSubstr("h100"));
  EXPECT_THAT(h100.out, HasSubstr("GPU with 132 SMs: a block has 227.00 KiB of shared; l2"));
  EXPECT_THAT(h100.out, HasSubstr("bound by"));
  EXPECT_THAT(h100.out, HasSubstr("accumulates "));
  EXPECT_THAT(h100.out, HasSubstr("nothing is compiled"));
  // Fewer units, and the device of this kind that is here.
  EXPECT_EQ(CtlJson({"plan", model, "--target", "h100", "--plan-only", "--threads",
                     "66"})["device"]["units"],
            66);
  Json here = CtlJson({"plan", model, "--no-compile"});
  EXPECT_EQ(here["device"]["kind"], "CPU");
  EXPECT_EQ(here["device"]["unit"], "thread");
  EXPECT_EQ(here["device"]["explicit_memory"], false);
}

TEST_F(FusionctlTest, ADeviceWithoutACodeGeneratorIsForPlansOnly) {
  std::string model = Write("mlp", SmallMlp());
  ProgramResult compiled = Ctl({"plan", model, "--target", "h100"});
  EXPECT_EQ(compiled.code, 3);
  EXPECT_THAT(compiled.err, HasSubstr("no code generator for target \"h100\""));
  EXPECT_THAT(compiled.err, HasSubstr("fusionctl --plan-only"));
  ExpectOneErrorLine(compiled);
  ProgramResult units = Ctl({"plan", model, "--target", "h100", "--plan-only", "--threads", "133"});
  EXPECT_EQ(units.code, 3);
  EXPECT_THAT(units.err, HasSubstr("h100 has 132 SMs"));
}

TEST_F(FusionctlTest, AnUnknownTargetListsTheKnownOnes) {
  std::string model = Write("mlp", SmallMlp());
  ProgramResult result = Ctl({"plan", model, "--target", "h300", "--plan-only"});
  EXPECT_EQ(result.code, 3);
  for (const char* name : {"\"h300\" is not known", "a100", "ascend_910", "ascend_910b", "h100",
                           "h200", "generic-avx2", "generic-avx512", "generic-x86-64-v2"}) {
    EXPECT_THAT(result.err, HasSubstr(name));
  }
  EXPECT_EQ(Ctl({"plan", model, "--target", "h100", "--isa", "avx2"}).code, 2);
  // A CPU by name compiles like any other.
  Json plan = CtlJson({"plan", model, "--target", "generic_x86-64-v2", "--threads", "2"});
  EXPECT_EQ(plan["target"], "generic-x86-64-v2");
  EXPECT_EQ(plan["kernels"][0]["state"], "ready");
}

}  // namespace
}  // namespace fusion
