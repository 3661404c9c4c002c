// What finds out why a plan computes the wrong thing: run --compare, --dump-tensors, --debug,
// --guard, show of a stored kernel, repro.
#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/client.h"
#include "core/tensor/npy.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DebugTest : public FusionctlTest {
 protected:
  void SetUp() override { mlp_ = Write("mlp", SmallMlp()); }
  std::string WriteBytes(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_.path(name), std::ios::binary) << bytes;
    return dir_.path(name);
  }
  static std::string ReadAll(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream out;
    out << file.rdbuf();
    return out.str();
  }
  // Gather of rows, and what follows.
  std::string WriteLookup() {
    onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_name("lookup");
    auto declare = [](onnx::ValueInfoProto* value, const char* name, int type,
                      std::vector<int64_t> dims) {
      value->set_name(name);
      value->mutable_type()->mutable_tensor_type()->set_elem_type(type);
      for (int64_t d : dims) {
        value->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(d);
      }
    };
    declare(graph.add_input(), "table", onnx::TensorProto::FLOAT, {9, 33});
    declare(graph.add_input(), "ids", onnx::TensorProto::INT64, {4});
    declare(graph.add_output(), "rows", onnx::TensorProto::FLOAT, {4, 33});
    auto add = [&](const char* op, const char* name, std::vector<const char*> inputs,
                   const char* output) {
      onnx::NodeProto* node = graph.add_node();
      node->set_op_type(op);
      node->set_name(name);
      for (const char* input : inputs) node->add_input(input);
      node->add_output(output);
    };
    add("Gather", "embed/lookup", {"table", "ids"}, "../../etc/found");
    add("Exp", "embed/exp", {"../../etc/found"}, "rows");
    const std::string path = dir_.path("lookup.onnx");
    FUSION_CHECK(SaveModel(model, path).ok(), "a file of a test");
    return path;
  }
  std::string Ids(int64_t third) {
    HostTensor ids(DType::kI64, {4});
    ids.SetInt(2, third);
    return WriteBytes("ids.npy", ToNpy(ids));
  }

  std::string mlp_;
};

TEST_F(DebugTest, CompareLooksAtEveryNode) {
  const Json run = CtlJson({"run", mlp_, "--compare"});
  EXPECT_EQ(run["pass"], true);
  EXPECT_EQ(run["reference"], "evaluator");
  EXPECT_TRUE(run["first_divergent"].is_null());
  EXPECT_EQ(run["nodes_out_of_reach"], 0);
  ASSERT_GE(run["tensors"].size(), 4u) << run["tensors"];
  size_t outputs = 0;
  for (const Json& t : run["tensors"]) {
    EXPECT_EQ(t["outside"], 0) << t;
    EXPECT_EQ(t["kernel"].get<std::string>().size(), 64u);
    EXPECT_FALSE(t["group"].get<std::string>().empty());
    outputs += t["output"] == true ? 1 : 0;
  }
  EXPECT_EQ(outputs, 1u);
  const ProgramResult text = Ctl({"run", mlp_, "--compare"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("PASS against the reference evaluator"),
                              HasSubstr("max|a-b|/max|b|")));
}

// Sums of floats are never quite those of the evaluator: the first product differs.
TEST_F(DebugTest, CompareNamesTheFirstNodeThatDiffers) {
  const Json run = CtlJson({"run", mlp_, "--compare", "--atol", "0", "--rtol", "0"}, 1);
  EXPECT_EQ(run["pass"], false);
  const Json& first = run["first_divergent"];
  ASSERT_TRUE(first.is_object()) << run;
  EXPECT_THAT(first["op"].get<std::string>(), testing::AnyOf("MatMul", "Gemm"));
  EXPECT_GT(first["outside"], 0);
  EXPECT_EQ(run["divergent_outputs"].size(), 1u);
  for (const Json& t : run["tensors"]) {
    if (t["tensor"] == first["tensor"]) break;
    EXPECT_EQ(t["outside"], 0) << "before the first: " << t;
  }
  const ProgramResult text = Ctl({"run", mlp_, "--compare", "--atol", "0", "--rtol", "0"});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, HasSubstr(StrCat("first at node \"", first["node"].get<std::string>(),
                                         "\" (", first["op"].get<std::string>(), ")")));
}

