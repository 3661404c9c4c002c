#include "core/onnx/test_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace fusion {
namespace {

TEST(TestData, ReadsWhatItWrites) {
  TempDir dir;
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
  TempDir dir;
  dir.Write("input_0.pb", "\xff\xff\xff");
  auto data = LoadTestDataSet(dir.path());
  EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(data.status())), ::testing::HasSubstr("input_0.pb"));
  EXPECT_EQ(LoadTensorFile(dir.path("none.pb")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(SaveTestDataSet(dir.path("a/b"), {}).ok());
}

}  // namespace
}  // namespace fusion
