// Plans pinned by a lock, and plans that come out the same wherever and whenever they are made.
#include "core/pipeline/requests/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/onnx/reference_weights.h"
#include "core/wire/options/plan_lock.h"
#include "core/wire/plan.h"
#include "tests/models/models.h"
#include "tests/support/pipeline_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

onnx::ModelProto ModelOf(std::string_view name, ModelParams params) {
  GeneratedModel model = GenerateModel(*FindModel(name), params).value();
  return ReferenceWeights(model.model).value();
}

// Small enough for a test; between them they have repeated layers, prepared groups, products side
// by side, masks and windows.
onnx::ModelProto SmallModel(const std::string& name) {
  ModelParams params = FindModel(name)->defaults;
  params.layers = std::min<int64_t>(params.layers, 2);
  params.rows = std::min<int64_t>(params.rows, 64);
  params.cols = std::min<int64_t>(params.cols, 96);
  params.depth = std::min<int64_t>(params.depth, 4);
  return ModelOf(name, params);
}

class LockTest : public FusionPipelineTest {
 protected:
  // What is planned and no more, with its lock and its sources.
  static PlanRequest LockRequest(std::string_view model) {
    PlanRequest request = Request(model);
    request.mode = PlanMode::kPlanOnly;
    request.dumps = {DumpKind::kLock, DumpKind::kSource};
    return request;
  }

  static PlanRequest With(PlanRequest request, PlanLock lock) {
    request.options.lock = std::make_shared<const PlanLock>(std::move(lock));
    return request;
  }

  // The plan of `request` if `lock` pins it. An error: InvalidArgument or FailedPrecondition.
  absl::Status Refusal(const PlanRequest& request, PlanLock lock) {
    return Send(With(request, std::move(lock))).status();
  }

  static std::vector<std::string> Sources(const PlanReply& reply) {
    std::vector<std::string> texts;
    for (const Dump& dump : reply.dumps) texts.push_back(dump.text);
    return texts;
  }

  static void WithoutDigests(PlanLock* lock) {
    lock->plan = std::nullopt;
    for (LockedKernel& kernel : lock->kernels) kernel = {.label = kernel.label};
  }
};

TEST_F(LockTest, ComesToWhoAskedForIt) {
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  EXPECT_EQ(Ask(request).lock, nullptr);
  request.dumps = {DumpKind::kLock};
  PlanReply reply = Ask(request);
  ASSERT_NE(reply.lock, nullptr);
  EXPECT_THAT(reply.dumps, IsEmpty());
  const PlanLock& lock = *reply.lock;
  EXPECT_EQ(lock.target, "generic-avx2");
  EXPECT_EQ(lock.groups.size(), 1u);
  EXPECT_THAT(lock.kernels, SizeIs(reply.stored->plan.kernels.size()));
  for (size_t k = 0; k < lock.kernels.size(); ++k) {
    EXPECT_EQ(lock.kernels[k].key, reply.stored->plan.kernels[k].key);
    EXPECT_TRUE(lock.kernels[k].source.has_value());
  }
  EXPECT_EQ(lock.plan, ExecutableDigest(reply.stored->plan));
}

TEST_F(LockTest, PinsLaunchesOfSeveralPhases) {
  std::string model = SmallModel("bert_tiny").SerializeAsString();
  PlanRequest request = LockRequest(model);
  request.options.hints.low_latency = true;
  PlanReply free = Ask(request);
  ASSERT_NE(free.lock, nullptr);
  const PlanLock good = *free.lock;
  size_t whole = 0;
  while (whole < good.groups.size() &&
         good.choices[static_cast<size_t>(good.groups[whole].choice)].turns.empty()) {
    ++whole;
  }
  ASSERT_LT(whole, good.groups.size()) << LockToText(good);
  request.options.hints.low_latency = false;
  PlanReply pinned = Ask(With(request, good));
  ASSERT_NE(pinned.lock, nullptr);
  EXPECT_EQ(LockToText(*pinned.lock), LockToText(good));
  EXPECT_EQ(Sources(pinned), Sources(free));

  // And edited.
  PlanLock lock = good;
  const auto choice = static_cast<size_t>(good.groups[whole].choice);
  std::vector<LockedSequentialPhase>& turns = lock.choices[choice].turns;
  auto refusal = [&] { return std::string(Message(Refusal(request, lock))); };
  turns[0].ops.push_back(1000);
  EXPECT_THAT(refusal(), HasSubstr(StrCat("lock.groups[", whole, "]: choice.turns[0].ops: 1000")));
  turns = good.choices[choice].turns;
  turns[1].ops.push_back(turns[0].ops[0]);
  EXPECT_THAT(refusal(), HasSubstr("is in two turns"));
  turns = good.choices[choice].turns;
  turns[0].ops.pop_back();
  EXPECT_THAT(refusal(), HasSubstr("of the group is in none"));
  turns = good.choices[choice].turns;
  turns[0].choice = static_cast<int>(choice);
  EXPECT_THAT(refusal(), HasSubstr("has turns itself"));
  turns = good.choices[choice].turns;
  std::reverse(turns.begin(), turns.end());
  EXPECT_THAT(refusal(), HasSubstr("which runs behind it"));
}

