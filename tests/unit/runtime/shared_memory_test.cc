#include "core/runtime/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using testing::HasSubstr;

// x [4] and past [2,3], of which present [2,5] has room for 8.
Plan Appending() {
  Plan plan;
  plan.tensors = {
      {.dims = {4}, .strides = {1}, .space = Space::kInput, .index = 0, .bytes = 16},
      {.dims = {2, 3}, .strides = {8, 1}, .space = Space::kInput, .index = 1, .bytes = 44},
      {.dims = {2, 5}, .strides = {8, 1}, .space = Space::kOutput, .index = 0, .bytes = 52},
      {.dims = {2, 2},
       .strides = {8, 1},
       .space = Space::kOutput,
       .index = 0,
       .offset = 12,
       .bytes = 40}};
  plan.inputs = {0, 1};
  plan.outputs = {2};
  plan.shared_buffers = {{.input = 1, .output = 0, .dim = 1, .capacity = 8}};
  return plan;
}

TEST(SharedMemory, HasRoomAndHoldsNothing) {
  absl::StatusOr<SharedMemory> memory = MakeSharedMemory(Appending(), {});
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->buffers[0], HostTensor(DType::kF32, {2, 8}));
  EXPECT_EQ(memory->rows, std::vector<int64_t>{0});
}

TEST(SharedMemory, DenseInputsGoInAndDenseRowsComeOut) {
  const HostTensor x(DType::kF32, {4});
  const HostTensor past = HostTensor::FromValues(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  absl::StatusOr<SharedMemory> memory = LoadSharedMemory(Appending(), {&x, &past});
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->buffers[0],
            HostTensor::FromValues(DType::kF32, {2, 8},
                                   {1, 2, 3, 0, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0}));
  EXPECT_EQ(RowsOf(Appending(), *memory, 0), past);
  memory->rows[0] = 1;
  EXPECT_EQ(RowsOf(Appending(), *memory, 0), HostTensor::FromValues(DType::kF32, {2, 1}, {1, 4}));
  EXPECT_EQ(InputDims(Appending(), {&x, nullptr}, &*memory).value(),
            (std::vector<Dims>{{4}, {2, 1}}));
}

TEST(SharedMemory, RowsGoIntoTensorsOfTheCaller) {
  const Plan plan = Appending();
  const HostTensor x(DType::kF32, {4});
  const HostTensor past = HostTensor::FromValues(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  SharedMemory memory = LoadSharedMemory(plan, {&x, &past}).value();
  HostTensor present(DType::kF32, {2, 3});
  const std::byte* const place = present.bytes();
  EXPECT_TRUE(StoreRows(plan, memory, {&present}).ok());
  EXPECT_EQ(present, past);
  EXPECT_EQ(present.bytes(), place);
  HostTensor other(DType::kF32, {2, 4});
  EXPECT_THAT(std::string(StoreRows(plan, memory, {&other}).message()),
              HasSubstr("output 0 is f32[2,4], expected f32[2,3]"));
  EXPECT_THAT(std::string(StoreRows(plan, memory, {nullptr}).message()),
              HasSubstr("output 0 is not given"));
  EXPECT_THAT(std::string(LoadSharedMemory(plan, {&x, nullptr}).status().message()),
              HasSubstr("input 1 is not given"));
}

TEST(SharedMemory, WhatDoesNotFitIsNamed) {
  const Plan plan = Appending();
  const HostTensor x(DType::kF32, {4});
  const HostTensor longer(DType::kF32, {2, 9});
  const HostTensor flat(DType::kF32, {6});
  for (const HostTensor* past : {&longer, &flat}) {
    EXPECT_THAT(std::string(LoadSharedMemory(plan, {&x, past}).status().message()),
                HasSubstr("input 1 is f32"));
  }
  SharedMemory memory = MakeSharedMemory(plan, {}).value();
  auto complaint = [&] {
    absl::Status status = InputDims(plan, {&x, nullptr}, &memory).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  memory.rows[0] = 9;
  EXPECT_THAT(complaint(), HasSubstr("shared buffer 0 is [2,8] with 9 elements, expected 8 along"));
  memory.rows[0] = -1;
  EXPECT_THAT(complaint(), HasSubstr("with -1 elements"));
  memory.rows = {};
  EXPECT_THAT(complaint(), HasSubstr("1 shared buffers with 0 numbers of elements given"));
  memory = {.buffers = {HostTensor(DType::kF32, {2, 7})}, .rows = {0}};
  EXPECT_THAT(complaint(), HasSubstr("shared buffer 0 is [2,7]"));
  EXPECT_THAT(std::string(InputDims(plan, {&x, nullptr}, nullptr).status().message()),
              HasSubstr("input 1 is not given"));
}

TEST(SharedMemory, PlansMustStayWithinIt) {
  Plan plan = Appending();
  EXPECT_TRUE(Verify(plan).ok()) << Verify(plan);
  plan.tensors[3].offset = 28;  // its last element is behind the last one there is room for
  EXPECT_THAT(std::string(Verify(plan).message()), HasSubstr("plan tensor 3: outside its space"));
  plan.tensors[3].offset = -4;
  EXPECT_THAT(std::string(Verify(plan).message()), HasSubstr("plan tensor 3: outside its space"));
  plan.tensors[3].offset = 6;
  EXPECT_THAT(std::string(Verify(plan).message()), HasSubstr("plan tensor 3: outside its space"));
  plan.tensors[3].offset = 12;
  plan.shared_buffers.clear();  // an output that shares nothing
  EXPECT_THAT(std::string(Verify(plan).message()), HasSubstr("outside its space"));
  plan = Appending();
  plan.tensors[2].strides = {0, 0};  // as if it fitted any memory
  EXPECT_THAT(std::string(Verify(plan).message()), HasSubstr("plan shared_buffers"));
  plan = Appending();
  plan.tensors[2].dims[1] = 9;
  EXPECT_THAT(std::string(Verify(plan).message()), HasSubstr("plan shared_buffers"));
  plan = Appending();
  plan.shared_buffers[0].capacity = 4;
  EXPECT_THAT(std::string(Verify(plan).message()), HasSubstr("plan shared_buffers"));
  plan.shared_buffers.clear();
  EXPECT_THAT(std::string(Verify(plan).message()), HasSubstr("outside its space"));
}

}  // namespace
}  // namespace fusion
