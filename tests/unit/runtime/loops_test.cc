// Loops of a plan in an executor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/runtime/executor.h"
#include "tests/support/hand_made_kernel.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int64_t kRoom = 6;

HostTensor Count(int64_t value) {
  return HostTensor::FromValues<int64_t>(DType::kI64, {}, {value});
}
HostTensor State(float a, float b) {
  return HostTensor::FromValues<float>(DType::kF32, {2}, {a, b});
}

// (a, b) -> (b, a + b), as often as input 0 says and as long as the sum is below 100. Outputs: the
// state in the end, all states, how many there were.
struct Fibonacci {
  Plan plan;
  std::vector<std::shared_ptr<const LoadedKernel>> kernels;

  explicit Fibonacci(bool from_end = false) {
    auto tensor = [&](DType type, Dims dims, Space space, int index, int64_t offset = 0) {
      PlanTensor t{.dtype = type, .dims = dims, .strides = RowMajorStrides(dims), .space = space};
      t.index = index;
      t.offset = offset;
      t.bytes = NumElements(dims) * DTypeBytes(type);
      plan.tensors.push_back(std::move(t));
      return static_cast<int>(plan.tensors.size()) - 1;
    };
    const int count = tensor(DType::kI64, {}, Space::kInput, 0);
    const int initial = tensor(DType::kF32, {2}, Space::kInput, 1);
    const int last = tensor(DType::kF32, {2}, Space::kOutput, 0);
    const int all = tensor(DType::kF32, {kRoom, 2}, Space::kOutput, 1);
    const int passes = tensor(DType::kI64, {}, Space::kOutput, 2);
    const int spare = tensor(DType::kF32, {2}, Space::kArena, 0, 0);
    const int goes = tensor(DType::kBool, {}, Space::kArena, 0, 64);
    const int begins = tensor(DType::kBool, {}, Space::kInput, 2);
    const int before = tensor(DType::kF32, {2}, Space::kPass, 0);
    const int after = tensor(DType::kF32, {2}, Space::kPass, 1);
    const int kept = tensor(DType::kF32, {2}, Space::kPass, 2);
    plan.arena_bytes = 128;
    plan.inputs = {count, initial, begins};
    plan.outputs = {last, all, passes};
    plan.output_extents = {{.output = 1, .dim = 0, .count = 2}};
    for (const char* name : {"step", "look"}) {
      plan.kernels.push_back({.symbol = name, .label = name, .scratch_bytes = 256});
      plan.groups.push_back({.label = name, .kernel = static_cast<int>(plan.groups.size())});
    }
    plan.launches = {{.group = 0, .kernel = 0, .tensors = {before, after, kept}},
                     {.group = 1, .kernel = 1, .tensors = {after, goes}}};
    plan.loops = {{.first = 0,
                   .launches = 2,
                   .most = kRoom,
                   .must_end = true,
                   .count = count,
                   .begins = begins,
                   .goes_on = goes,
                   .passes = passes,
                   .carried = {{0, 1, initial, last, spare}},
                   .elements = {{2, all, from_end, /*written=*/true}}}};
    kernels.push_back(
        std::make_shared<HandMadeKernel>(3, TaskCount<1>, [](const HandMadeKernel::Call& call) {
          const float a = Floats(call, 0)[0];
          const float b = Floats(call, 0)[1];
          for (int out : {1, 2}) {
            Floats(call, out)[0] = b;
            Floats(call, out)[1] = a + b;
          }
        }));
    kernels.push_back(
        std::make_shared<HandMadeKernel>(2, TaskCount<1>, [](const HandMadeKernel::Call& call) {
          *static_cast<bool*>(call.args.tensors[1].data) = Floats(call, 0)[1] < 100;
        }));
  }

