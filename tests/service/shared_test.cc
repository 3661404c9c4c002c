// Outputs in the memory of inputs, through the client library and the real fusiond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/family_model.h"
#include "core/onnx/model_io.h"
#include "core/tensor/compare.h"
#include "tests/models/models.h"
#include "tests/service/client_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::HasSubstr;

constexpr int64_t kMost = 12;

// A decoder's attention: q and new keys of x [1,seq,8], 2 heads of 4, behind those in `past`.
TestModel Decoder() {
  TestModel m;
  HostTensor weight(DType::kF32, {8, 8});
  for (int64_t i = 0; i < 64; ++i) weight.SetDouble(i, static_cast<double>(i % 7 - 3) / 8);
  m.Input("x", {1, "seq", 8}).Input("past", {1, 2, "past", 4});
  m.Initializer("w", weight).Ints("heads", {1, -1, 2, 4});
  m.Node("MatMul", {"x", "w"}, {"k0"}).Node("Reshape", {"k0", "heads"}, {"k1"});
  m.Node("Transpose", {"k1"}, {"k2"}).Attr("perm", std::vector<int64_t>{0, 2, 1, 3});
  m.Node("Concat", {"past", "k2"}, {"present"}, "append").Attr("axis", 2);
  m.Node("Reshape", {"x", "heads"}, {"q1"});
  m.Node("Transpose", {"q1"}, {"q"}).Attr("perm", std::vector<int64_t>{0, 2, 1, 3});
  m.Node("Transpose", {"present"}, {"kt"}).Attr("perm", std::vector<int64_t>{0, 1, 3, 2});
  m.Node("MatMul", {"q", "kt"}, {"s"}).Node("Softmax", {"s"}, {"p"}).Attr("axis", -1);
  m.Node("MatMul", {"p", "present"}, {"y"}).Output("y").Output("present");
  return m;
}

class SharedTest : public ClientOfDaemonTest {
 protected:
  static FusedModelOptions Options() {
    FusedModelOptions options;
    options.plan.dim_ranges = {{"past", {.least = 0, .most = kMost - 1}}};
    options.plan.dim_bindings = {{"seq", 1}};
    options.plan.shared_buffers = {{"past", "present", kMost}};
    return options;
  }
  absl::StatusOr<std::unique_ptr<FusedModel>> Load(const FusedModelOptions& options) {
    return FusedModel::Load(*client_, Decoder().proto(), "", options);
  }
  static HostTensor Token(int64_t step) {
    HostTensor x(DType::kF32, {1, 1, 8});
    for (int64_t i = 0; i < 8; ++i)
      x.SetDouble(i, static_cast<double>((step * 5 + i * 3) % 11) / 4);
    return x;
  }
};

TEST_F(SharedTest, StepsAppendToOneBuffer) {
  absl::StatusOr<std::unique_ptr<FusedModel>> model = Load(Options());
  ASSERT_TRUE(model.ok()) << model.status();
  FusedModelOptions apart = Options();
  apart.plan.shared_buffers.clear();
  absl::StatusOr<std::unique_ptr<FusedModel>> plain = Load(apart);
  ASSERT_TRUE(plain.ok()) << plain.status();

  SharedMemory memory = (*model)->MakeMemory().value();
  const std::byte* const place = memory.buffers[0].bytes();
  HostTensor past(DType::kF32, {1, 2, 0, 4});
  for (int64_t step = 0; step < kMost; ++step) {
    SCOPED_TRACE(step);
    // What is beyond the rows is nobody's: nothing may come of it, and nothing be written there.
    HostTensor& buffer = memory.buffers[0];
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t i = step * 4; i < kMost * 4; ++i) buffer.SetDouble(h * kMost * 4 + i, NAN);
    }
    absl::StatusOr<std::vector<HostTensor>> got = (*model)->Run({{"x", Token(step)}}, &memory);
    ASSERT_TRUE(got.ok()) << got.status();
    absl::StatusOr<std::vector<HostTensor>> wanted =
        (*plain)->Run(std::map<std::string, HostTensor>{{"x", Token(step)}, {"past", past}});
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    EXPECT_TRUE(Compare((*got)[0], (*wanted)[0]).ok());
    EXPECT_EQ((*got)[1].elements(), 0) << "it lies in the buffer";
    EXPECT_EQ(memory.rows[0], step + 1);
    EXPECT_TRUE(Compare(RowsOf((*model)->plan(), memory, 0), (*wanted)[1]).ok());
    for (int64_t i = (step + 1) * 4; i < kMost * 4; ++i) {
      EXPECT_TRUE(std::isnan(buffer.GetDouble(i))) << "element " << i << " is written";
    }
    past = std::move((*wanted)[1]);
  }
  EXPECT_EQ(memory.buffers[0].bytes(), place);

  // The buffer is full: it stays as it is.
  const HostTensor before = memory.buffers[0];
  absl::Status full = (*model)->Run({{"x", Token(99)}}, &memory).status();
  EXPECT_TRUE(absl::IsInvalidArgument(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("the plan is for \"past\" = 0..11"));
  EXPECT_EQ(memory.rows[0], kMost);
  EXPECT_EQ(memory.buffers[0], before);
}

