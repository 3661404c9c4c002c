#include "core/runtime/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "tests/support/fake_clock.h"
#include "tests/support/hand_made_kernel.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTasks = 8;
constexpr int64_t kPart = 16;  // elements of a task
constexpr int64_t kElements = kTasks * kPart;

using Kernels = std::vector<std::shared_ptr<const LoadedKernel>>;

// out = 2 * (x + w), in two launches with an intermediate in the arena; w is copied before.
Plan SmallPlan() {
  Plan plan;
  plan.threads = 3;
  plan.nodes = 2;
  auto tensor = [&](Space space, int64_t offset) {
    plan.tensors.push_back({.dims = {kElements},
                            .strides = {1},
                            .space = space,
                            .offset = offset,
                            .bytes = kElements * 4});
    return static_cast<int>(plan.tensors.size()) - 1;
  };
  plan.inputs = {tensor(Space::kInput, 0)};
  plan.weights = {tensor(Space::kWeight, 0)};
  plan.outputs = {tensor(Space::kOutput, 0)};
  int packed = tensor(Space::kPrepared, 64);
  int sum = tensor(Space::kArena, 128);
  plan.prepared_bytes = 64 + kElements * 4;
  plan.arena_bytes = 128 + kElements * 4;
  for (const char* name : {"copy", "add", "twice"}) {
    plan.kernels.push_back({.symbol = name, .label = name, .scratch_bytes = 256});
    plan.groups.push_back({.label = name, .kernel = static_cast<int>(plan.groups.size())});
  }
  plan.prepare = {{.group = 0, .kernel = 0, .tensors = {plan.weights[0], packed}}};
  plan.launches = {{.group = 1, .kernel = 1, .tensors = {plan.inputs[0], packed, sum}},
                   {.group = 2, .kernel = 2, .tensors = {sum, plan.outputs[0]}}};
  return plan;
}

template <typename Value>
HandMadeKernel::Body EachElement(int out, const Value& value) {
  return [out, value](const HandMadeKernel::Call& call) {
    for (int64_t i = call.task * kPart; i < (call.task + 1) * kPart; ++i) {
      Floats(call, out)[i] = value(call, i);
    }
  };
}

struct SmallKernels {
  std::shared_ptr<HandMadeKernel> copy = std::make_shared<HandMadeKernel>(
      2, TaskCount<kTasks>,
      EachElement(1, [](const auto& call, int64_t i) { return Floats(call, 0)[i]; }));
  std::shared_ptr<HandMadeKernel> add = std::make_shared<HandMadeKernel>(
      3, TaskCount<kTasks>, EachElement(2, [](const auto& call, int64_t i) {
        return Floats(call, 0)[i] + Floats(call, 1)[i];
      }));
  std::shared_ptr<HandMadeKernel> twice = std::make_shared<HandMadeKernel>(
      2, TaskCount<kTasks>,
      EachElement(1, [](const auto& call, int64_t i) { return 2 * Floats(call, 0)[i]; }));

  Kernels all() const { return {copy, add, twice}; }
};

HostTensor Filled(float first) {
  HostTensor t(DType::kF32, {kElements});
  for (int64_t i = 0; i < kElements; ++i) {
    t.data<float>()[static_cast<size_t>(i)] = first + static_cast<float>(i);
  }
  return t;
}

void ExpectTwiceTheSum(const HostTensor& y, const HostTensor& x, const HostTensor& w) {
  ASSERT_EQ(y.dims(), x.dims());
  for (size_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(y.data<float>()[i], 2 * (x.data<float>()[i] + w.data<float>()[i])) << i;
  }
}

std::unique_ptr<Executor> Make(ExecutorOptions options = {}, Kernels kernels = SmallKernels().all(),
                               Plan plan = SmallPlan()) {
  auto executor = Executor::Create(std::move(plan), std::move(kernels), std::move(options));
  FUSION_CHECK(executor.ok(), Message(executor.status()));
  return *std::move(executor);
}

std::string CreateError(Plan plan, Kernels kernels, ExecutorOptions options = {},
                        absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  auto executor = Executor::Create(std::move(plan), std::move(kernels), std::move(options));
  EXPECT_EQ(executor.status().code(), code);
  return std::string(Message(executor.status()));
}

TEST(Executor, RunsAPlan) {
  for (int threads : {0, 1, 4}) {
    std::unique_ptr<Executor> executor = Make({.threads = threads});
    HostTensor x = Filled(1);
    HostTensor w = Filled(100);
    ASSERT_TRUE(executor
                    ->Prepare([&](int i) {
                      EXPECT_EQ(i, 0);
                      return &w;
                    })
                    .ok());
    RunProfile profile;
    auto y = executor->Run({x}, &profile);
    ASSERT_TRUE(y.ok()) << y.status();
    ExpectTwiceTheSum(y->at(0), x, w);
    EXPECT_EQ(profile.launch_us.size(), 2u);
    EXPECT_GE(profile.total_us, profile.launch_us[0] + profile.launch_us[1]);
    EXPECT_EQ(x, Filled(1));
  }
}

