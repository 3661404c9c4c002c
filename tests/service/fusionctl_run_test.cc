// What fusionctl runs on, writes and times.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/tensor/npy.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RunCommandTest : public FusionctlTest {
 protected:
  void SetUp() override {
    auto model = GenerateModel(*FindModel("mlp"), SmallMlp());
    ASSERT_TRUE(model.ok());
    path_ = Write(model->model);
    data_ = MakeData(*model);
    ASSERT_EQ(data_.inputs.size(), 1u);
  }
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
  // The arrays, each a file NAME.npy of an archive.
  std::string WriteNpz(const std::string& name, const std::vector<NamedTensor>& arrays) {
    std::vector<std::string> words = {"/usr/bin/python3", "-m", "zipfile", "-c", dir_.path(name)};
    for (const NamedTensor& array : arrays) {
      words.push_back(WriteBytes(array.name + ".npy", ToNpy(array.value)));
    }
    EXPECT_EQ(RunProgram(words).code, 0);
    return dir_.path(name);
  }
  const std::string& input() const { return data_.inputs[0].name; }
  void ExpectOutput(const Json& run) const {
    const HostTensor& wanted = data_.outputs[0].value;
    ASSERT_EQ(run["outputs"][0]["first"].size(), 6u) << run;
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(run["outputs"][0]["first"][static_cast<size_t>(i)].get<double>(),
                  wanted.GetDouble(i), 1e-4);
    }
  }

  std::string path_;
  TestDataSet data_;
};

TEST_F(RunCommandTest, TakesArraysOfNumpyByName) {
  const std::string npy = WriteBytes("x.npy", ToNpy(data_.inputs[0].value));
  Json run = CtlJson({"run", path_, "--input", input() + "=" + npy});
  ExpectOutput(run);
  EXPECT_EQ(run["data"], "files and random numbers");
  EXPECT_EQ(CtlJson({"verify", path_, "--input", input() + "=" + npy})["pass"], true);
}

TEST_F(RunCommandTest, TakesDirectoriesAndArchivesOfArrays) {
  std::filesystem::create_directory(dir_.path("arrays"));
  WriteBytes("arrays/input_0.npy", ToNpy(data_.inputs[0].value));
  ExpectOutput(CtlJson({"run", path_, "--data", dir_.path("arrays")}));
  const std::string named =
      WriteNpz("named.npz", {data_.inputs[0], {"output_0", data_.outputs[0].value}});
  ExpectOutput(CtlJson({"run", path_, "--data", named}));
  Json verified = CtlJson({"verify", path_, "--data", named});
  EXPECT_EQ(verified["pass"], true);
  // Another output than the archive says.
  HostTensor wrong = data_.outputs[0].value;
  wrong.SetDouble(0, wrong.GetDouble(0) + 1);
  const std::string other =
      WriteNpz("other.npz", {{"input_0", data_.inputs[0].value}, {"output_0", wrong}});
  EXPECT_EQ(CtlJson({"verify", path_, "--data", other}, 1)["pass"], false);
}

TEST_F(RunCommandTest, WritesArraysOfNumpy) {
  const std::string npy = WriteBytes("x.npy", ToNpy(data_.inputs[0].value));
  ProgramResult run =
      Ctl({"run", path_, "--input", input() + "=" + npy, "--out", dir_.path("out"), "--npy"});
  ASSERT_EQ(run.code, 0) << run.err;
  auto written = ParseNpy(ReadAll(dir_.path("out/output_0.npy")));
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->dims(), data_.outputs[0].value.dims());
  EXPECT_EQ(Ctl({"run", path_, "--npy"}).code, 2);
}

TEST_F(RunCommandTest, TimesKernelsAndDrawsATimelineOfBothPlans) {
  const std::string file = dir_.path("trace.json");
  Json run = CtlJson({"run", path_, "--kernels", "--trace", file});
  ASSERT_FALSE(run["kernels"].empty());
  EXPECT_EQ(run["kernels"][0]["n"].get<int>() % 15, 0);
  const Json trace = Json::parse(ReadAll(file), nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(trace.contains("traceEvents")) << ReadAll(file);
  std::map<int, double> end;
  std::map<int, int> launches;
  std::vector<std::string> names;
  for (const Json& event : trace["traceEvents"]) {
    const int process = event["pid"];
    if (event["ph"] == "M") {
      names.push_back(event["args"]["name"]);
      continue;
    }
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>(), end[process]) << "launches overlap";
    EXPECT_GT(event["dur"].get<double>(), 0);
    EXPECT_FALSE(event["args"]["nodes"].empty());
    end[process] = event["ts"].get<double>();
    ++launches[process];
  }
  ASSERT_EQ(names.size(), 2u);
  EXPECT_THAT(names[0], HasSubstr("fused"));
  EXPECT_THAT(names[1], HasSubstr("op by op"));
  EXPECT_LT(launches[1], launches[2]) << "fusion leaves fewer launches";
  ProgramResult text = Ctl({"run", path_, "--kernels"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("estimate"), HasSubstr("GB/s")));
}

TEST_F(RunCommandTest, BadFilesAreNamed) {
  const std::string npy = WriteBytes("x.npy", ToNpy(data_.inputs[0].value));
  ProgramResult unknown = Ctl({"run", path_, "--input", "nothing=" + npy});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("--input \"nothing\": no such input"), HasSubstr(input())));
  ProgramResult missing = Ctl({"run", path_, "--input", input() + "=" + dir_.path("none.npy")});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("none.npy"));
  HostTensor other(DType::kI64, {2});
  const std::string wrong = WriteBytes("wrong.npy", ToNpy(other));
  ProgramResult type = Ctl({"run", path_, "--input", input() + "=" + wrong});
  EXPECT_EQ(type.code, 3);
  EXPECT_THAT(type.err, AllOf(HasSubstr("wrong.npy"), HasSubstr("i64[2]")));
  const std::string text = WriteBytes("text.npz", "no archive");
  ProgramResult archive = Ctl({"run", path_, "--data", text});
  EXPECT_EQ(archive.code, 3);
  EXPECT_THAT(archive.err, HasSubstr("text.npz\" is no ZIP archive"));
  const std::string half = WriteNpz("half.npz", {{"something", other}});
  ProgramResult strange = Ctl({"run", path_, "--data", half});
  EXPECT_EQ(strange.code, 3);
  EXPECT_THAT(
      strange.err,
      AllOf(HasSubstr("half.npz"),
            HasSubstr("member \"something.npy\": the model has no input or output of this name")));
  const std::string none = WriteNpz("none.npz", {{"output_0", other}});
  ProgramResult lacking = Ctl({"run", path_, "--data", none});
  EXPECT_EQ(lacking.code, 3);
  EXPECT_THAT(lacking.err, HasSubstr(StrCat("input \"", input(), "\" is missing from ")));
  EXPECT_EQ(
      Ctl({"run", path_, "--data", WriteNpz("arr.npz", {{"arr_0", data_.inputs[0].value}})}).code,
      0);
  EXPECT_EQ(Ctl({"run", path_, "--input", "no_file"}).code, 2);
}

}  // namespace
}  // namespace fusion
