#include "core/onnx/model_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/scratch_dir.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Small() {
  TestModel m;
  m.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y", {2});
  return m.proto().SerializeAsString();
}

std::string ErrorOf(std::string_view bytes) {
  auto model = ParseModel(bytes);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
  return std::string(Message(model.status()));
}

TEST(ModelIo, ReadsWhatItWrites) {
  ScratchDir dir;
  auto model = ParseModel(Small());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE(SaveModel(*model, dir.path("m.onnx")).ok());
  auto back = LoadModel(dir.path("m.onnx"));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->SerializeAsString(), model->SerializeAsString());
}

TEST(ModelIo, EmptyIsSaidToBeEmpty) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("is empty, expected an ONNX model"));
  ScratchDir dir;
  auto file = LoadModel(dir.Write("e.onnx", ""));
  EXPECT_THAT(std::string(Message(file.status())),
              AllOf(HasSubstr("e.onnx"), HasSubstr("is empty")));
}

TEST(ModelIo, OtherFilesAreNoModels) {
  EXPECT_THAT(ErrorOf("version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("not an ONNX model"));
  EXPECT_THAT(ErrorOf("\x89PNG\r\n\x1a\n"), HasSubstr("not an ONNX model"));
  EXPECT_THAT(ErrorOf("<html><body>404</body></html>"), HasSubstr("not an ONNX model"));
  EXPECT_THAT(ErrorOf(std::string(64, '\0')), HasSubstr("not an ONNX model"));
  // A valid message of another kind has no graph.
  onnx::TensorProto tensor;
  tensor.add_dims(3);
  EXPECT_THAT(ErrorOf(tensor.SerializeAsString()), HasSubstr("not an ONNX model"));
}

TEST(ModelIo, EveryCutIsAnErrorAndMostSayTruncated) {
  std::string bytes = Small();
  int truncated = 0;
  for (size_t n = 1; n < bytes.size(); ++n) {
    auto model = ParseModel(std::string_view(bytes).substr(0, n));
    if (model.ok()) continue;  // a cut between fields may leave a shorter model
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    truncated += Message(model.status()).find("truncated") != std::string_view::npos ? 1 : 0;
  }
  EXPECT_GT(truncated, static_cast<int>(bytes.size()) * 3 / 4);
}

TEST(ModelIo, TruncatedFilesSayWhere) {
  ScratchDir dir;
  std::string bytes = Small();
  auto model = LoadModel(dir.Write("t.onnx", bytes.substr(0, 20)));
  EXPECT_THAT(std::string(Message(model.status())),
              AllOf(HasSubstr("t.onnx"), HasSubstr("truncated: field graph at byte 2 has")));
}

TEST(ModelIo, DamageInsideIsMalformed) {
  std::string bytes = Small();
  // The length of a field inside the graph runs past the graph's end.
  size_t relu = bytes.find("Relu");
  bytes[relu - 1] = '\x7f';
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("malformed"));
}

// A model of sequences of sequences, `levels` messages deep.
std::string Nested(int levels) {
  const auto wrap = [](char tag, const std::string& inside) {
    std::string out(1, tag);
    for (size_t left = inside.size();; left >>= 7) {
      out.push_back(static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0)));
      if (left <= 0x7f) return out + inside;
    }
  };
  std::string type;  // TypeProto: sequence_type = 4 { elem_type = 1 }
  for (int level = 3; level + 1 < levels; level += 2) type = wrap('\x22', wrap('\x0a', type));
  // ModelProto: graph = 7 { value_info = 13 { type = 2 } }
  return wrap('\x3a', wrap('\x6a', wrap('\x12', type)));
}

TEST(ModelIo, WhatNestsTooDeepIsNotCalledMalformed) {
  EXPECT_TRUE(ParseModel(Nested(99)).ok());
  ScratchDir dir;
  for (int levels : {101, 103, 1001}) {
    const std::string bytes = Nested(levels);
    EXPECT_THAT(ErrorOf(bytes), HasSubstr("nested deeper than 100 messages"));
    const auto file = LoadModel(dir.Write("deep.onnx", bytes));
    EXPECT_THAT(std::string(Message(file.status())),
                AllOf(HasSubstr("deep.onnx"), HasSubstr("nested deeper than 100 messages")));
  }
}

TEST(ModelIo, FilesThatCannotBeOpenedAreNotFound) {
  EXPECT_EQ(LoadModel("/nonexistent/m.onnx").status().code(), absl::StatusCode::kNotFound);
  ScratchDir dir;
  auto directory = LoadModel(dir.path());
  EXPECT_THAT(std::string(Message(directory.status())),
              HasSubstr("is a directory, not a regular file"));
  EXPECT_EQ(SaveModel(onnx::ModelProto(), "/nonexistent/m.onnx").code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ModelIo, DirectoriesOfModels) {
  EXPECT_EQ(ModelDirectory("m.onnx"), ".");
  EXPECT_EQ(ModelDirectory("a/b/m.onnx"), "a/b");
  EXPECT_EQ(ModelDirectory("/m.onnx"), "/");
}

}  // namespace
}  // namespace fusion