TEST_F(DebugTest, DumpedTensorsAreAReference) {
  const std::string dumped = dir_.path("dumped");
  ASSERT_EQ(Ctl({"run", mlp_, "--dump-tensors", dumped}).code, 0);
  const Json index = Json::parse(ReadAll(dumped + "/index.json"));
  ASSERT_GE(index["tensors"].size(), 4u);
  for (const Json& t : index["tensors"]) {
    auto value = ParseNpy(ReadAll(StrCat(dumped, "/", t["file"].get<std::string>())));
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(t["dims"], Json(std::vector<int64_t>(value->dims().begin(), value->dims().end())));
    EXPECT_EQ(t["dtype"], std::string(DTypeName(value->dtype())));
  }
  const std::vector<std::string> compare = {"run", mlp_, "--compare", "--reference", dumped};
  EXPECT_EQ(CtlJson(compare)["pass"], true);
  // One element of the third tensor is another one: that node is named, not those behind it.
  const Json& third = index["tensors"][2];
  const std::string file = StrCat(dumped, "/", third["file"].get<std::string>());
  HostTensor damaged = ParseNpy(ReadAll(file)).value();
  damaged.SetDouble(5, damaged.GetDouble(5) + 1);
  std::ofstream(file, std::ios::binary) << ToNpy(damaged);
  const Json run = CtlJson(compare, 1);
  EXPECT_EQ(run["first_divergent"]["tensor"], third["tensor"]);
  EXPECT_EQ(run["first_divergent"]["node"], third["node"]);
  EXPECT_EQ(run["first_divergent"]["outside"], 1);
  EXPECT_EQ(run["first_divergent"]["first_outside"], 5);
  EXPECT_NEAR(run["first_divergent"]["max_abs"].get<double>(), 1, 1e-3);
}

TEST_F(DebugTest, NamesOfTensorsMakeNoPaths) {
  const std::string model = WriteLookup();
  const std::string dumped = dir_.path("dumped");
  const Json run = CtlJson({"run", model, "--dump-tensors", dumped});
  ASSERT_EQ(run["tensors"].size(), 2u) << run;
  EXPECT_EQ(run["tensors"][0]["tensor"], "../../etc/found");
  EXPECT_EQ(run["tensors"][0]["file"], "tensor_0.npy");
  EXPECT_TRUE(std::filesystem::exists(dumped + "/tensor_0.npy"));
  // Nor do those of an index.
  WriteBytes("dumped/index.json", R"({"tensors":[{"tensor":"rows","file":"../x.npy"}]})");
  const ProgramResult refused = Ctl({"run", model, "--compare", "--reference", dumped});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("a name without"));
}

TEST_F(DebugTest, SomeTensorsAreChosenByName) {
  const std::string model = WriteLookup();
  const Json run = CtlJson({"run", model, "--compare", "--tensor", "embed/lookup"});
  ASSERT_EQ(run["tensors"].size(), 1u) << run;
  EXPECT_EQ(run["tensors"][0]["op"], "Gather");
  const ProgramResult refused = Ctl({"run", model, "--compare", "--tensor", "nobody"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("--tensor \"nobody\""));
  EXPECT_EQ(Ctl({"run", model, "--tensor", "x"}).code, 2);
  EXPECT_EQ(Ctl({"run", model, "--reference", "x"}).code, 2);
  EXPECT_EQ(Ctl({"run", model, "--atol", "1"}).code, 2);
}

TEST_F(DebugTest, AGuardedRunNamesKernelNodeAndTensor) {
  const std::string model = WriteLookup();
  EXPECT_EQ(Ctl({"run", model, "--guard", "--input", "ids=" + Ids(8)}).code, 0);
  // Without guards the nearest row is taken.
  EXPECT_EQ(Ctl({"run", model, "--input", "ids=" + Ids(9)}).code, 0);
  const ProgramResult fault = Ctl({"run", model, "--guard", "--input", "ids=" + Ids(9)});
  EXPECT_EQ(fault.code, 3);
  ExpectOneErrorLine(fault);
  EXPECT_THAT(
      fault.err,
      AllOf(HasSubstr("kernel fk_"), HasSubstr("(Gather+Exp), group 0: index 9 into tensor"),
            HasSubstr("expected -9..8"), HasSubstr("nodes: \"embed/lookup\", \"embed/exp\""),
            HasSubstr("input \"table\", f32[9,33]")));
}

TEST_F(DebugTest, GuardedPlansGiveTheSameAnswers) {
  const std::string bert = Write("bert_layer", [] {
    ModelParams params = FindModel("bert_layer")->defaults;
    params.rows = 16;
    params.cols = 32;
    return params;
  }());
  const Json verified = CtlJson({"verify", bert, "--guard"});
  EXPECT_EQ(verified["pass"], true);
  EXPECT_NE(verified["plan_key"], CtlJson({"verify", bert})["plan_key"]);
}

// Whether a shared object has a section.
bool HasSection(const std::string& object, const std::string& name) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), object.data() + header.e_shoff,
              sections.size() * sizeof(Elf64_Shdr));
  const char* names = object.data() + sections[header.e_shstrndx].sh_offset;
  return std::any_of(sections.begin(), sections.end(),
                     [&](const Elf64_Shdr& s) { return names + s.sh_name == name; });
}