class PinnedModels : public LockTest, public testing::WithParamInterface<const char*> {};

TEST_P(PinnedModels, ComeOutAgainWhateverThePlannerWouldChoose) {
  std::string model = SmallModel(GetParam()).SerializeAsString();
  for (FusionMode fusion : {FusionMode::kFused, FusionMode::kOpByOp}) {
    PlanRequest request = LockRequest(model);
    request.options.fusion = fusion;
    PlanReply free = Ask(request);
    ASSERT_NE(free.lock, nullptr);
    PlanRequest pressed = request;
    pressed.options.hints = {.memory_pressure = 0.9, .compute_pressure = 0.9};
    PlanReply pinned = Ask(With(pressed, *free.lock));
    ASSERT_NE(pinned.lock, nullptr);
    EXPECT_EQ(LockToText(*pinned.lock), LockToText(*free.lock));
    EXPECT_EQ(Sources(pinned), Sources(free));
    EXPECT_NE(pinned.stored->key, free.stored->key) << "the lock is part of the key";
    EXPECT_EQ(ExecutableDigest(pinned.stored->plan), ExecutableDigest(free.stored->plan));
  }
}

TEST_P(PinnedModels, PinnedApartAreAsUnfused) {
  // The groups of one plan in another: only the lock decides.
  std::string model = SmallModel(GetParam()).SerializeAsString();
  PlanRequest request = LockRequest(model);
  request.options.fusion = FusionMode::kOpByOp;
  PlanReply apart = Ask(request);
  PlanLock lock = *apart.lock;
  lock.fusion = FusionMode::kFused;
  lock.plan = std::nullopt;  // it says how it was asked for
  request.options.fusion = FusionMode::kFused;
  PlanReply pinned = Ask(With(request, lock));
  EXPECT_EQ(Sources(pinned), Sources(apart));
  EXPECT_EQ(pinned.stored->plan.totals.launches, apart.stored->plan.totals.launches);
}

// Names and node order of the caller's.
void Disguise(onnx::ModelProto* model, uint64_t seed) {
  std::mt19937_64 random(seed);
  onnx::GraphProto& graph = *model->mutable_graph();
  std::map<std::string, std::string> names;
  auto rename = [&](std::string* name) {
    if (name->empty()) return;
    *name = names.try_emplace(*name, StrCat("t", random() % 1000, "_", names.size())).first->second;
  };
  for (auto& input : *graph.mutable_input()) rename(input.mutable_name());
  for (auto& weight : *graph.mutable_initializer()) rename(weight.mutable_name());
  for (auto& output : *graph.mutable_output()) rename(output.mutable_name());
  for (auto& value : *graph.mutable_value_info()) rename(value.mutable_name());
  for (auto& node : *graph.mutable_node()) {
    node.set_name(StrCat("n", random()));
    for (auto& name : *node.mutable_input()) rename(&name);
    for (auto& name : *node.mutable_output()) rename(&name);
  }
  auto shuffle = [&random](auto* list) {
    for (int i = list->size() - 1; i > 0; --i) {
      list->SwapElements(i, static_cast<int>(random() % static_cast<uint64_t>(i + 1)));
    }
  };
  shuffle(graph.mutable_node());
  shuffle(graph.mutable_initializer());
  shuffle(graph.mutable_value_info());
}