  std::unique_ptr<Executor> Make() const {
    auto made = Executor::Create(plan, kernels, {.threads = 2});
    FUSION_CHECK(made.ok(), Message(made.status()));
    FUSION_CHECK((*made)->Prepare([](int) { return NotFound("no weight"); }).ok(), "no weights");
    return *std::move(made);
  }
};

std::vector<HostTensor> Given(int64_t count, float a, float b, bool begins = true) {
  HostTensor begin(DType::kBool, {});
  begin.SetInt(0, begins ? 1 : 0);
  std::vector<HostTensor> out;
  out.push_back(Count(count));
  out.push_back(State(a, b));
  out.push_back(std::move(begin));
  return out;
}

std::vector<float> Floats(const HostTensor& tensor) {
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}

// With room for as many passes as input 3 has elements.
struct OpenFibonacci : Fibonacci {
  OpenFibonacci() {
    const SizeExpr room = SizeExpr::Sum({{1, {0}}});
    plan.symbols = {{.least = 0, .most = kRoom}};
    PlanTensor x{.dtype = DType::kF32, .dims = {kRoom}, .strides = {1}, .space = Space::kInput};
    x.index = 3;
    x.bytes = kRoom * 4;
    x.sizes = {room, 1};
    plan.inputs.push_back(static_cast<int>(plan.tensors.size()));
    plan.tensors.push_back(x);
    const int all = plan.loops[0].elements[0].whole;
    plan.tensors[static_cast<size_t>(all)].sizes = {room, 2, 2, 1};
    plan.loops[0].open_most = room;
  }

  static std::vector<HostTensor> Given(int64_t count, int64_t room) {
    std::vector<HostTensor> out = fusion::Given(count, 0, 1);
    out.emplace_back(DType::kF32, Dims{room});
    return out;
  }
};

TEST(Loops, HaveRoomAsTheSymbolsSay) {
  const std::unique_ptr<Executor> executor = OpenFibonacci().Make();
  for (const int64_t room : {5, 3, 0, 6}) {
    const int64_t count = std::min<int64_t>(room, 4);
    auto outputs = executor->Run(OpenFibonacci::Given(count, room));
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[1].dims(), (Dims{count, 2})) << "as many as there were";
    auto more = executor->Run(OpenFibonacci::Given(room + 1, room));
    EXPECT_TRUE(absl::IsResourceExhausted(more.status())) << more.status();
    EXPECT_THAT(std::string(Message(more.status())), HasSubstr(StrCat("more than ", room)));
  }
}

TEST(Loops, WhatFitsTheLargestValuesAloneIsRefused) {
  OpenFibonacci made;
  made.plan.loops[0].open_most = std::nullopt;  // goes along what may be shorter
  const std::unique_ptr<Executor> executor = made.Make();
  EXPECT_TRUE(executor->Run(OpenFibonacci::Given(2, kRoom)).ok());
  auto fewer = executor->Run(OpenFibonacci::Given(2, 3));
  EXPECT_THAT(std::string(Message(fewer.status())), HasSubstr("as many as passes"));
  // A state that is as large for the largest values only.
  OpenFibonacci state;
  PlanTensor& last = state.plan.tensors[static_cast<size_t>(state.plan.loops[0].carried[0].last)];
  last.sizes = {SizeExpr::Sum({{1, {0}}, {2 - kRoom, {}}}), 1};
  EXPECT_FALSE(Executor::Create(state.plan, state.kernels, {.threads = 2}).ok())
      << "below 0 for small values";
}

TEST(Loops, HandStateFromPassToPass) {
  const std::unique_ptr<Executor> executor = Fibonacci().Make();
  std::vector<float> state = {0, 1};
  std::vector<float> all;
  for (int64_t count = 0; count <= kRoom; ++count) {
    auto out = executor->Run(Given(count, 0, 1));
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Floats(out->at(0)), ElementsAreArray(state)) << count;
    EXPECT_THAT(out->at(1).dims(), ElementsAre(count, 2));
    EXPECT_THAT(Floats(out->at(1)), ElementsAreArray(all));
    state = {state[1], state[0] + state[1]};
    all.insert(all.end(), state.begin(), state.end());
  }
}