TEST_F(DebugTest, DebugKernelsHaveLineTables) {
  auto objects = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"kernels", mlp_};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<Digest> keys;
    const Json answer = CtlJson(words);
    for (const Json& kernel : answer["kernels"]) {
      Digest key;
      EXPECT_TRUE(Digest::FromHex(kernel["key"].get<std::string>(), &key));
      keys.push_back(key);
    }
    return Client::Connect(daemon_->address()).value()->GetKernels(keys).value();
  };
  for (const FetchedKernel& kernel : objects({})) {
    EXPECT_FALSE(HasSection(kernel.binary, ".debug_line"));
  }
  const std::vector<FetchedKernel> debug = objects({"--debug"});
  ASSERT_FALSE(debug.empty());
  for (const FetchedKernel& kernel : debug) {
    EXPECT_TRUE(HasSection(kernel.binary, ".debug_line"));
    EXPECT_TRUE(HasSection(kernel.binary, ".symtab"));
    // Nothing of the machine that compiled it.
    EXPECT_THAT(kernel.binary,
                AllOf(HasSubstr("/proc/self/cwd"), Not(HasSubstr("/tmp")), Not(HasSubstr("/var"))));
  }
  EXPECT_EQ(CtlJson({"verify", mlp_, "--debug"})["pass"], true);
}

TEST_F(DebugTest, AStoredKernelIsShownByItsKey) {
  const Json kernels = CtlJson({"kernels", mlp_})["kernels"];
  ASSERT_FALSE(kernels.empty());
  for (const Json& kernel : kernels) {
    const std::string key = kernel["key"];
    const std::string symbol = "fk_" + key.substr(0, 16);
    EXPECT_THAT(Ctl({"show", key, "source"}).out,
                HasSubstr(StrCat("extern \"C\" int ", symbol, "(")));
    EXPECT_THAT(Ctl({"show", key, "schedule"}).out, testing::StartsWith("schedule \""));
    EXPECT_THAT(Ctl({"show", key, "smg"}).out, testing::StartsWith("smg {"));
    EXPECT_THAT(Ctl({"show", key, "program"}).out, testing::StartsWith("reference {"));
    // By what errors and tables name it with.
    EXPECT_EQ(Ctl({"show", symbol, "source"}).out, Ctl({"show", key, "source"}).out);
    const Json json = CtlJson({"show", key.substr(0, 10), "schedule"});
    EXPECT_EQ(json["key"], key);
    EXPECT_THAT(json["compiler"].get<std::string>(), HasSubstr("-O2"));
  }
  const ProgramResult none = Ctl({"show", "fk_0123456789abcdef", "source"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("begins with 0123456789abcdef"));
  EXPECT_EQ(Ctl({"show", kernels[0]["key"], "graph"}).code, 3);
  EXPECT_THAT(BareCtl({"show", kernels[0]["key"], "source"}).err, HasSubstr("--server"));
}

class ReproTest : public DebugTest {
 protected:
  // Needs no service: none is running at this address.
  static ProgramResult Replay(std::vector<std::string> words) {
    words.insert(words.begin(), {"repro", "--replay"});
    words.insert(words.end(), {"--server", "unix:/nowhere"});
    return BareCtl(words);
  }
  static Json ReplayJson(std::vector<std::string> words, int code = 0) {
    words.push_back("--json");
    const ProgramResult result = Replay(std::move(words));
    EXPECT_EQ(result.code, code) << result.err << result.out;
    return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  // Files of an archive in a directory.
  std::string Unpack(const std::string& archive) {
    const std::string to = dir_.path("unpacked");
    std::filesystem::create_directory(to);
    EXPECT_EQ(RunProgram({"/usr/bin/tar", "-xzf", archive, "-C", to}).code, 0);
    return to;
  }
};

TEST_F(ReproTest, AnArchiveOfAModelRunsAgainWithoutAService) {
  const std::string file = dir_.path("mlp.tar.gz");
  const ProgramResult written = Ctl({"repro", mlp_, "-o", file});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("no weights"));
  const Json replay = ReplayJson({file});
  EXPECT_EQ(replay["pass"], true);
  ASSERT_FALSE(replay["kernels"].empty());
  for (const Json& kernel : replay["kernels"]) {
    EXPECT_EQ(kernel["ok"], true) << kernel;
    EXPECT_EQ(kernel["verified"], true) << kernel;
    EXPECT_EQ(kernel["same_bytes"], true) << "the same compiler: " << kernel;
  }
  EXPECT_EQ(replay["outputs"].size(), 1u);
  EXPECT_EQ(replay["outputs"][0]["outside"], 0);
  EXPECT_THAT(Replay({file}).out, HasSubstr("PASS against the reference evaluator"));
}

// Weights are rounded: as exact as the contract says, and not as exact as f32.
TEST_F(ReproTest, AnArchiveOfAFastPlanIsHeldToItsNumerics) {
  ModelParams params = FindModel("mlp")->defaults;
  params.rows = 2;
  params.cols = 96;
  params.depth = 1;
  const std::string model = Write("mlp", params);
  const std::string file = dir_.path("fast.tar.gz");
  ASSERT_EQ(Ctl({"repro", model, "--numerics", "fast", "-o", file}).code, 0);
  const Json replay = ReplayJson({file});
  EXPECT_EQ(replay["pass"], true) << replay;
  ASSERT_FALSE(replay["kernels"].empty());
  for (const Json& kernel : replay["kernels"]) EXPECT_EQ(kernel["verified"], true) << kernel;
  ASSERT_EQ(replay["outputs"].size(), 1u);
  EXPECT_EQ(replay["outputs"][0]["outside"], 0);
  EXPECT_GT(replay["outputs"][0]["max_rel"].get<double>(), 1e-4);
}

TEST_F(ReproTest, AKeyIsEnoughAndGivesTheSameFile) {
  const std::string model = dir_.path("model.tar.gz");
  ASSERT_EQ(Ctl({"repro", mlp_, "-o", model}).code, 0);
  const std::string key = CtlJson({"plan", mlp_})["plan_key"];
  const std::string stored = dir_.path("stored.tar.gz");
  const ProgramResult written = Ctl({"repro", key.substr(0, 12), "-o", stored});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(ReadAll(stored), ReadAll(model));
}

TEST_F(ReproTest, AnArchiveHoldsNoWeightsAndNoNames) {
  const std::string file = dir_.path("lookup.tar.gz");
  ASSERT_EQ(Ctl({"repro", WriteLookup(), "-o", file}).code, 0);
  const std::string at = Unpack(file);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(at)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_THAT(ReadAll(entry.path()), AllOf(Not(HasSubstr("embed/")), Not(HasSubstr("etc/found"))))
        << entry.path();
  }
  EXPECT_GE(files, 8);
  for (const char* name : {"README.txt", "manifest.json", "graph.txt", "plan.pb"}) {
    EXPECT_TRUE(std::filesystem::exists(StrCat(at, "/", name))) << name;
  }
  EXPECT_THAT(ReadAll(at + "/graph.txt"), HasSubstr("Gather("));
}

