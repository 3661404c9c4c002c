#include "core/onnx/test_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>

#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST(TestData, ReadsWhatItWrites) {
  ScratchDir dir;
  TestDataSet data;
  data.inputs.push_back({"x", HostTensor::FromValues<float>(DType::kF32, {2}, {1, 2})});
  data.inputs.push_back({"mask", HostTensor::FromValues<int>(DType::kBool, {2, 1}, {1, 0})});
  data.outputs.push_back({"y", HostTensor::FromValues<float>(DType::kF16, {}, {0.5f})});
  std::string set = dir.path("test_data_set_0");
  ASSERT_TRUE(SaveTestDataSet(set, data).ok());
  EXPECT_TRUE(std::filesystem::exists(set + "/input_1.pb"));
  auto back = LoadTestDataSet(set);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->inputs.size(), 2u);
  ASSERT_EQ(back->outputs.size(), 1u);
  EXPECT_EQ(back->inputs[1].name, "mask");
  EXPECT_EQ(back->inputs[1].value, data.inputs[1].value);
  EXPECT_EQ(back->outputs[0].value, data.outputs[0].value);
  EXPECT_EQ(FindTestDataSets(dir.path()), (std::vector<std::string>{set}));
}

TEST(TestData, BadFilesAreNamed) {
  ScratchDir dir;
  dir.Write("input_0.pb", "\xff\xff\xff");
  auto data = LoadTestDataSet(dir.path());
  EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(data.status())), ::testing::HasSubstr("input_0.pb"));
  EXPECT_EQ(LoadTensorFile(dir.path("none.pb")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(SaveTestDataSet(dir.path("a/b"), {}).ok());
}

TEST(TestData, OneNameIsOfOneFile) {
  const NamedTensor x{"x", HostTensor::FromValues<float>(DType::kF32, {1}, {1})};
  const NamedTensor other{"x", HostTensor::FromValues<float>(DType::kF32, {2}, {1, 2})};
  for (const bool outputs : {false, true}) {
    ScratchDir dir;
    TestDataSet data;
    (outputs ? data.outputs : data.inputs) = {x, other};
    ASSERT_TRUE(SaveTestDataSet(dir.path("set"), data).ok());
    auto set = LoadTestDataSet(dir.path("set"));
    EXPECT_EQ(set.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string kind = outputs ? "output_" : "input_";
    EXPECT_THAT(std::string(Message(set.status())),
                testing::AllOf(HasSubstr(kind + "0.pb\" and \""), HasSubstr(kind + "1.pb\""),
                               HasSubstr("both hold \"x\"")));
  }
  // Files without names, and an output that is an input too.
  ScratchDir dir;
  ASSERT_TRUE(SaveTestDataSet(dir.path("set"), {{{"", x.value}, {"", x.value}}, {}}).ok());
  EXPECT_TRUE(LoadTestDataSet(dir.path("set")).ok());
  ASSERT_TRUE(SaveTestDataSet(dir.path("both"), {{x}, {x}}).ok());
  EXPECT_TRUE(LoadTestDataSet(dir.path("both")).ok());
}

std::string ErrorOf(const absl::Status& status) { return std::string(Message(status)); }

TEST(TestData, FilesThatNobodyWouldReadAreRefused) {
  ScratchDir dir;
  const NamedTensor one{"x", HostTensor::FromValues<float>(DType::kF32, {1}, {1})};
  ASSERT_TRUE(SaveTensorFile(dir.path("input_0.pb"), one).ok());
  ASSERT_TRUE(SaveTensorFile(dir.path("input_2.pb"), one).ok());
  EXPECT_THAT(ErrorOf(FindTestData(dir.path()).status()),
              HasSubstr("has input_2.pb but no input_1.pb"));
  std::filesystem::remove(dir.path("input_2.pb"));
  ASSERT_TRUE(SaveTensorFile(dir.path("input_0.npy"), one).ok());
  EXPECT_THAT(ErrorOf(FindTestData(dir.path()).status()),
              HasSubstr("has both input_0.pb and input_0.npy"));
  std::filesystem::remove(dir.path("input_0.npy"));
  ASSERT_TRUE(SaveTensorFile(dir.path("mask.npy"), one).ok());
  EXPECT_THAT(ErrorOf(FindTestData(dir.path()).status()),
              HasSubstr("\"mask.npy\", which is no input_NUMBER or output_NUMBER"));
  std::filesystem::remove(dir.path("mask.npy"));
  dir.Write("README.md", "not a tensor");
  for (int k = 1; k < 12; ++k) {
    ASSERT_TRUE(SaveTensorFile(dir.path(StrCat("input_", k, ".npy")), one).ok());
  }
  auto files = FindTestData(dir.path());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->inputs.size(), 12u);
  EXPECT_EQ(files->inputs[10], dir.path("input_10.npy"));
  EXPECT_EQ(FindTestData(dir.path("none")).status().code(), absl::StatusCode::kNotFound);
}

TEST(TestData, TheTypeIsReadFirst) {
  ScratchDir dir;
  for (const char* name : {"x.pb", "x.npy"}) {
    const std::string path = dir.path(name);
    ASSERT_TRUE(SaveTensorFile(path, {"x", HostTensor(DType::kI16, {3, 4})}).ok());
    auto type = ReadTensorType(path);
    ASSERT_TRUE(type.ok()) << type.status();
    EXPECT_EQ(type->dtype, DType::kI16);
    EXPECT_EQ(type->dims, (Dims{3, 4}));
    EXPECT_EQ(type->name, path.ends_with(".pb") ? "x" : "");
    auto refused = LoadTensorFile(path, [&](const std::string& asked, DType, const Dims&) {
      return InvalidArgument("no ", asked);
    });
    EXPECT_THAT(ErrorOf(refused.status()), HasSubstr(StrCat("no ", type->name)));
  }
}

// A terabyte that is not there: it would take minutes to read.
TEST(TestData, FilesOfMoreThanTheirTensorTakesAreNotRead) {
  ScratchDir dir;
  for (const char* name : {"x.pb", "x.npy"}) {
    const std::string path = dir.path(name);
    ASSERT_TRUE(SaveTensorFile(path, {"x", HostTensor(DType::kF32, {2})}).ok());
    const auto bytes = std::filesystem::file_size(path);
    std::filesystem::resize_file(path, uintmax_t{1} << 40);
    EXPECT_EQ(LoadTensorFile(path).status().code(), absl::StatusCode::kInvalidArgument) << name;
    std::filesystem::resize_file(path, bytes);
    EXPECT_TRUE(LoadTensorFile(path).ok()) << name;
  }
}

// Every encoding of the elements of a TensorProto, as long as it can be.
TEST(TestData, EveryEncodingFitsTheBound) {
  ScratchDir dir;
  onnx::TensorProto proto;
  proto.set_data_type(onnx::TensorProto::INT32);
  proto.add_dims(1 << 18);
  for (int i = 0; i < 1 << 18; ++i) proto.add_int32_data(-1);
  const std::string path = dir.Write("input_0.pb", proto.SerializeAsString());
  EXPECT_GT(std::filesystem::file_size(path), uintmax_t{10} << 18);
  auto read = LoadTensorFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->value.GetInt(77), -1);
}

}  // namespace
}  // namespace fusion