TEST(Executor, PackedWeightsMayGoAfterPrepare) {
  std::unique_ptr<Executor> executor = Make();
  {
    HostTensor w = Filled(100);
    ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
    std::fill_n(w.bytes(), w.byte_size(), std::byte{0xFF});
  }
  auto y = executor->Run({Filled(1)});
  ASSERT_TRUE(y.ok()) << y.status();
  ExpectTwiceTheSum(y->at(0), Filled(1), Filled(100));
}

TEST(Executor, RefusesToRunBeforePrepare) {
  auto y = Make()->Run({Filled(1)});
  EXPECT_EQ(y.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Executor, RefusesToRunAfterAFailedPrepare) {
  std::unique_ptr<Executor> executor = Make();
  absl::Status status = executor->Prepare(
      [](int) -> absl::StatusOr<const HostTensor*> { return NotFound("no such weight"); });
  EXPECT_EQ(status, NotFound("no such weight"));
  EXPECT_EQ(executor->Run({Filled(1)}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Executor, RefusesWeightsOfAnotherType) {
  for (const HostTensor& wrong :
       {HostTensor(DType::kF64, {kElements}), HostTensor(DType::kF32, {kElements - 1}),
        HostTensor(DType::kF32, {kElements, 1})}) {
    absl::Status status = Make()->Prepare([&](int) { return &wrong; });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("the plan says f32[128]"));
  }
}

TEST(Executor, RefusesANullWeight) {
  absl::Status status =
      Make()->Prepare([](int) -> absl::StatusOr<const HostTensor*> { return nullptr; });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("weight 0 is a null pointer"));
}

TEST(Executor, RefusesInputsAndOutputsOfAnotherType) {
  std::unique_ptr<Executor> executor = Make();
  HostTensor w = Filled(100);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  HostTensor x = Filled(1);
  for (const HostTensor& wrong :
       {HostTensor(DType::kI32, {kElements}), HostTensor(DType::kF32, {kElements + 1}),
        HostTensor(DType::kF32, {2, kElements / 2})}) {
    auto y = executor->Run({wrong});
    EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(y.status())), HasSubstr("expected f32[128]"));
    HostTensor out = wrong;
    EXPECT_EQ(executor->RunInto({&x}, {&out}).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(executor->Run({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(executor->Run({x, x}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(executor->RunInto({&x}, {}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Executor, RunsIntoTensorsOfTheCaller) {
  std::unique_ptr<Executor> executor = Make();
  HostTensor w = Filled(100);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  std::vector<HostTensor> outputs = executor->MakeOutputs().value();
  ASSERT_EQ(outputs.size(), 1u);
  HostTensor x = Filled(7);
  ASSERT_TRUE(executor->RunInto({&x}, {&outputs[0]}).ok());
  ExpectTwiceTheSum(outputs[0], x, w);
}

TEST(Executor, RefusesKernelsThatDoNotFitThePlan) {
  SmallKernels k;
  EXPECT_THAT(CreateError(SmallPlan(), {k.copy, k.add}), HasSubstr("2 kernels for a plan of 3"));
  EXPECT_THAT(CreateError(SmallPlan(), {k.copy, nullptr, k.twice}, {},
                          absl::StatusCode::kFailedPrecondition),
              HasSubstr("kernel add is missing"));
  EXPECT_THAT(CreateError(SmallPlan(), {k.copy, k.twice, k.twice}),
              HasSubstr("kernel add takes 2 tensors, the plan passes 3"));
  k.twice->own.phases = 2;
  EXPECT_THAT(CreateError(SmallPlan(), k.all()),
              HasSubstr("kernel twice has 2 phases, the plan says 1"));
  k.twice->own.phases = 1;
  k.twice->own.dims = 1;
  EXPECT_THAT(CreateError(SmallPlan(), k.all()),
              HasSubstr("kernel twice takes 1 run-time dims, the plan gives 0"));
}

TEST(Executor, MemoryThatLacksIsAnErrorAndNoAbort) {
  constexpr int64_t kTooMuch = kMaxTensorBytes;
  HostTensor w = Filled(100);
  auto weight = [&](int) { return &w; };

  Plan prepared = SmallPlan();
  prepared.prepared_bytes = kTooMuch;
  CreateError(std::move(prepared), SmallKernels().all(), {}, absl::StatusCode::kResourceExhausted);

  Plan arena = SmallPlan();
  arena.arena_bytes = kTooMuch;
  absl::Status status = Make({}, SmallKernels().all(), std::move(arena))->Prepare(weight);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("17592186044416 bytes"));

  SmallKernels k;
  k.add->own.workspace_bytes = uint64_t{1} << 50;
  Plan workspace = SmallPlan();
  workspace.kernels[1].workspace_bytes = int64_t{1} << 50;
  EXPECT_EQ(Make({}, k.all(), std::move(workspace))->Prepare(weight).code(),
            absl::StatusCode::kResourceExhausted);

  Plan output = SmallPlan();
  output.tensors[2].dims = {kTooMuch / 4};
  output.tensors[2].bytes = kTooMuch;
  std::unique_ptr<Executor> executor = Make({}, SmallKernels().all(), std::move(output));
  ASSERT_TRUE(executor->Prepare(weight).ok());
  EXPECT_EQ(executor->Run({Filled(1)}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(executor->MakeOutputs().status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Executor, RefusesPlansThatPointOutside) {
  using Damage = std::function<void(Plan*)>;
  const std::pair<const char*, Damage> kCases[] = {
      {"launch tensor", [](Plan* p) { p->launches[0].tensors[2] = 5; }},
      {"negative launch tensor", [](Plan* p) { p->launches[0].tensors[2] = -1; }},
      {"launch kernel", [](Plan* p) { p->launches[1].kernel = 3; }},
      {"launch group", [](Plan* p) { p->prepare[0].group = -1; }},
      {"arena too small", [](Plan* p) { p->arena_bytes -= 1; }},
      {"arena beyond every machine", [](Plan* p) { p->arena_bytes = kMaxSpaceBytes + 1; }},
      {"prepared beyond every machine", [](Plan* p) { p->prepared_bytes = kMaxSpaceBytes + 1; }},
      {"tensor beyond every machine", [](Plan* p) { p->tensors[0].bytes = kMaxSpaceBytes + 1; }},
      {"elements beyond every machine",
       [](Plan* p) { p->tensors[0].dims = {kMaxTensorBytes / 4 + 1}; }},
      {"arena offset", [](Plan* p) { p->tensors[4].offset = -64; }},
      {"prepared offset", [](Plan* p) { p->tensors[3].offset += 64; }},
      {"fewer bytes than elements", [](Plan* p) { p->tensors[4].bytes = 4; }},
      {"stride", [](Plan* p) { p->tensors[4].strides = {int64_t{1} << 40}; }},
      {"negative stride", [](Plan* p) { p->tensors[4].strides = {-1}; }},
      {"strides of another rank", [](Plan* p) { p->tensors[4].strides = {}; }},
      {"input index", [](Plan* p) { p->tensors[0].index = 1; }},
      {"weight index", [](Plan* p) { p->tensors[1].index = -1; }},
      {"constant index", [](Plan* p) { p->tensors[1].space = Space::kConstant; }},
      {"output list", [](Plan* p) { p->outputs[0] = 9; }},
      {"unused input", [](Plan* p) { p->inputs[0] = -1; }},
      {"threads", [](Plan* p) { p->threads = 0; }},
      {"larger than the caller's input",
       [](Plan* p) {
         p->tensors.push_back(p->tensors[0]);
         p->tensors.back().dims = {2 * kElements};
         p->tensors.back().bytes *= 2;
         p->launches[0].tensors[0] = 5;
       }},
      {"strided over the end of the caller's output",
       [](Plan* p) {
         p->tensors[2].strides = {2};
         p->tensors[2].bytes *= 2;
       }},
  };
  for (const auto& [what, damage] : kCases) {
    Plan plan = SmallPlan();
    damage(&plan);
    auto executor = Executor::Create(std::move(plan), SmallKernels().all(), {});
    EXPECT_EQ(executor.status().code(), absl::StatusCode::kInvalidArgument) << what;
  }
}

TEST(Executor, ParallelTasksNeedTheirNumberOfWorkers) {
  ExecutorOptions options;
  options.parallel_tasks = [](int64_t n, const TaskBody& body) { body(0, n, 0); };
  EXPECT_THAT(CreateError(SmallPlan(), SmallKernels().all(), options), HasSubstr("workers"));
}

TEST(Executor, UsesTheCallersThreads) {
  ExecutorOptions options;
  options.workers = 2;
  std::vector<int64_t> sizes;
  options.parallel_tasks = [&](int64_t n, const TaskBody& body) {
    sizes.push_back(n);
    std::thread other([&] { body(n / 2, n, 1); });
    body(0, n / 2, 0);
    other.join();
  };
  std::unique_ptr<Executor> executor = Make(options);
  HostTensor w = Filled(100);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  auto y = executor->Run({Filled(1)});
  ASSERT_TRUE(y.ok()) << y.status();
  ExpectTwiceTheSum(y->at(0), Filled(1), w);
  EXPECT_EQ(sizes, (std::vector<int64_t>{kTasks, kTasks, kTasks}));
}

TEST(Executor, ConcurrentRunsDoNotSeeEachOther) {
  std::unique_ptr<Executor> executor = Make({.threads = 2});
  HostTensor w = Filled(100);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 100; ++round) {
        HostTensor x = Filled(static_cast<float>(1000 * c + round));
        auto y = executor->Run({x});
        for (size_t i = 0; i < kElements; ++i) {
          float want = 2 * (x.data<float>()[i] + w.data<float>()[i]);
          if (!y.ok() || y->at(0).data<float>()[i] != want) ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Executor, AKernelThatFailsFailsTheRunOnly) {
  SmallKernels k;
  std::unique_ptr<Executor> executor = Make({}, k.all());
  HostTensor w = Filled(100);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  k.twice->fails = true;
  auto y = executor->Run({Filled(1)});
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(y.status()), "kernel twice: kernel answers 3");
  k.twice->fails = false;
  EXPECT_TRUE(executor->Run({Filled(1)}).ok());
}

TEST(Executor, PhasesAreApartAndScratchBelongsToAWorker) {
  // Phase 0 writes parts of the sum to the workspace; phase 1 adds up what all tasks wrote.
  auto add =
      std::make_shared<HandMadeKernel>(3, TaskCount<kTasks>, [](const HandMadeKernel::Call& call) {
        auto* parts = static_cast<float*>(call.args.workspace);
        auto* own =
            reinterpret_cast<float*>(static_cast<char*>(call.args.scratch) +
                                     static_cast<uint64_t>(call.worker) * call.args.scratch_stride);
        if (call.phase == 0) {
          own[0] = 0;
          for (int64_t i = call.task * kPart; i < (call.task + 1) * kPart; ++i) {
            own[0] += Floats(call, 0)[i] + Floats(call, 1)[i];
          }
          parts[call.task] = own[0];
          return;
        }
        own[0] = 0;
        for (int64_t t = 0; t < kTasks; ++t) own[0] += parts[t];
        for (int64_t i = call.task * kPart; i < (call.task + 1) * kPart; ++i) {
          Floats(call, 2)[i] = own[0];
        }
      });
  add->own.phases = 2;
  add->own.workspace_bytes = kTasks * 4;
  Plan plan = SmallPlan();
  plan.kernels[1].phases = 2;
  plan.kernels[1].workspace_bytes = kTasks * 4;
  SmallKernels k;
  std::unique_ptr<Executor> executor = Make({.threads = 4}, {k.copy, add, k.twice}, plan);
  HostTensor w = Filled(0);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  for (int round = 0; round < 200; ++round) {
    auto y = executor->Run({Filled(static_cast<float>(round))});
    ASSERT_TRUE(y.ok()) << y.status();
    float sum = kElements * (kElements - 1) + static_cast<float>(round) * kElements;
    for (float value : y->at(0).data<float>()) ASSERT_EQ(value, 2 * sum);
  }
}

TEST(Executor, AKernelThatFailsIsTheLastOfItsRun) {
  SmallKernels k;
  std::atomic<int> later{0};
  k.twice = std::make_shared<HandMadeKernel>(2, TaskCount<kTasks>,
                                             [&](const HandMadeKernel::Call&) { ++later; });
  for (int threads : {1, 3}) {
    k.add->fails = false;
    std::unique_ptr<Executor> executor = Make({.threads = threads}, k.all());
    HostTensor w = Filled(100);
    ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
    k.add->fails = true;
    later = 0;
    EXPECT_EQ(Message(executor->Run({Filled(1)}).status()), "kernel add: kernel answers 3");
    EXPECT_EQ(later, 0);
  }
}

TEST(Executor, OtherWeightsMayBePreparedLater) {
  std::unique_ptr<Executor> executor = Make();
  for (float first : {100.f, 700.f}) {
    HostTensor w = Filled(first);
    ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
    auto y = executor->Run({Filled(1)});
    ASSERT_TRUE(y.ok()) << y.status();
    ExpectTwiceTheSum(y->at(0), Filled(1), w);
  }
}

// Runs that are under way at once: each stops in the kernel "add" until all are there.
struct Burst {
  static constexpr int kRuns = 16;

  explicit Burst(ExecutorOptions options = {}) {
    SmallKernels k;
    k.add = std::make_shared<HandMadeKernel>(3, TaskCount<1>, [this](const auto& call) {
      all_here.arrive_and_wait();
      std::lock_guard<std::mutex> lock(mutex);
      packed_weights.insert(Floats(call, 1));
      arenas.insert(Floats(call, 2));
      for (int64_t i = 0; i < kElements; ++i) {
        Floats(call, 2)[i] = Floats(call, 0)[i] + Floats(call, 1)[i];
      }
    });
    executor = Make(std::move(options), k.all());
  }

  void Run() {
    HostTensor w = Filled(100);
    ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
    before = executor->memory();
    std::vector<std::thread> callers;
    for (int c = 0; c < kRuns; ++c) {
      callers.emplace_back([&, c] {
        HostTensor x = Filled(static_cast<float>(1000 * c));
        auto y = executor->Run({x});
        ASSERT_TRUE(y.ok()) << y.status();
        ExpectTwiceTheSum(y->at(0), x, w);
      });
    }
    for (std::thread& caller : callers) caller.join();
  }

  std::latch all_here{kRuns};
  std::mutex mutex;
  std::set<float*> packed_weights;
  std::set<float*> arenas;
  std::unique_ptr<Executor> executor;
  ExecutorMemory before;
};

TEST(Executor, RunsAtOnceShareWeightsAndNothingElse) {
  Burst burst({.threads = 2});
  burst.Run();
  EXPECT_EQ(burst.packed_weights.size(), 1u);
  EXPECT_EQ(burst.arenas.size(), static_cast<size_t>(Burst::kRuns));
  EXPECT_EQ(burst.executor->memory().prepared_bytes, SmallPlan().prepared_bytes);
  EXPECT_EQ(burst.before.prepared_bytes, SmallPlan().prepared_bytes);
}

TEST(Executor, KeepsFewArenasAfterABurst) {
  Burst three({.threads = 2, .max_idle_arenas = 3});
  three.Run();
  EXPECT_EQ(three.executor->memory().idle_arenas, 3);

  Burst threads({.threads = 12});
  threads.Run();
  EXPECT_EQ(threads.executor->memory().idle_arenas, std::clamp(UsableCores(), 12, Burst::kRuns));

  Burst one({.threads = 2, .max_idle_arenas = 3, .max_idle_bytes = 1});
  one.Run();
  EXPECT_EQ(one.executor->memory().idle_arenas, 1);
  EXPECT_GE(one.executor->memory().arena_bytes, SmallPlan().arena_bytes);
}

TEST(Executor, ARunHoldsWhatThePlanSays) {
  constexpr int64_t kPages = 4 * 4096;  // that sizes are rounded to
  for (int threads : {1, 7}) {
    std::unique_ptr<Executor> executor = Make({.threads = threads});
    const int64_t planned = RunBytes(executor->plan(), threads);
    EXPECT_EQ(planned, SmallPlan().arena_bytes + threads * 256);
    EXPECT_GE(executor->memory().arena_bytes, planned);
    EXPECT_LE(executor->memory().arena_bytes, planned + kPages + threads * 4160);
  }
  SmallKernels k;
  k.twice->own.scratch_bytes = 257;
  EXPECT_EQ(CreateError(SmallPlan(), k.all()),
            "executor: kernel twice takes 257 bytes of scratch and 0 of workspace, the plan says "
            "256 and 0");
  k.twice->own.scratch_bytes = 0;
  k.add->own.workspace_bytes = 1;
  EXPECT_THAT(CreateError(SmallPlan(), k.all()), HasSubstr("kernel add takes"));
}

// The second half of the output does not count: the last output says so.
TEST(Executor, OutputsHaveTheExtentsThatTheRunDecides) {
  Plan plan = SmallPlan();
  plan.tensors.push_back({.dtype = DType::kI64, .space = Space::kOutput, .index = 1, .bytes = 8});
  plan.outputs.push_back(static_cast<int>(plan.tensors.size()) - 1);
  plan.output_extents = {{.output = 0, .dim = 0, .count = 1}};
  plan.launches[1].tensors.push_back(plan.outputs[1]);
  SmallKernels k;
  int64_t count = kElements / 2;
  k.twice =
      std::make_shared<HandMadeKernel>(3, TaskCount<1>, [&count](const HandMadeKernel::Call& call) {
        for (int64_t i = 0; i < kElements; ++i) Floats(call, 1)[i] = static_cast<float>(i);
        *static_cast<int64_t*>(call.args.tensors[2].data) = count;
      });
  std::unique_ptr<Executor> executor = Make({}, k.all(), plan);
  HostTensor w = Filled(100);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  for (int64_t n : {kElements / 2, int64_t{0}, kElements}) {
    count = n;
    auto y = executor->Run({Filled(1)});
    ASSERT_TRUE(y.ok()) << y.status();
    ASSERT_EQ(y->size(), 1);
    EXPECT_EQ(y->at(0).dims(), (Dims{n}));
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(y->at(0).GetDouble(i), static_cast<double>(i));
  }
  count = kElements + 1;
  EXPECT_THAT(std::string(Message(executor->Run({Filled(1)}).status())),
              HasSubstr(StrCat("output 0 has ", count, " elements along dim 0")));

  plan.output_extents[0].count = 0;
  EXPECT_THAT(CreateError(plan, k.all()), HasSubstr("plan output_extents"));
  plan.output_extents[0] = {.output = 0, .dim = 1, .count = 1};
  EXPECT_THAT(CreateError(plan, k.all()), HasSubstr("dim 1 of output 0"));
  plan.output_extents[0] = {.output = 1, .dim = 0, .count = 1};
  EXPECT_THAT(CreateError(plan, k.all()), HasSubstr("plan output_extents"));
}

// A plan whose launches take known times of a clock that stands still otherwise.
struct Timed {
  explicit Timed(ExecutorOptions options = {}) {
    auto taking = [this](int tensors, int64_t us) {
      return std::make_shared<HandMadeKernel>(tensors, TaskCount<1>, [this, us](const auto&) {
        clock.Advance(std::chrono::microseconds(us));
      });
    };
    add = taking(3, 30);
    options.clock = &clock;
    executor = Make(std::move(options), {SmallKernels().copy, add, taking(2, 50)});
    FUSION_CHECK(executor->Prepare([this](int) { return &w; }).ok(), "weights fit");
  }

  void Run(int runs) const {
    for (int i = 0; i < runs; ++i) EXPECT_TRUE(executor->Run({Filled(1)}).ok());
  }

  FakeClock clock;
  HostTensor w = Filled(100);
  std::shared_ptr<HandMadeKernel> add;
  std::unique_ptr<Executor> executor;
};

TEST(Executor, SamplesWhatLaunchesTake) {
  Timed timed;
  timed.Run(40);
  LatencySamples samples = timed.executor->TakeSamples();
  EXPECT_EQ(samples.runs, 40);
  ASSERT_GT(samples.run_us.size(), 20u);
  EXPECT_LT(samples.run_us.size(), 40u);  // not those that warm up
  EXPECT_EQ(samples.run_us, std::vector<double>(samples.run_us.size(), 80));
  ASSERT_EQ(samples.launch_us.size(), 2u);
  EXPECT_EQ(samples.launch_us[0], std::vector<double>(samples.run_us.size(), 30));
  EXPECT_EQ(samples.launch_us[1], std::vector<double>(samples.run_us.size(), 50));
  EXPECT_EQ(timed.executor->TakeSamples().runs, 0);
}

TEST(Executor, SamplesNoRunThatFailed) {
  Timed timed;
  timed.add->fails = true;
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(timed.executor->Run({Filled(1)}).ok());
  LatencySamples samples = timed.executor->TakeSamples();
  EXPECT_EQ(samples.runs, 0);
  EXPECT_TRUE(samples.run_us.empty());
}

TEST(Executor, SamplesNothingUnlessWanted) {
  Timed off({.sample_latencies = false});
  off.Run(40);
  EXPECT_EQ(off.executor->TakeSamples().runs, 0);
  off.executor->StopSampling();

  Timed stopped;
  stopped.executor->StopSampling();
  stopped.Run(40);
  EXPECT_TRUE(stopped.executor->TakeSamples().run_us.empty());
}

TEST(Executor, AProfileIsOfItsRun) {
  Timed timed;
  RunProfile profile;
  ASSERT_TRUE(timed.executor->Run({Filled(1)}, &profile).ok());
  EXPECT_EQ(profile.launch_us, (std::vector<double>{30, 50}));
  EXPECT_EQ(profile.total_us, 80);
}

TEST(Executor, SamplesMayBeTakenWhileRunsAreUnderWay) {
  std::unique_ptr<Executor> executor = Make({.threads = 2});
  HostTensor w = Filled(100);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  constexpr int kCallers = 3;
  constexpr int kRuns = 300;
  std::atomic<int> under_way{kCallers};
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < kRuns; ++i) EXPECT_TRUE(executor->Run({Filled(1)}).ok());
      --under_way;
    });
  }
  int64_t runs = 0;
  bool last = false;
  while (!last) {
    last = under_way == 0;
    LatencySamples samples = executor->TakeSamples();
    runs += samples.runs;
    for (const std::vector<double>& launch : samples.launch_us) {
      EXPECT_EQ(launch.size(), samples.run_us.size());
    }
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs, kCallers * kRuns);
}

TEST(Executor, AGuardedKernelIsToldWhatThereIsAndSaysWhatItFound) {
  SmallKernels kernels;
  auto add =
      std::make_shared<HandMadeKernel>(3, TaskCount<kTasks>, [](const HandMadeKernel::Call& call) {
        ASSERT_EQ(call.args.struct_size, sizeof(FusionGuardedKernelArgs));
        const auto& args = reinterpret_cast<const FusionGuardedKernelArgs&>(call.args);
        for (int t = 0; t < 3; ++t) EXPECT_EQ(args.elements[t], kElements);
        args.faults[call.worker] = {.code = FUSION_KERNEL_OUT_OF_BOUNDS,
                                    .tensor = 1,
                                    .element = 120,
                                    .count = 16,
                                    .elements = kElements,
                                    .name = "p1",
                                    .step = "add"};
      });
  add->checks = true;
  add->fails = true;
  // One that is not guarded, beside it.
  kernels.copy =
      std::make_shared<HandMadeKernel>(2, TaskCount<kTasks>, [](const HandMadeKernel::Call& call) {
        EXPECT_EQ(call.args.struct_size, sizeof(FusionKernelArgs));
      });
  kernels.add = add;
  std::unique_ptr<Executor> executor = Make({}, kernels.all());
  HostTensor w = Filled(100);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  const absl::Status fault = executor->Run({Filled(1)}).status();
  EXPECT_EQ(fault.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(Message(fault)),
            "kernel add (add), group 1: out of bounds of tensor 1 (p1): elements 120..135 of 128, "
            "computing \"add\"");
  const std::optional<RunFault> place = RunFaultOf(fault);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->group, 1);
  EXPECT_EQ(place->tensor, SmallPlan().launches[0].tensors[1]);
  EXPECT_FALSE(RunFaultOf(Internal("another one")).has_value());
  // Without a fault the error is the kernel's own.
  kernels.twice->checks = true;
  kernels.twice->fails = true;
  kernels.add = SmallKernels().add;
  executor = Make({}, kernels.all());
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  EXPECT_EQ(std::string(Message(executor->Run({Filled(1)}).status())),
            "kernel twice: kernel answers 3");
}

// SmallPlan for 1..kTasks tasks; for up to three another one, which has a kernel of its own instead
// of the last one.
Plan PlanWithVariant() {
  auto open = [](Plan plan) {
    plan.symbols = {{.least = 1, .most = kTasks}};
    const SizeExpr elements = SizeExpr::Sum({{kPart, {0}}});
    for (PlanTensor& t : plan.tensors) {
      const bool run = t.space != Space::kWeight && t.space != Space::kPrepared;
      if (run) t.sizes = {elements, SizeExpr(1)};
    }
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      plan.kernels[k].key = Sha256(plan.kernels[k].symbol);
      if (k > 0) plan.kernels[k].sizes = {SizeExpr::Sum({{1, {0}}})};
    }
    return plan;
  };
  Plan plan = open(SmallPlan());
  Plan few = SmallPlan();
  few.kernels[2].symbol = "thrice";
  few = open(std::move(few));
  plan.kernels.push_back(few.kernels[2]);
  plan.variants = {{.measure = SizeExpr::Sum({{2, {0}}}),
                    .most = 6,
                    .plan = std::make_shared<const Plan>(std::move(few))}};
  return plan;
}

FusionInt64 TasksOfDims(int /*phase*/, const FusionInt64* dims) { return dims[0]; }
FusionInt64 ReachOfDims(int /*tensor*/, const FusionInt64* dims) { return dims[0] * kPart; }

Kernels KernelsWithVariant(std::shared_ptr<HandMadeKernel>* thrice) {
  SmallKernels kernels;
  *thrice = std::make_shared<HandMadeKernel>(
      2, TasksOfDims,
      EachElement(1, [](const auto& call, int64_t i) { return 3 * Floats(call, 0)[i]; }));
  for (const auto& kernel : {kernels.add, kernels.twice, *thrice}) {
    kernel->own.tasks = TasksOfDims;
    kernel->own.reach = ReachOfDims;
    kernel->own.dims = 1;
  }
  return {kernels.copy, kernels.add, kernels.twice, *thrice};
}

HostTensor Ones(int64_t tasks) {
  HostTensor t(DType::kF32, {tasks * kPart});
  for (float& value : t.data<float>()) value = 1;
  return t;
}

TEST(Executor, ValuesOfSymbolsChooseTheVariant) {
  std::shared_ptr<HandMadeKernel> thrice;
  std::unique_ptr<Executor> executor =
      Make({.threads = 2}, KernelsWithVariant(&thrice), PlanWithVariant());
  int asked = 0;
  HostTensor w = Filled(0);
  ASSERT_TRUE(executor
                  ->Prepare([&](int) {
                    ++asked;
                    return &w;
                  })
                  .ok());
  EXPECT_EQ(asked, 1) << "both plans have the weight from one place";
  EXPECT_EQ(executor->memory().prepared_bytes, SmallPlan().prepared_bytes);
  for (int64_t tasks : {kTasks, int64_t{1}, int64_t{3}, int64_t{4}, int64_t{1}}) {
    RunProfile profile;
    auto y = executor->Run({Ones(tasks)}, &profile);
    ASSERT_TRUE(y.ok()) << y.status();
    const bool few = tasks <= 3;
    EXPECT_EQ(profile.variant, few ? 0 : -1) << tasks;
    EXPECT_EQ(profile.launch_us.size(), 2U);
    ASSERT_EQ(y->at(0).dims(), Dims({tasks * kPart}));
    for (int64_t i = 0; i < tasks * kPart; ++i) {
      ASSERT_EQ(y->at(0).GetDouble(i), (few ? 3 : 2) * (1 + i)) << tasks << ": " << i;
    }
  }
  EXPECT_EQ(executor->memory().idle_arenas, 2) << "one of each";
}

TEST(Executor, WhatAVariantPacksAlikeIsPackedOnce) {
  for (const bool alike : {true, false}) {
    Plan plan = PlanWithVariant();
    if (!alike) {
      Plan few = *plan.variants[0].plan;
      for (PlanTensor& t : few.tensors) {
        if (t.space == Space::kPrepared) t.offset += plan.prepared_bytes;
      }
      few.prepared_bytes *= 2;
      plan.variants[0].plan = std::make_shared<const Plan>(std::move(few));
    }
    std::shared_ptr<HandMadeKernel> thrice;
    Kernels kernels = KernelsWithVariant(&thrice);
    std::atomic<int> packed = 0;
    kernels[0] =
        std::make_shared<HandMadeKernel>(2, TaskCount<1>, [&](const HandMadeKernel::Call& call) {
          ++packed;
          std::memcpy(call.args.tensors[1].data, call.args.tensors[0].data,
                      kElements * sizeof(float));
        });
    std::unique_ptr<Executor> executor = Make({.threads = 1}, kernels, plan);
    HostTensor w = Filled(0);
    for (int round = 1; round <= 2; ++round) {
      ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
      EXPECT_EQ(packed, alike ? round : 2 * round);
      auto y = executor->Run({Ones(1)});
      ASSERT_TRUE(y.ok()) << y.status();
      for (int64_t i = 0; i < kPart; ++i) ASSERT_EQ(y->at(0).GetDouble(i), 3 * (1 + i));
    }
    EXPECT_EQ(executor->memory().prepared_bytes, (alike ? 1 : 2) * SmallPlan().prepared_bytes);
  }
}

TEST(Executor, RunsOfAPlanAndItsVariantAtOnce) {
  std::shared_ptr<HandMadeKernel> thrice;
  std::unique_ptr<Executor> executor =
      Make({.threads = 2}, KernelsWithVariant(&thrice), PlanWithVariant());
  HostTensor w = Filled(0);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  std::vector<std::thread> callers;
  std::atomic<int> right = 0;
  for (int64_t tasks : {1, 8, 2, 7}) {
    callers.emplace_back([&, tasks] {
      for (int run = 0; run < 50; ++run) {
        auto y = executor->Run({Ones(tasks)});
        const int64_t last = tasks * kPart - 1;
        const auto expected = static_cast<double>((tasks <= 3 ? 3 : 2) * (1 + last));
        if (y.ok() && y->at(0).GetDouble(last) == expected) ++right;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 200);
  EXPECT_LE(executor->memory().idle_arenas, 4);
}

TEST(Executor, AFaultIsOfTheVariantThatRan) {
  std::shared_ptr<HandMadeKernel> thrice;
  Kernels kernels = KernelsWithVariant(&thrice);
  auto faulty =
      std::make_shared<HandMadeKernel>(2, TasksOfDims, [](const HandMadeKernel::Call& call) {
        const auto& args = reinterpret_cast<const FusionGuardedKernelArgs&>(call.args);
        args.faults[call.worker] = {.code = FUSION_KERNEL_OUT_OF_BOUNDS,
                                    .tensor = 1,
                                    .element = 120,
                                    .count = 16,
                                    .elements = kPart,
                                    .name = "p1",
                                    .step = "mul"};
      });
  faulty->own.dims = 1;
  faulty->own.reach = ReachOfDims;
  faulty->checks = true;
  faulty->fails = true;
  kernels[3] = faulty;
  std::unique_ptr<Executor> executor = Make({.threads = 1}, kernels, PlanWithVariant());
  HostTensor w = Filled(0);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  EXPECT_TRUE(executor->Run({Ones(kTasks)}).ok()) << "the plan itself does not run that kernel";
  const std::optional<RunFault> place = RunFaultOf(executor->Run({Ones(1)}).status());
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->variant, 0);
  EXPECT_EQ(place->group, 2);
  EXPECT_EQ(place->tensor, SmallPlan().outputs[0]);
}

// Whatever a store held: the kernel of another range would read beyond the inputs of a short run.
TEST(Executor, AKernelMadeForLongerDimsIsNotRun) {
  std::shared_ptr<HandMadeKernel> thrice;
  Kernels kernels = KernelsWithVariant(&thrice);
  std::atomic<int> ran = 0;
  auto longer = std::make_shared<HandMadeKernel>(
      3, TasksOfDims, [&](const HandMadeKernel::Call& /*call*/) { ++ran; });
  longer->own.dims = 1;
  longer->own.reach = [](int tensor, const FusionInt64* dims) -> FusionInt64 {
    return tensor == 0 ? 5 * kPart : dims[0] * kPart;
  };
  kernels[1] = longer;
  std::unique_ptr<Executor> executor = Make({.threads = 1}, kernels, PlanWithVariant());
  HostTensor w = Filled(0);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  EXPECT_TRUE(executor->Run({Ones(5)}).ok()) << "as long as it was made for";
  ran = 0;
  const absl::Status refused = executor->Run({Ones(4)}).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("kernel add (add): it accesses 80 elements of tensor 0, "
                                          "which has 64: it was made for other dims"));
  EXPECT_EQ(ran, 0);
}

TEST(Executor, AKernelThatTakesDimsAndDoesNotTellWhatItAccessesIsNotRun) {
  std::shared_ptr<HandMadeKernel> thrice;
  Kernels kernels = KernelsWithVariant(&thrice);
  thrice->own.reach = nullptr;
  std::unique_ptr<Executor> executor = Make({.threads = 1}, kernels, PlanWithVariant());
  HostTensor w = Filled(0);
  ASSERT_TRUE(executor->Prepare([&](int) { return &w; }).ok());
  EXPECT_TRUE(absl::IsDataLoss(executor->Run({Ones(1)}).status()));
}

TEST(Executor, AKernelOfStaticShapeThatReachesTooFarIsNotPrepared) {
  SmallKernels kernels;
  kernels.add->own.reach = [](int, const FusionInt64*) -> FusionInt64 { return kElements + 1; };
  std::unique_ptr<Executor> executor =
      Make({.threads = 1}, {kernels.copy, kernels.add, kernels.twice}, SmallPlan());
  HostTensor w = Filled(0);
  const absl::Status refused = executor->Prepare([&](int) { return &w; });
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
}

TEST(Executor, AVariantWhoseKernelDoesNotFitIsRefused) {
  std::shared_ptr<HandMadeKernel> thrice;
  Kernels kernels = KernelsWithVariant(&thrice);
  thrice->own.tensors = 3;
  EXPECT_THAT(CreateError(PlanWithVariant(), kernels),
              HasSubstr("kernel thrice takes 3 tensors, the plan passes 2"));
}

}  // namespace
}  // namespace fusion