// What a wrong kernel looks like to who replays it.
TEST_F(ReproTest, AWrongKernelIsFound) {
  const std::string file = dir_.path("lookup.tar.gz");
  ASSERT_EQ(Ctl({"repro", WriteLookup(), "-o", file}).code, 0);
  const std::string at = Unpack(file);
  const Json manifest = Json::parse(ReadAll(at + "/manifest.json"));
  const std::string name = StrCat("kernels/", manifest["kernels"][0]["symbol"].get<std::string>());
  std::string source = ReadAll(StrCat(at, "/", name, ".cc"));
  const size_t exp = source.rfind("exp_f(v");
  ASSERT_NE(exp, std::string::npos);
  source.insert(exp, "1.0f + ");
  std::ofstream(StrCat(at, "/", name, ".cc"), std::ios::binary) << source;
  const std::string wrong = dir_.path("wrong.tar.gz");
  ASSERT_EQ(RunProgram({"/usr/bin/tar", "-czf", wrong, "-C", at, "README.txt", "manifest.json",
                        "graph.txt", "plan.pb", "kernels"})
                .code,
            0);
  const Json replay = ReplayJson({wrong}, 1);
  EXPECT_EQ(replay["pass"], false);
  EXPECT_EQ(replay["kernels"][0]["ok"], false);
  EXPECT_THAT(replay["kernels"][0]["error"].get<std::string>(), HasSubstr("check: output 0"));
  EXPECT_EQ(replay["kernels"][0]["same_bytes"], false);
}

TEST_F(ReproTest, FilesThatAreNoneAreRefused) {
  EXPECT_EQ(Replay({WriteBytes("x.tar.gz", "nonsense")}).code, 3);
  EXPECT_EQ(Replay({dir_.path("missing")}).code, 3);
  EXPECT_EQ(BareCtl({"repro"}).code, 2);
  EXPECT_EQ(BareCtl({"repro", mlp_}).code, 2);
  EXPECT_EQ(BareCtl({"repro", mlp_, "-o", "x", "--replay", "y"}).code, 2);
  const ProgramResult unknown = Ctl({"repro", "0123456789abcdef", "-o", dir_.path("x")});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("0123456789abcdef"));
}

}  // namespace
}  // namespace fusion