TEST_P(PinnedModels, NamesAndNodeOrderChangeNothing) {
  onnx::ModelProto model = SmallModel(GetParam());
  std::string plain = model.SerializeAsString();
  PlanReply first = Ask(LockRequest(plain));
  for (uint64_t seed : {1, 2}) {
    onnx::ModelProto other = model;
    Disguise(&other, seed);
    std::string bytes = other.SerializeAsString();
    ASSERT_NE(bytes, plain);
    // Planned anew, by a pipeline of its own, behind others.
    MemoryStore store(int64_t{64} << 20, logger_);
    FusionPipeline fresh({}, BuiltInSpecs().value(), toolchain_, store, workers_, logger_);
    for (const char* before : {"mlp", "softmax"}) {
      std::string warm_up = SmallModel(before).SerializeAsString();
      ASSERT_TRUE(fresh.PlanFusion(LockRequest(warm_up), patient_).ok());
    }
    auto reply = fresh.PlanFusion(LockRequest(bytes), patient_);
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->stored->key, first.stored->key);
    EXPECT_EQ(PlanToBytes(reply->stored->plan), PlanToBytes(first.stored->plan));
    EXPECT_EQ(LedgerToBytes(reply->stored->plan), LedgerToBytes(first.stored->plan));
    EXPECT_EQ(Sources(*reply), Sources(first));
    EXPECT_EQ(LockToText(*reply->lock), LockToText(*first.lock));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PinnedModels,
                         testing::Values("bert_tiny", "mha", "mlp", "softmax_gemm", "swiglu",
                                         "layernorm", "conv_bn_relu", "lstm_cell"),
                         [](const auto& param) { return std::string(param.param); });

// A fused product whose lock is edited.
class EditedLockTest : public LockTest {
 protected:
  EditedLockTest() { lock_ = *Ask(request_).lock; }

  LockedTiling& cut() { return lock_.choices.at(0).parts.at(0); }

  std::string RefusalText() {
    absl::Status status = Refusal(request_, lock_);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(Message(status));
  }

  const std::string model_ = LinearReluModel(/*rows=*/64).Bytes();
  const PlanRequest request_ = LockRequest(model_);
  PlanLock lock_;
};

TEST_F(EditedLockTest, AnotherLegalCutIsTakenOnceItsDigestsAreLeftOut) {
  ASSERT_FALSE(cut().grid.empty());
  int64_t& tile = cut().grid.back().tile;
  const int64_t was = tile;
  tile = was == 16 ? 32 : 16;
  absl::Status differs = Refusal(request_, lock_);
  EXPECT_TRUE(absl::IsFailedPrecondition(differs)) << differs;
  EXPECT_THAT(std::string(Message(differs)),
              AllOf(HasSubstr("lock.kernels["), HasSubstr("(MatMul+Add+Relu): schedule_sha256 is "),
                    HasSubstr("the lock wants "), HasSubstr(StrCat("planner ", kPlannerVersion))));
  WithoutDigests(&lock_);
  PlanReply edited = Ask(With(request_, lock_));
  ASSERT_NE(edited.lock, nullptr);
  EXPECT_EQ(edited.lock->choices[0].parts[0].grid.back().tile, was == 16 ? 32 : 16);
  EXPECT_NE(Sources(edited), Sources(Ask(request_)));
  // What came out pins itself.
  PlanReply again = Ask(With(request_, *edited.lock));
  EXPECT_EQ(LockToText(*again.lock), LockToText(*edited.lock));
  EXPECT_EQ(Sources(again), Sources(edited));
}

TEST_F(EditedLockTest, ADifferenceNamesKernelDigestAndVersions) {
  lock_.planner_version = 3;
  lock_.kernels.back().source = Sha256("another generator");
  absl::Status status = Refusal(request_, lock_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("source_sha256 is "), HasSubstr("made by planner 3"),
                    HasSubstr("generic-avx2")));
  lock_.kernels.back().source = std::nullopt;
  lock_.kernels.back().key = Sha256("another compiler");
  EXPECT_THAT(std::string(Message(Refusal(request_, lock_))), HasSubstr("kernel_key is "));
  lock_.kernels.back().key = std::nullopt;
  EXPECT_TRUE(Refusal(request_, lock_).ok()) << "another version alone is no difference";
  lock_.plan = Sha256("another plan");
  EXPECT_THAT(std::string(Message(Refusal(request_, lock_))), HasSubstr("lock.plan_sha256"));
  lock_.plan = std::nullopt;
  lock_.kernels.pop_back();
  EXPECT_THAT(std::string(Message(Refusal(request_, lock_))), HasSubstr("lock.kernels: the lock"));
}

