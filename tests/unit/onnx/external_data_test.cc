#include "core/onnx/external_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

onnx::TensorProto At(const std::string& location, const std::string& offset = "",
                     const std::string& length = "") {
  onnx::TensorProto t;
  t.set_name("w");
  t.set_data_type(onnx::TensorProto::INT16);
  t.add_dims(2);
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  auto add = [&t](const std::string& key, const std::string& value) {
    if (value.empty()) return;
    t.add_external_data()->set_key(key);
    t.mutable_external_data(t.external_data_size() - 1)->set_value(value);
  };
  add("location", location);
  add("offset", offset);
  add("length", length);
  return t;
}

std::string Read(const onnx::TensorProto& t, const std::string& directory) {
  auto value = ReadTensor(t, directory, "initializer \"w\"");
  if (value.ok()) return StrCat(value->GetInt(0), " ", value->GetInt(1));
  return std::string(Message(value.status()));
}

TEST(ExternalData, ReadsAtOffset) {
  ScratchDir dir;
  dir.Write("w.bin", std::string("\x01\x00\x02\x00\x03\x00", 6));
  EXPECT_EQ(Read(At("w.bin"), dir.path()), "1 2");
  EXPECT_EQ(Read(At("w.bin", "2", "4"), dir.path()), "2 3");
  std::filesystem::create_directory(dir.path("sub"));
  dir.Write("sub/w.bin", std::string("\x07\x00\x08\x00", 4));
  EXPECT_EQ(Read(At("sub/w.bin"), dir.path()), "7 8");
  EXPECT_EQ(Read(At("./w.bin"), dir.path()), "1 2");
}

TEST(ExternalData, MissingFilesNameTensorAndFile) {
  ScratchDir dir;
  auto value = ReadExternalTensor(At("gone.bin"), dir.path(), "initializer \"w\"");
  EXPECT_EQ(value.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(Message(value.status())),
      AllOf(HasSubstr("initializer \"w\""), HasSubstr("\"gone.bin\""), HasSubstr("No such file")));
  EXPECT_THAT(Read(At("w.bin"), dir.path("nowhere")), HasSubstr("the model's directory"));
}

TEST(ExternalData, PathsThatLeaveTheDirectoryAreRefused) {
  ScratchDir dir;
  std::filesystem::create_directory(dir.path("model"));
  dir.Write("secret", "abcd");
  std::string inside = dir.path("model");
  for (const std::string& path : {std::string("../secret"), dir.path("secret"),
                                  std::string("sub/../../secret"), std::string("..")}) {
    EXPECT_THAT(Read(At(path), inside), HasSubstr("lies outside of the model's directory")) << path;
  }
  ASSERT_EQ(::symlink(dir.path("secret").c_str(), dir.path("model/link").c_str()), 0);
  EXPECT_THAT(Read(At("link"), inside), HasSubstr("lies outside of the model's directory"));
  ASSERT_EQ(::symlink("..", dir.path("model/up").c_str()), 0);
  EXPECT_THAT(Read(At("up/secret"), inside), HasSubstr("lies outside of the model's directory"));
  // A sibling whose name starts like the directory is outside as well.
  std::filesystem::create_directory(dir.path("model2"));
  dir.Write("model2/secret", "abcd");
  ASSERT_EQ(::symlink("../model2/secret", dir.path("model/other").c_str()), 0);
  EXPECT_THAT(Read(At("other"), inside), HasSubstr("lies outside of the model's directory"));
  onnx::TensorProto zero = At("x");
  zero.mutable_external_data(0)->set_value(std::string("secret\0x", 8));
  EXPECT_THAT(Read(zero, inside), HasSubstr("lies outside"));
}

TEST(ExternalData, LinksInsideAreFollowed) {
  ScratchDir dir;
  dir.Write("data", std::string("\x01\x00\x02\x00", 4));
  ASSERT_EQ(::symlink("data", dir.path("link").c_str()), 0);
  EXPECT_EQ(Read(At("link"), dir.path()), "1 2");
}

TEST(ExternalData, NumbersMustFit) {
  ScratchDir dir;
  dir.Write("w.bin", "abcdef");
  EXPECT_THAT(Read(At("w.bin", "3"), dir.path()),
              HasSubstr("has 6 bytes, expected at least 4 from byte 3"));
  EXPECT_THAT(Read(At("w.bin", "9223372036854775807"), dir.path()),
              HasSubstr("expected at least 4"));
  EXPECT_THAT(Read(At("w.bin", "0", "3"), dir.path()),
              HasSubstr("length is 3 bytes, i16[2] needs 4"));
  EXPECT_THAT(Read(At("w.bin", "-1"), dir.path()), HasSubstr("offset is \"-1\""));
  EXPECT_THAT(Read(At("w.bin", "1x"), dir.path()), HasSubstr("expected a number of bytes"));
  EXPECT_THAT(Read(At("w.bin", "99999999999999999999"), dir.path()),
              HasSubstr("expected a number"));
  EXPECT_THAT(Read(At(""), dir.path()), HasSubstr("without a location"));
}

TEST(ExternalData, OnlyRegularFiles) {
  ScratchDir dir;
  ASSERT_EQ(::mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(Read(At("pipe"), dir.path()), HasSubstr("is a pipe, not a regular file"));
  std::filesystem::create_directory(dir.path("sub"));
  EXPECT_THAT(Read(At("sub"), dir.path()), HasSubstr("is a directory, not a regular file"));
}

TEST(ExternalData, WeightsLeftWithTheClientAreNoFiles) {
  ScratchDir dir;
  onnx::TensorProto t = At("x");
  t.set_raw_data("abcd");
  ReferToClient(&t);
  EXPECT_FALSE(t.has_raw_data());
  EXPECT_THAT(Read(t, dir.path()), HasSubstr("were left with the client"));
}

}  // namespace
}  // namespace fusion