TEST_F(SharedTest, SequencesHaveMemoryOfTheirOwn) {
  std::unique_ptr<FusedModel> model = Load(Options()).value();
  SharedMemory a = model->MakeMemory().value();
  SharedMemory b = model->MakeMemory().value();
  for (int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(model->Run({{"x", Token(step)}}, &a).ok());
    ASSERT_TRUE(model->Run({{"x", Token(step + 50)}}, &b).ok());
  }
  SharedMemory again = model->MakeMemory().value();
  for (int64_t step = 0; step < 3; ++step)
    ASSERT_TRUE(model->Run({{"x", Token(step)}}, &again).ok());
  EXPECT_EQ(again.buffers[0], a.buffers[0]);
  EXPECT_NE(again.buffers[0], b.buffers[0]);
}

TEST_F(SharedTest, TensorsOfTheirOwnAreCopied) {
  std::unique_ptr<FusedModel> model = Load(Options()).value();
  HostTensor past(DType::kF32, {1, 2, 3, 4});
  for (int64_t i = 0; i < 24; ++i) past.SetDouble(i, static_cast<double>(i));
  absl::StatusOr<std::vector<HostTensor>> got =
      model->Run(std::map<std::string, HostTensor>{{"x", Token(1)}, {"past", past}});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[1].dims(), (Dims{1, 2, 4, 4}));
  EXPECT_EQ((*got)[1].GetDouble(0), 0);
  EXPECT_EQ((*got)[1].GetDouble(11), 11);
  EXPECT_EQ((*got)[1].GetDouble(16), 12);
}

TEST_F(SharedTest, MemoryIsMadeForDimsThatStayOpen) {
  FusedModelOptions options = Options();
  options.plan.dim_bindings.clear();
  options.plan.dim_ranges["seq"] = {.least = 1, .most = 3};
  options.plan.shared_buffers[0].capacity = 20;
  std::unique_ptr<FusedModel> model = Load(options).value();
  SharedMemory memory = model->MakeMemory({{"seq", 2}}).value();
  for (int64_t seq : {2, 3, 1}) {
    HostTensor x(DType::kF32, {1, seq, 8});
    const int64_t before = memory.rows[0];
    ASSERT_TRUE(model->Run({{"x", x}}, &memory).ok());
    EXPECT_EQ(memory.rows[0], before + seq);
  }
  EXPECT_THAT(std::string(model->MakeMemory({{"sec", 2}}).status().message()),
              HasSubstr("the plan leaves no dim \"sec\" open"));
  EXPECT_THAT(std::string(model->MakeMemory({{"seq", 4}}).status().message()),
              HasSubstr("dim \"seq\" is 4, the plan is for 1..3"));
  EXPECT_TRUE(absl::IsInvalidArgument(model->RunShared({}, {}, nullptr)));
}