TEST_F(EditedLockTest, AnotherTargetIsADifference) {
  PlanRequest other = request_;
  other.target.threads = 7;
  absl::Status status = Refusal(other, lock_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  other.target.threads = 0;
  other.target.isa = "avx512";
  status = Refusal(other, lock_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("this is planner"));
}

TEST_F(EditedLockTest, ALockOfAnotherRequestIsRefused) {
  std::string wider = LinearReluModel(/*rows=*/65).Bytes();
  absl::Status status = Refusal(LockRequest(wider), lock_);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("lock.graph_sha256"));
  PlanRequest bitwise = request_;
  bitwise.options.numerics = Numerics::kBitwise;
  EXPECT_THAT(std::string(Message(Refusal(bitwise, lock_))),
              HasSubstr("lock.numerics: fp32-accumulate, options.numerics is bitwise"));
  PlanRequest apart = request_;
  apart.options.fusion = FusionMode::kOpByOp;
  EXPECT_THAT(std::string(Message(Refusal(apart, lock_))), HasSubstr("lock.fusion: fused"));
}

TEST_F(EditedLockTest, GroupsThatDoNotFitTheGraphAreRefused) {
  const PlanLock good = lock_;
  ASSERT_THAT(good.groups, SizeIs(1));
  const std::vector<int> ops = good.groups[0].ops;
  ASSERT_THAT(ops, SizeIs(3));
  lock_.groups[0].ops.pop_back();
  EXPECT_THAT(RefusalText(), HasSubstr(StrCat("lock.groups: op ", ops[2], " Relu is in none")));
  lock_ = good;
  lock_.groups[0].ops.push_back(1000);
  EXPECT_THAT(RefusalText(), HasSubstr("lock.groups[0].ops[3]: 1000; the program has "));
  lock_ = good;
  lock_.groups[0].ops = {ops[0], ops[0], ops[1], ops[2]};
  EXPECT_THAT(RefusalText(), HasSubstr("lock.groups[0].ops[1]: 0 is not ascending"));
  lock_ = good;
  lock_.groups.push_back({.ops = {ops[1]}, .choice = 0});
  EXPECT_THAT(RefusalText(), HasSubstr("lock.groups[1].ops[0]: 1 is in group 0 too"));
  // Not convex: the sum lies between the two ops of the first group.
  lock_ = good;
  lock_.groups = {{.ops = {ops[0], ops[2]}, .choice = 0}, {.ops = {ops[1]}, .choice = 0}};
  EXPECT_THAT(RefusalText(), HasSubstr("lock.groups[0]: op 2 reads from op 1 of group 1"));
  // In the wrong order.
  lock_.groups = {{.ops = {ops[1], ops[2]}, .choice = 0}, {.ops = {ops[0]}, .choice = 0}};
  EXPECT_THAT(RefusalText(), HasSubstr("which runs behind it"));
  lock_ = good;
  lock_.groups[0].choice = 5;
  EXPECT_THAT(RefusalText(), HasSubstr("lock.groups[0].choice: 5; expected 0.."));
  lock_ = good;
  lock_.groups.clear();
  EXPECT_THAT(RefusalText(), HasSubstr("lock.groups: op 0 MatMul is in none"));
}

