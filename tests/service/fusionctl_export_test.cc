// Fused files, as people write them and send them in again.
#include <filesystem>
#include <fstream>

#include "client/export_fused.h"
#include "client/fused_model.h"
#include "core/onnx/external_data.h"
#include "core/onnx/group_calls.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class ExportCommandTest : public FusionctlTest {
 protected:
  static GeneratedModel Generate() {
    return GenerateModel(
               *FindModel("bert_tiny"),
               {.seq = 16, .layers = 2, .hidden = 32, .heads = 2, .kv_heads = 2, .ff = 64})
        .value();
  }
  // The export of a model, and what fusionctl said.
  Json Export(const std::string& model, const std::string& fused,
              const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"export", model, "--fused", "--out", fused};
    words.insert(words.end(), more.begin(), more.end());
    return CtlJson(words);
  }
};

TEST_F(ExportCommandTest, GroupsBecomeNodesThatNameTheirKernels) {
  GeneratedModel generated = Generate();
  std::string model = Write(generated.model);
  std::string fused = dir_.path("fused.onnx");
  Json said = Export(model, fused);
  Json planned = CtlJson({"plan", model});
  EXPECT_EQ(said["plan_key"], planned["plan_key"]);
  EXPECT_EQ(said["out"], fused);
  onnx::ModelProto written = LoadModel(fused).value();
  int calls = 0;
  for (const onnx::NodeProto& node : written.graph().node()) {
    if (node.domain() != kGroupDomain) continue;
    std::map<std::string, std::string> attributes;
    for (const auto& a : node.attribute()) attributes[a.name()] = a.s();
    const Json& group = said["groups"][static_cast<size_t>(calls++)];
    EXPECT_EQ(node.op_type(), group["functions"][0]);
    EXPECT_EQ(attributes["plan_key"], planned["plan_key"]);
    EXPECT_EQ(attributes["kernel_key"], group["kernel_key"]);
    EXPECT_THAT(attributes["kernel_sha256"], MatchesRegex("[0-9a-f]{64}"));
  }
  EXPECT_EQ(calls, said["whole"]);
  EXPECT_GE(calls, 3);
  EXPECT_EQ(written.graph().node_size(), calls + said["plain_nodes"].get<int>());
  EXPECT_EQ(written.metadata_props(0).key(), "fusiond.plan_key");
  EXPECT_EQ(written.metadata_props(0).value(), planned["plan_key"]);
  ASSERT_EQ(written.graph().initializer_size(), generated.model.graph().initializer_size());
  for (int i = 0; i < written.graph().initializer_size(); ++i) {
    EXPECT_EQ(written.graph().initializer(i).SerializeAsString(),
              generated.model.graph().initializer(i).SerializeAsString());
  }
}

TEST_F(ExportCommandTest, AFusedFileIsRefusedOrUnderstood) {
  GeneratedModel generated = Generate();
  std::string model = Write(generated.model);
  std::string fused = dir_.path("fused.onnx");
  Json said = Export(model, fused);
  for (std::vector<std::string> words :
       {std::vector<std::string>{"plan", fused},
        {"verify", fused},
        {"run", fused},
        {"export", fused, "--fused", "--out", dir_.path("twice.onnx")}}) {
    ProgramResult refused = Ctl(words);
    EXPECT_EQ(refused.code, 3) << words[0];
    EXPECT_THAT(refused.err, AllOf(StartsWith("fusionctl: ALREADY_FUSED: node \"group_"),
                                   HasSubstr("--allow-fused")));
    ExpectOneErrorLine(refused);
  }
  EXPECT_FALSE(std::filesystem::exists(dir_.path("twice.onnx")));
  Json again = CtlJson({"plan", fused, "--allow-fused"});
  EXPECT_EQ(again["plan_key"], said["plan_key"]);
  EXPECT_EQ(again["cache"], "memory");
  Json shown = CtlJson({"explain", fused, "--allow-fused"});
  EXPECT_EQ(shown["plan_key"], said["plan_key"]);
  std::string data = dir_.path("data");
  ASSERT_TRUE(SaveTestDataSet(data, MakeData(generated)).ok());
  Json verified = CtlJson({"verify", fused, "--allow-fused", "--data", data});
  EXPECT_EQ(verified["pass"], true);
  EXPECT_EQ(verified["reference"], "data");
  EXPECT_EQ(CtlJson({"verify", fused, "--allow-fused"})["pass"], true) << "by the evaluator";
}

TEST_F(ExportCommandTest, AnExportOfAnExportIsTheSame) {
  std::string model = Write(Generate().model);
  std::string fused = dir_.path("fused.onnx");
  Json first = Export(model, fused);
  onnx::ModelProto written = LoadModel(fused).value();
  Json second = Export(fused, fused, {"--allow-fused"});  // over itself
  EXPECT_EQ(second["groups"], first["groups"]);
  onnx::ModelProto again = LoadModel(fused).value();
  EXPECT_EQ(again.functions_size(), written.functions_size());
  EXPECT_EQ(again.opset_import_size(), written.opset_import_size());
  EXPECT_EQ(again.metadata_props_size(), written.metadata_props_size());
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    EXPECT_TRUE(entry.is_regular_file()) << entry.path();  // nothing is left behind
  }
}