TEST_F(SharedTest, APlanOfOneLengthSaysWhatItIsFor) {
  FusedModelOptions options = Options();
  options.plan.dim_ranges.clear();
  options.plan.dim_bindings = {{"seq", 1}, {"past", 3}};
  std::unique_ptr<FusedModel> model = Load(options).value();
  SharedMemory memory = model->MakeMemory().value();
  EXPECT_THAT(std::string(model->Run({{"x", Token(1)}}, &memory).status().message()),
              HasSubstr("input \"past\" is [1,2,0,4] in its buffer, the plan is for [1,2,3,4]"));
  memory.rows[0] = 3;
  EXPECT_TRUE(model->Run({{"x", Token(1)}}, &memory).ok());
  EXPECT_EQ(memory.rows[0], 4);
}

TEST_F(SharedTest, WhatLiesInABufferIsNotGivenToo) {
  std::unique_ptr<FusedModel> model = Load(Options()).value();
  SharedMemory memory = model->MakeMemory().value();
  absl::Status twice =
      model->Run({{"x", Token(1)}, {"past", HostTensor(DType::kF32, {1, 2, 0, 4})}}, &memory)
          .status();
  EXPECT_THAT(std::string(twice.message()),
              HasSubstr("input \"past\" is given, and lies in a shared buffer"));
  EXPECT_THAT(std::string(model->Run({}, &memory).status().message()),
              HasSubstr("input \"x\" is missing"));
  memory.buffers[0] = HostTensor(DType::kF32, {1, 2, 5, 4});
  EXPECT_THAT(std::string(model->Run({{"x", Token(1)}}, &memory).status().message()),
              HasSubstr("shared buffer 0 is [1,2,5,4] with 0 elements, expected 12 along dim 2"));
}

TEST_F(SharedTest, WhatCannotShareIsRefusedByName) {
  auto refusal = [&](const SharedNames& shared) {
    FusedModelOptions options = Options();
    options.plan.shared_buffers = {shared};
    absl::Status status = Load(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(
      refusal({"pasd", "present"}),
      HasSubstr("shared_buffers[0]: input \"pasd\" and output \"present\": the graph has no "
                "such input"));
  EXPECT_THAT(refusal({"past", "z"}), HasSubstr("the graph has no such output"));
  EXPECT_THAT(refusal({"x", "present"}), HasSubstr("expected shapes that differ in one dim"));
  EXPECT_THAT(refusal({"past", "present", 5}),
              HasSubstr("output \"present\" has 12 elements along dim 2, its buffer 5"));
}

TEST_F(SharedTest, PlansOfAFamilyShareOneMemory) {
  ASSERT_TRUE(SaveModel(Decoder().proto(), dir_.path("m.onnx")).ok());
  FamilyModelOptions options;
  options.model = Options();
  options.model.plan.shared_buffers[0].capacity = 0;
  options.model.plan.dim_ranges["past"].likely = 6;
  options.most_loss = -1;  // as many plans as there may be
  absl::StatusOr<std::unique_ptr<FamilyModel>> model =
      FamilyModel::Load(*client_, dir_.path("m.onnx"), options);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ((*model)->parts().size(), 3);
  while (!(*model)->exact().has_value()) std::this_thread::yield();
  EXPECT_TRUE((*model)->exact()->ok()) << *(*model)->exact();

  std::unique_ptr<FusedModel> one = Load(Options()).value();
  SharedMemory family = (*model)->MakeMemory().value();
  SharedMemory alone = one->MakeMemory().value();
  for (int64_t step = 0; step < kMost; ++step) {
    absl::StatusOr<std::vector<HostTensor>> got = (*model)->Run({{"x", Token(step)}}, &family);
    ASSERT_TRUE(got.ok()) << got.status();
    absl::StatusOr<std::vector<HostTensor>> wanted = one->Run({{"x", Token(step)}}, &alone);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    EXPECT_TRUE(Compare((*got)[0], (*wanted)[0]).ok()) << "step " << step;
  }
  EXPECT_TRUE(Compare(family.buffers[0], alone.buffers[0]).ok());
}

}  // namespace
}  // namespace fusion