TEST_F(EditedLockTest, CutsThatAreNotLegalAreRefused) {
  const PlanLock good = lock_;
  const std::pair<std::function<void(LockedTiling*)>, const char*> kCases[] = {
      {[](LockedTiling* c) {
         c->grid.push_back({"nothing", 4});
       },
       "grid: no dim \"nothing\""},
      {[](LockedTiling* c) { c->grid.push_back(c->grid.back()); }, " twice"},
      {[](LockedTiling* c) { c->grid.back().tile = int64_t{1} << 40; }, "; expected 1..64"},
      {[](LockedTiling* c) { c->grid.back().tile = 0; }, "grid: tile 0 of dim "},
      {[](LockedTiling* c) { c->products.clear(); }, "products: op 0 MatMul has no entry"},
      {[](LockedTiling* c) { c->products.push_back(c->products[0]); }, "products: op 0 twice"},
      {[](LockedTiling* c) { c->products[0].op = 1; }, "products: op 1 is no matrix product"},
      {[](LockedTiling* c) { c->products[0].op = 77; }, "products: op 77 is no matrix product"},
      {[](LockedTiling* c) { c->products[0].rows = 5000; }, "has no block of 5000 rows"},
      {[](LockedTiling* c) { c->products[0].swap = !c->products[0].swap; }, "products: op 0: swap"},
      {[](LockedTiling* c) {
         c->streamed = LockedTile{"nothing", 4};
       },
       "streamed: no dim"},
      {[](LockedTiling* c) {
         c->streamed = LockedTile{c->grid.back().dim, 4};
       },
       "streamed: "},
  };
  for (const auto& [damage, message] : kCases) {
    lock_ = good;
    damage(&cut());
    EXPECT_THAT(RefusalText(), AllOf(HasSubstr("lock.groups[0]"), HasSubstr("choice.parts[0]"),
                                     HasSubstr(message)));
  }
  lock_ = good;
  lock_.choices[0].parts.push_back(lock_.choices[0].parts[0]);
  EXPECT_THAT(RefusalText(), HasSubstr("cuts for 2 parts; the ops fall into 1"));
}

TEST_F(LockTest, EqualGroupsHaveEqualChoices) {
  std::string model = SmallModel("bert_tiny").SerializeAsString();
  PlanRequest request = LockRequest(model);
  request.options.fusion = FusionMode::kOpByOp;
  PlanLock lock = *Ask(request).lock;
  std::map<int, size_t> first;
  for (size_t g = 0; g < lock.groups.size(); ++g) {
    auto [seen, fresh] = first.emplace(lock.groups[g].choice, g);
    if (fresh) continue;
    // A repeated layer.
    lock.choices.push_back(lock.choices[static_cast<size_t>(lock.groups[g].choice)]);
    lock.groups[g].choice = static_cast<int>(lock.choices.size()) - 1;
    EXPECT_THAT(std::string(Message(Refusal(request, lock))),
                HasSubstr(StrCat("lock.groups[", g, "].choice: ", lock.groups[g].choice, "; group ",
                                 seen->second, " is equal")));
    return;
  }
  FAIL() << "two layers share no kernel";
}

TEST_F(LockTest, AKernelThatFailsIsNotTakenApart) {
  std::string model = LinearReluModel().Bytes();
  PlanLock lock = *Ask(LockRequest(model)).lock;
  decide_ = [](const CompileJob& job) {
    return job.label.find('+') != std::string::npos ? FakeAct::kError : FakeAct::kCompile;
  };
  PlanRequest request = With(Request(model), lock);
  absl::Status status = Send(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("lock.kernels["), HasSubstr("MatMul+Add+Relu")));
}

TEST_F(LockTest, TheLockIsThatOfThePlanAnswered) {
  std::string model = LinearReluModel().Bytes();
  decide_ = [](const CompileJob& job) {
    return job.label.find('+') != std::string::npos ? FakeAct::kError : FakeAct::kCompile;
  };
  PlanRequest request = Request(model);
  request.dumps = {DumpKind::kLock, DumpKind::kSource};
  PlanReply reply = Ask(request);
  ASSERT_NE(reply.lock, nullptr);
  EXPECT_THAT(reply.stored->plan.fallbacks, Not(IsEmpty()));
  EXPECT_EQ(reply.lock->plan, ExecutableDigest(reply.stored->plan));
  EXPECT_THAT(reply.dumps, SizeIs(reply.stored->plan.kernels.size()));
}

TEST_F(LockTest, DevicesWithoutACodeGeneratorArePinnedToo) {
  std::string model = SmallModel("mha").SerializeAsString();
  PlanRequest request = LockRequest(model);
  request.target = {.name = "h100"};
  PlanReply free = Ask(request);
  ASSERT_NE(free.lock, nullptr);
  EXPECT_FALSE(free.lock->kernels[0].source.has_value());
  PlanReply pinned = Ask(With(request, *free.lock));
  EXPECT_EQ(LockToText(*pinned.lock), LockToText(*free.lock));
}

}  // namespace
}  // namespace fusion