TEST_F(ExportCommandTest, NamesNeedNotTellNodesApart) {
  GeneratedModel generated = Generate();
  for (onnx::NodeProto& node : *generated.model.mutable_graph()->mutable_node()) {
    node.set_name("12/all");
  }
  std::string fused = dir_.path("fused.onnx");
  Json said = Export(Write(generated.model), fused, {"--plan-only", "--isa", "avx2"});
  EXPECT_EQ(said["whole"], said["groups"].size());
  onnx::ModelProto written = LoadModel(fused).value();
  for (const onnx::FunctionProto& function : written.functions()) {
    EXPECT_EQ(function.node(0).name(), "12/all");
  }
}

TEST_F(ExportCommandTest, ExternalDataStaysWhereItIs) {
  GeneratedModel generated = Generate();
  std::string bytes;
  for (onnx::TensorProto& tensor : *generated.model.mutable_graph()->mutable_initializer()) {
    if (tensor.raw_data().size() < 4096) continue;
    std::string raw = tensor.raw_data();
    ReferToClient(&tensor);
    tensor.mutable_external_data(0)->set_value("w.bin");
    for (auto [key, value] : {std::pair{"offset", bytes.size()}, {"length", raw.size()}}) {
      auto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(StrCat(value));
    }
    bytes += raw;
  }
  ASSERT_GT(bytes.size(), 10'000U);
  std::filesystem::create_directories(dir_.path("in"));
  std::ofstream(dir_.path("in/w.bin"), std::ios::binary) << bytes;
  std::string model = dir_.path("in/model.onnx");
  ASSERT_TRUE(SaveModel(generated.model, model).ok());
  for (const char* name : {"in/fused.onnx", "fused.onnx"}) {
    std::string fused = dir_.path(name);
    Export(model, fused);
    EXPECT_EQ(CtlJson({"verify", fused, "--allow-fused"})["pass"], true) << name;
    EXPECT_LT(std::filesystem::file_size(fused), 60'000U);
  }
  std::filesystem::create_directories(dir_.path("other"));
  for (auto [name, words] : {std::pair{"other/fused.onnx", "a model may name files of its own"},
                             {"in/w.bin", "holds weights of the model"},
                             {"none/fused.onnx", "none\": "}}) {
    ProgramResult refused = Ctl({"export", model, "--fused", "--out", dir_.path(name)});
    EXPECT_EQ(refused.code, 3) << name;
    EXPECT_THAT(refused.err, AllOf(StartsWith("fusionctl: --out: "), HasSubstr(words)));
  }
  EXPECT_EQ(std::filesystem::file_size(dir_.path("in/w.bin")), bytes.size());
}

TEST_F(ExportCommandTest, ErrorsAreInTheWordsOfTheModel) {
  GeneratedModel generated = Generate();
  generated.model.mutable_graph()->mutable_node(7)->set_op_type("Mystery");
  generated.model.mutable_graph()->mutable_node(7)->set_name("the/seventh");
  std::string model = Write(generated.model);
  ProgramResult refused = Ctl({"export", model, "--fused", "--out", dir_.path("fused.onnx")});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("node \"the/seventh\" (Mystery)"));
  EXPECT_EQ(Ctl({"export", model, "--out", "f.onnx"}).code, 2);
  EXPECT_EQ(Ctl({"export", model, "--fused"}).code, 2);
  EXPECT_EQ(Ctl({"export", model, "--fused=false", "--out", "f.onnx"}).code, 2);
  ProgramResult directory = Ctl({"export", model, "--fused", "--out", dir_.path()});
  EXPECT_EQ(directory.code, 3);
  EXPECT_THAT(directory.err, HasSubstr("is a directory"));
  ExpectOneErrorLine(directory);
  EXPECT_EQ(Ctl({"export", dir_.path("none"), "--fused", "--out", "f.onnx"}).code, 3);
}

TEST_F(ExportCommandTest, TheLibraryDoesTheSame) {
  auto client = Client::Connect(daemon_->address());
  ASSERT_TRUE(client.ok()) << client.status();
  GeneratedModel generated = Generate();
  onnx::ModelProto model = generated.model;
  FusionRequest request;
  request.target = {.isa = "avx2", .threads = 1};
  request.mode = PlanMode::kPlanOnly;
  auto exported = ExportFused(**client, request, ".", &model);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->written.groups.size(), exported->group_of.size());
  FusedModelOptions options;
  auto refused = FusedModel::Load(**client, model, ".", options);
  EXPECT_THAT(std::string(refused.status().message()), StartsWith("ALREADY_FUSED: "));
  options.allow_fused = true;
  auto loaded = FusedModel::Load(**client, model, ".", options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  auto plain = FusedModel::Load(**client, generated.model, ".", {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ((*loaded)->reply().plan_key, (*plain)->reply().plan_key);
}

}  // namespace
}  // namespace fusion