TEST(Loops, EndWhereAPassSaysSo) {
  const std::unique_ptr<Executor> executor = Fibonacci().Make();
  auto out = executor->Run(Given(kRoom, 30, 50));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Floats(out->at(0)), ElementsAre(80, 130));
  EXPECT_THAT(out->at(1).dims(), ElementsAre(2, 2));
  out = executor->Run(Given(kRoom, 3, 5, /*begins=*/false));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Floats(out->at(0)), ElementsAre(3, 5));
  EXPECT_EQ(out->at(1).elements(), 0);
}

TEST(Loops, FillFromTheEnd) {
  Fibonacci backwards(/*from_end=*/true);
  backwards.plan.output_extents.clear();
  backwards.plan.outputs.pop_back();
  backwards.plan.loops[0].passes = -1;
  backwards.plan.tensors[4].space = Space::kArena;
  auto out = backwards.Make()->Run(Given(kRoom, 0, 1));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Floats(out->at(1)), ElementsAre(8, 13, 5, 8, 3, 5, 2, 3, 1, 2, 1, 1));
}

TEST(Loops, LeaveZerosWhereNoPassWrote) {
  for (const bool from_end : {false, true}) {
    const std::unique_ptr<Executor> executor = Fibonacci(from_end).Make();
    std::vector<HostTensor> out = executor->MakeOutputs().value();
    for (float& v : out[1].data<float>()) v = NAN;
    const std::vector<HostTensor> in = Given(2, 0, 1);
    ASSERT_TRUE(executor->RunInto({&in[0], &in[1], &in[2]}, {&out[0], &out[1], &out[2]}).ok());
    if (from_end) {
      EXPECT_THAT(Floats(out[1]), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 1));
    } else {
      EXPECT_THAT(Floats(out[1]), ElementsAre(1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0));
    }
  }
}

TEST(Loops, RefuseMorePassesThanThereIsRoomFor) {
  const std::unique_ptr<Executor> executor = Fibonacci().Make();
  EXPECT_TRUE(executor->Run(Given(kRoom + 1, 40, 50)).ok()) << "it ends in time";
  EXPECT_TRUE(executor->Run(Given(kRoom + 1, 40, 50, /*begins=*/false)).ok());
  EXPECT_EQ(Message(executor->Run(Given(kRoom + 1, 0, 1)).status()),
            "a loop would make more than 6 passes, which is what there is room for; a plan for a "
            "known number has room for that");
  Fibonacci endless;
  endless.plan.loops[0].count = -1;
  const std::unique_ptr<Executor> other = endless.Make();
  EXPECT_TRUE(absl::IsResourceExhausted(other->Run(Given(0, 0, 1)).status()));
  EXPECT_TRUE(other->Run(Given(0, 40, 50)).ok());
  endless.plan.loops[0].must_end = false;
  EXPECT_TRUE(endless.Make()->Run(Given(0, 0, 1)).ok());
}

TEST(Loops, AreTimedByLaunchInAllPasses) {
  RunProfile profile;
  ASSERT_TRUE(Fibonacci().Make()->Run(Given(kRoom, 0, 1), &profile).ok());
  ASSERT_EQ(profile.launch_us.size(), 2U);
  EXPECT_GT(profile.launch_us[0], 0);
  EXPECT_GE(profile.total_us, profile.launch_us[0] + profile.launch_us[1]);
}

TEST(Loops, RunAtOnce) {
  const std::unique_ptr<Executor> executor = Fibonacci().Make();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int64_t count = (t + i) % kRoom;
        auto out = executor->Run(Given(count, 0, 1));
        const float expected[] = {1, 1, 2, 3, 5, 8, 13};
        if (!out.ok() || Floats(out->at(0))[1] != expected[count]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fusion
