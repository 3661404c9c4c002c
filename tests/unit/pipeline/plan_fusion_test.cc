#include "core/pipeline/plan_fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>

#include "core/onnx/reference_weights.h"
#include "core/pipeline/requests/lock.h"
#include "tests/models/models.h"
#include "tests/support/pipeline_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::vector<std::string> StageNames(const PlanReply& reply) {
  std::vector<std::string> names;
  for (const StageTime& t : reply.stages) names.push_back(t.stage);
  return names;
}

TEST_F(FusionPipelineTest, AMissGoesThroughEveryStage) {
  std::string model = LinearReluModel().Bytes();
  PlanReply reply = Ask(Request(model));
  EXPECT_EQ(reply.cache, CacheOutcome::kMiss);
  EXPECT_THAT(StageNames(reply), testing::ElementsAre("recall", "target", "import", "canonicalise",
                                                      "key", "lookup", "plan", "emit", "compile"));
  ASSERT_THAT(reply.kernels, SizeIs(reply.stored->plan.kernels.size()));
  for (size_t k = 0; k < reply.kernels.size(); ++k) {
    EXPECT_EQ(reply.kernels[k].key, reply.stored->plan.kernels[k].key);
    EXPECT_EQ(reply.kernels[k].state, KernelState::kReady);
    EXPECT_FALSE(reply.kernels[k].cached);
  }
  EXPECT_THAT(reply.binding.inputs, testing::ElementsAre("x"));
  EXPECT_THAT(reply.binding.outputs, testing::ElementsAre("y"));
  EXPECT_THAT(reply.binding.weights, testing::UnorderedElementsAre("w", "b"));
  EXPECT_THAT(reply.binding.nodes, testing::UnorderedElementsAre("product", "sum", "relu"));
  EXPECT_EQ(reply.stored->plan.totals.kernels, 1) << "MatMul+Add+Relu is one kernel";
}

TEST_F(FusionPipelineTest, EqualBytesAreNotImportedAgain) {
  std::string model = LinearReluModel().Bytes();
  Ask(Request(model));
  PlanReply again = Ask(Request(model));
  EXPECT_THAT(StageNames(again), testing::ElementsAre("recall", "lookup"));
  EXPECT_EQ(again.cache, CacheOutcome::kHitMemory);
  EXPECT_THAT(again.binding.inputs, testing::ElementsAre("x"));
  EXPECT_THAT(again.binding.nodes, SizeIs(3));
}

TEST_F(FusionPipelineTest, TheSameGraphUnderOtherNamesIsAHit) {
  std::string model = LinearReluModel().Bytes();
  std::string renamed = LinearReluModel(8, "other/").Bytes();
  PlanReply first = Ask(Request(model));
  int compiled = compiled_;
  PlanReply second = Ask(Request(renamed));
  EXPECT_EQ(second.cache, CacheOutcome::kHitMemory);
  EXPECT_EQ(second.stored->key, first.stored->key);
  EXPECT_EQ(compiled_, compiled);
  EXPECT_THAT(second.binding.inputs, testing::ElementsAre("other/x"));
  for (const KernelStatus& kernel : second.kernels) EXPECT_TRUE(kernel.cached);
}

TEST_F(FusionPipelineTest, AFusedModelIsTheOneThatItWasWrittenFrom) {
  onnx::ModelProto model = LinearReluModel().proto();
  PlanReply first = Ask(Request(model.SerializeAsString()));
  // The whole of it in one group.
  onnx::FunctionProto* function = model.add_functions();
  function->set_domain("fusiond");
  function->set_name("Group0");
  *function->mutable_opset_import() = model.opset_import();
  function->mutable_node()->Swap(model.mutable_graph()->mutable_node());
  for (const char* name : {"x", "w", "b"}) function->add_input(name);
  function->add_output("y");
  onnx::NodeProto* call = model.mutable_graph()->add_node();
  call->set_domain("fusiond");
  call->set_op_type("Group0");
  *call->mutable_input() = function->input();
  *call->mutable_output() = function->output();
  std::string fused = model.SerializeAsString();
  PlanRequest allowed = Request(fused);
  allowed.allow_fused = true;
  PlanReply second = Ask(allowed);
  EXPECT_EQ(second.stored->key, first.stored->key);
  EXPECT_EQ(second.cache, CacheOutcome::kHitMemory);
  EXPECT_EQ(second.binding.nodes, first.binding.nodes);
  // What was allowed once is not remembered for those who did not allow it.
  absl::StatusOr<PlanReply> refused = Send(Request(fused));
  EXPECT_THAT(std::string(refused.status().message()), testing::StartsWith("ALREADY_FUSED: "));
}

TEST_F(FusionPipelineTest, OtherWeightValuesAreAHit) {
  const ModelSpec& spec = *FindModel("mlp");
  std::vector<CacheOutcome> outcomes;
  for (uint64_t seed : {1, 2}) {
    ModelParams params = spec.defaults;
    params.seed = seed;
    params.rows = 16;
    GeneratedModel model = GenerateModel(spec, params).value();
    std::string bytes = ReferenceWeights(model.model).value().SerializeAsString();
    outcomes.push_back(Ask(Request(bytes)).cache);
  }
  EXPECT_THAT(outcomes, testing::ElementsAre(CacheOutcome::kMiss, CacheOutcome::kHitMemory));
}

TEST_F(FusionPipelineTest, OptionsAndTargetMakeOtherPlans) {
  std::string model = LinearReluModel().Bytes();
  std::vector<std::function<void(PlanRequest*)>> changes = {
      [](PlanRequest*) {},
      [](PlanRequest* r) { r->target.isa = "avx512"; },
      [](PlanRequest* r) { r->target.threads = 8; },
      [](PlanRequest* r) { r->target.l2_bytes = 4 << 20; },
      [](PlanRequest* r) { r->options.fusion = FusionMode::kOpByOp; },
      [](PlanRequest* r) { r->options.numerics = Numerics::kBitwise; },
      [](PlanRequest* r) { r->options.hints.memory_pressure = 0.9; },
      [](PlanRequest* r) { r->options.hints.compute_pressure = 0.9; },
      [](PlanRequest* r) { r->options.keep_outputs = {"p"}; },
      [](PlanRequest* r) { r->options.frontier = true; },
  };
  std::set<Digest> keys;
  for (size_t i = 0; i < changes.size(); ++i) {
    PlanRequest request = Request(model);
    request.mode = PlanMode::kPlanOnly;
    changes[i](&request);
    EXPECT_TRUE(keys.insert(Ask(request).stored->key).second) << "change " << i;
  }
}

TEST_F(FusionPipelineTest, MoreOfTheFrontierIsStoredBesideThePlanAndSharesItsKernels) {
  std::string model = LinearReluModel().Bytes();
  PlanReply plain = Ask(Request(model));
  int compiled = compiled_;
  PlanRequest request = Request(model);
  request.options.frontier = true;
  PlanReply asked = Ask(request);
  EXPECT_EQ(asked.cache, CacheOutcome::kMiss);
  EXPECT_EQ(compiled_, compiled);
  EXPECT_EQ(Ask(request).cache, CacheOutcome::kHitMemory);
  EXPECT_EQ(ExecutableDigest(asked.stored->plan), ExecutableDigest(plain.stored->plan));
  // Where there is no choice the flag asks for nothing.
  request.options.fusion = FusionMode::kOpByOp;
  PlanReply nodes = Ask(request);
  request.options.frontier = false;
  EXPECT_EQ(Ask(request).stored->key, nodes.stored->key);
}

// The product and what follows it, by a node's operator type.
Rules RulesFor(RuleAction action, const std::string& name = "r") {
  Rule rule;
  rule.name = name;
  rule.action = action;
  rule.nodes = {{.id = "m", .ops = {"MatMul"}}, {.id = "a", .ops = {"Add"}}};
  RuleEdge edge;
  edge.to = 1;
  rule.edges = {edge};
  return {rule};
}

TEST_F(FusionPipelineTest, RulesMakeAnotherPlanThatIsStored) {
  std::string model = LinearReluModel().Bytes();
  PlanReply plain = Ask(Request(model));
  PlanRequest request = Request(model);
  request.options.rules = RulesFor(RuleAction::kForbid);
  PlanReply apart = Ask(request);
  EXPECT_EQ(apart.cache, CacheOutcome::kMiss);
  EXPECT_NE(apart.stored->key, plain.stored->key);
  EXPECT_EQ(apart.stored->plan.totals.kernels, 2);
  PlanReply again = Ask(request);
  EXPECT_EQ(again.cache, CacheOutcome::kHitMemory);
  EXPECT_EQ(again.stored->key, apart.stored->key);
  // The ledger names the rule, so that another name is another plan.
  request.options.rules = RulesFor(RuleAction::kForbid, "other");
  EXPECT_NE(Ask(request).stored->key, apart.stored->key);
  // The baseline is one plan, whatever the rules.
  request.options.fusion = FusionMode::kOpByOp;
  PlanReply baseline = Ask(request);
  request.options.rules.clear();
  EXPECT_EQ(Ask(request).stored->key, baseline.stored->key);
}

TEST_F(FusionPipelineTest, RulesOfTheServerComeBeforeThoseOfARequest) {
  PipelineOptions options;
  options.rules = RulesFor(RuleAction::kForbid);
  FusionPipeline pipeline(options, BuiltInSpecs().value(), toolchain_, store_, workers_, logger_);
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  auto served = pipeline.PlanFusion(request, patient_);
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->stored->plan.totals.kernels, 2);
  // The same rule in the request of a server that has none is the same plan.
  request.options.rules = RulesFor(RuleAction::kForbid);
  EXPECT_EQ(Ask(request).stored->key, served->stored->key);
  // Both are followed: they contradict each other.
  request.options.rules = RulesFor(RuleAction::kForce, "mine");
  auto both = pipeline.PlanFusion(request, patient_);
  EXPECT_TRUE(absl::IsFailedPrecondition(both.status())) << both.status();
  EXPECT_THAT(std::string(Message(both.status())),
              testing::AllOf(HasSubstr("rule \"mine\" forces node \"product\" (MatMul), node "
                                       "\"sum\" (Add) into one kernel"),
                             HasSubstr("rule \"r\" forbids one kernel")));
}

TEST_F(FusionPipelineTest, AForcedKernelThatFailsFailsTheRequest) {
  decide_ = [](const CompileJob& job) {
    return job.label.find('+') != std::string::npos ? FakeAct::kError : FakeAct::kCompile;
  };
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  EXPECT_TRUE(Send(request).ok()) << "taken apart";
  request.options.rules = RulesFor(RuleAction::kForce);
  absl::Status status = Send(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              testing::AllOf(HasSubstr("rule \"r\" forces node \"product\" (MatMul), node "
                                       "\"sum\" (Add) into one kernel"),
                             HasSubstr("alone: a kernel of a node failed: ")));
}

TEST_F(FusionPipelineTest, ARuleAboutAnOperatorThatDoesNotExistIsInvalid) {
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.options.rules = RulesFor(RuleAction::kForbid);
  request.options.rules[0].nodes[1].ops = {"Plus"};
  absl::Status status = Send(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("rule \"r\": ops of node \"a\": \"Plus\" is no operator"));
}

TEST_F(FusionPipelineTest, JitterOfAHintIsAHit) {
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.options.hints.memory_pressure = 0.3;
  Ask(request);
  request.options.hints.memory_pressure = 0.7;
  EXPECT_EQ(Ask(request).cache, CacheOutcome::kHitMemory);
}

TEST_F(FusionPipelineTest, PlanOnlyCompilesNothing) {
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.mode = PlanMode::kPlanOnly;
  PlanReply reply = Ask(request);
  EXPECT_EQ(compiled_, 0);
  for (const KernelStatus& kernel : reply.kernels) EXPECT_EQ(kernel.state, KernelState::kPending);
  EXPECT_EQ(Ask(request).cache, CacheOutcome::kHitMemory);

  // The plan is known; a request to compile adds the kernels.
  PlanReply compiled = Ask(Request(model));
  EXPECT_EQ(compiled.cache, CacheOutcome::kHitMemory);
  for (const KernelStatus& kernel : compiled.kernels) EXPECT_EQ(kernel.state, KernelState::kReady);
}

TEST_F(FusionPipelineTest, ByDeadlineAnswersWithWhatIsReady) {
  gate_closed_ = true;
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.mode = PlanMode::kByDeadline;
  PlanReply reply = Ask(request);
  ASSERT_THAT(reply.kernels, Not(IsEmpty()));
  for (const KernelStatus& kernel : reply.kernels) EXPECT_EQ(kernel.state, KernelState::kPending);

  CancelToken hurried(Clock::Real(), Clock::Real().Now() + std::chrono::milliseconds(5));
  EXPECT_EQ(pipeline_.GetKernel(reply.kernels[0].key, hurried).state, KernelState::kPending);

  gate_closed_ = false;
  for (const KernelStatus& kernel : reply.kernels) {
    KernelReply got = pipeline_.GetKernel(kernel.key, patient_);
    ASSERT_EQ(got.state, KernelState::kReady) << got.why;
    EXPECT_EQ(got.kernel->key, kernel.key);
  }
}

TEST_F(FusionPipelineTest, EqualRequestsAtOnceCompileEachKernelOnce) {
  gate_closed_ = true;
  std::string model = LinearReluModel().Bytes();
  std::vector<std::future<CacheOutcome>> calls;
  for (int i = 0; i < 16; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { return Ask(Request(model)).cache; }));
  }
  while (pipeline_.waiters() < 16) std::this_thread::yield();
  gate_closed_ = false;
  std::map<CacheOutcome, int> outcomes;
  for (auto& call : calls) ++outcomes[call.get()];
  EXPECT_EQ(outcomes[CacheOutcome::kMiss], 1);
  // Who comes after the plan is made, but before its kernels are, finds it in memory.
  EXPECT_EQ(outcomes[CacheOutcome::kSharedFlight] + outcomes[CacheOutcome::kHitMemory], 15);
  EXPECT_EQ(compiled_, static_cast<int>(Ask(Request(model)).kernels.size()));
}

TEST_F(FusionPipelineTest, ACancelledCallerDoesNotEndTheBuild) {
  gate_closed_ = true;
  std::string model = LinearReluModel().Bytes();
  CancelToken cancel;
  auto call = std::async(std::launch::async,
                         [&] { return pipeline_.PlanFusion(Request(model), cancel).status(); });
  while (compiled_ == 0) std::this_thread::yield();
  cancel.Cancel();
  EXPECT_EQ(call.get().code(), absl::StatusCode::kCancelled);
  gate_closed_ = false;
  EXPECT_THAT(Ask(Request(model)).kernels, Not(IsEmpty()));
  EXPECT_EQ(compiled_, static_cast<int>(Ask(Request(model)).kernels.size()));
}

TEST_F(FusionPipelineTest, EqualLayersCompileOnce) {
  const ModelSpec& spec = *FindModel("bert_layer");
  ModelParams params = spec.defaults;
  params.seq = 16;
  params.hidden = 64;
  params.heads = 4;
  params.kv_heads = 4;
  params.ff = 128;
  auto kernels = [&](int64_t layers) {
    params.layers = layers;
    std::string bytes =
        ReferenceWeights(GenerateModel(spec, params).value().model).value().SerializeAsString();
    PlanRequest request = Request(bytes);
    request.mode = PlanMode::kPlanOnly;
    return Ask(request).stored->plan;
  };
  // The first layer and the last may differ from those between them.
  fusion::Plan three = kernels(3);
  fusion::Plan twelve = kernels(12);
  EXPECT_EQ(twelve.kernels.size(), three.kernels.size());
  EXPECT_GE(twelve.launches.size(), 3 * three.launches.size());
}

TEST_F(FusionPipelineTest, AFailedKernelTakesItsGroupApart) {
  decide_ = [](const CompileJob& job) {
    return job.label.find("Relu") != std::string::npos && job.label.find('+') != std::string::npos
               ? FakeAct::kError
               : FakeAct::kCompile;
  };
  std::string model = LinearReluModel().Bytes();
  PlanReply reply = Ask(Request(model));
  EXPECT_EQ(reply.stored->plan.totals.kernels, 3) << "one kernel a node";
  EXPECT_THAT(reply.warnings, testing::Contains(HasSubstr("not fused")));
  bool explained = false;
  for (const PlanDecision& d : reply.stored->plan.decisions) {
    explained |= d.code == "alone";
  }
  EXPECT_TRUE(explained);
  EXPECT_EQ(Ask(Request(model)).stored->plan.totals.kernels, 3) << "the store knows it";
}

TEST_F(FusionPipelineTest, AFailedLaunchOfPhasesFallsBackToItsKernels) {
  decide_ = [](const CompileJob& job) {
    return job.label.find(", then ") != std::string::npos ? FakeAct::kError : FakeAct::kCompile;
  };
  ModelParams params = FindModel("mlp")->defaults;
  params.rows = 1;
  params.cols = 256;
  params.depth = 4;
  GeneratedModel model = GenerateModel(*FindModel("mlp"), params).value();
  std::string bytes = ReferenceWeights(model.model).value().SerializeAsString();
  PlanRequest request = Request(bytes);
  request.options.hints.low_latency = true;
  request.target.threads = 2;
  PlanReply reply = Ask(request);
  const fusion::Plan& plan = reply.stored->plan;
  ASSERT_THAT(plan.fallbacks, SizeIs(1));
  EXPECT_THAT(plan.fallbacks[0].reason, HasSubstr("a launch of several phases"));
  for (const PlanGroup& group : plan.groups) EXPECT_FALSE(RunsInSequence(group.kind));
  EXPECT_LT(plan.totals.kernels, plan.op_by_op.kernels) << "the others are still fused";
}

TEST_F(FusionPipelineTest, DumpsOfAnUnfusedPlanAreOfThatPlan) {
  decide_ = [](const CompileJob& job) {
    return job.label.find('+') != std::string::npos ? FakeAct::kError : FakeAct::kCompile;
  };
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  PlanReply unfused = Ask(request);
  ASSERT_THAT(unfused.stored->plan.fallbacks, SizeIs(3));
  request.dumps = {DumpKind::kSchedule};
  PlanReply shown = Ask(request);
  std::set<std::string> dumped;
  for (const Dump& dump : shown.dumps) dumped.insert(dump.name);
  for (const PlanKernel& kernel : shown.stored->plan.kernels) {
    EXPECT_TRUE(dumped.contains(kernel.key.ToHex())) << kernel.label;
  }
  EXPECT_THAT(shown.warnings, testing::Contains(HasSubstr("not fused"))) << "also when stored";
}

TEST_F(FusionPipelineTest, ACallerThatLeavesDoesNotWaitForItsDeadline) {
  gate_closed_ = true;
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.mode = PlanMode::kByDeadline;
  request.ready_within = std::chrono::hours(24);
  CancelToken cancel;
  auto call = std::async(std::launch::async,
                         [&] { return pipeline_.PlanFusion(request, cancel).status(); });
  while (compiled_ == 0) std::this_thread::yield();
  cancel.Cancel();
  EXPECT_EQ(call.get().code(), absl::StatusCode::kCancelled);
}

TEST_F(FusionPipelineTest, StoppingEndsPlanning) {
  GeneratedModel generated = GenerateModel("bert_12l").value();
  std::string model = ReferenceWeights(generated.model).value().SerializeAsString();
  auto call = std::async(std::launch::async, [&] { return Send(Request(model)).status(); });
  while (pipeline_.waiters() == 0) std::this_thread::yield();
  pipeline_.Stop();
  EXPECT_EQ(call.get().code(), absl::StatusCode::kCancelled);
}

TEST_F(FusionPipelineTest, AKernelThatWasTooSlowTakesItsGroupApartForNowOnly) {
  decide_ = [](const CompileJob& job) {
    bool fused = job.label.find('+') != std::string::npos;
    return fused ? FakeAct::kHang : FakeAct::kCompile;
  };
  std::string model = LinearReluModel().Bytes();
  auto call = std::async(std::launch::async, [&] { return Ask(Request(model)); });
  while (call.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
    const WorkerPoolStats now = workers_.Stats();
    if (now.running == 0 || now.running > talk_.hanging - now.timed_out) continue;
    worker_clock_.Advance(std::chrono::seconds(30));  // the limit counts from when the job began
  }
  PlanReply reply = call.get();
  EXPECT_EQ(reply.stored->plan.totals.kernels, 3);
  Found<StoredPlan> kept = store_.GetPlan({reply.stored->key});
  EXPECT_FALSE(kept) << "a slow moment must not decide for ever";
}

TEST_F(FusionPipelineTest, AKernelWhoseWorkersDieTakesItsGroupApartForNowOnly) {
  decide_ = [](const CompileJob& job) {
    bool fused = job.label.find('+') != std::string::npos;
    return fused ? FakeAct::kDie : FakeAct::kCompile;
  };
  std::string model = LinearReluModel().Bytes();
  PlanReply reply = Ask(Request(model));
  EXPECT_EQ(reply.stored->plan.totals.kernels, 3);
  EXPECT_FALSE(store_.GetPlan({reply.stored->key})) << "whoever killed them may be gone tomorrow";
}

TEST_F(FusionPipelineTest, WhatWasCompiledIsKeptWhenTheRestFails) {
  decide_ = [](const CompileJob& job) {
    return job.label.find("Relu") != std::string::npos ? FakeAct::kError : FakeAct::kCompile;
  };
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.options.fusion = FusionMode::kOpByOp;
  EXPECT_FALSE(Send(request).ok());
  request.mode = PlanMode::kPlanOnly;
  PlanReply plan = Ask(request);
  ASSERT_GE(plan.kernels.size(), 3u);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    bool relu = plan.stored->plan.kernels[k].label.find("Relu") != std::string::npos;
    EXPECT_EQ(plan.kernels[k].state, relu ? KernelState::kFailed : KernelState::kReady);
  }
}

TEST_F(FusionPipelineTest, AKernelThatCannotBeTakenApartFailsTheRequestWithTheCompilersWords) {
  decide_ = [](const CompileJob&) { return FakeAct::kError; };
  std::string model = LinearReluModel().Bytes();
  absl::Status status = Send(Request(model)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel fk_"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel.cc:3: error: no"));

  int compiled = compiled_;
  EXPECT_FALSE(Send(Request(model)).ok());
  EXPECT_EQ(compiled_, compiled) << "what failed is not tried again at once";
}

TEST_F(FusionPipelineTest, DumpsShowEveryValueBetweenStages) {
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.mode = PlanMode::kPlanOnly;
  request.dumps = {DumpKind::kGraph, DumpKind::kProgram, DumpKind::kSmg, DumpKind::kSchedule,
                   DumpKind::kSource};
  for (int i = 0; i < 2; ++i) {  // also when the plan is known
    std::set<DumpKind> kinds;
    for (const Dump& dump : Ask(request).dumps) {
      kinds.insert(dump.kind);
      EXPECT_THAT(dump.text, Not(IsEmpty()));
      EXPECT_THAT(dump.text, Not(HasSubstr("product"))) << "a name of the client";
    }
    EXPECT_EQ(kinds, request.dumps);
  }
}

TEST_F(FusionPipelineTest, ADumpOfTheGraphNeedsNoPlan) {
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.mode = PlanMode::kPlanOnly;
  Ask(request);
  request.dumps = {DumpKind::kGraph};
  PlanReply reply = Ask(request);
  EXPECT_THAT(reply.dumps, SizeIs(1));
  EXPECT_THAT(StageNames(reply),
              testing::ElementsAre("target", "import", "canonicalise", "key", "lookup"));
}

TEST_F(FusionPipelineTest, MessagesNameTheCallersNode) {
  TestModel m;
  m.Input("x", {4, 4}).Node("Loop", {"n", "", "x"}, {"y"}, "the/\"node\"").Output("y");
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("goes", {}, DType::kBool).Input("v", {4, 4});
  body.Node("Concat", {"v", "v"}, {"more"}).Attr("axis", 0).Output("goes").Output("more");
  m.AttrGraph("body", body).Input("n", {}, DType::kI64);
  std::string model = m.Bytes();
  absl::Status status = Send(Request(model)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node \"the/\\\"node\\\"\" (Loop)"));
}

TEST_F(FusionPipelineTest, AnUnknownKernelIsNotFound) {
  KernelReply reply = pipeline_.GetKernel(Sha256("nothing"), patient_);
  EXPECT_EQ(reply.state, KernelState::kFailed);
  EXPECT_EQ(reply.why.code(), absl::StatusCode::kNotFound);
}

TEST_F(FusionPipelineTest, ATargetMatchedByItsIsaOnlyIsAWarning) {
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.target.vendor = "GenuineFusion";
  request.target.family = 6;
  request.mode = PlanMode::kPlanOnly;
  EXPECT_THAT(Ask(request).warnings, Not(IsEmpty()));
}

TEST_F(FusionPipelineTest, BadRequestsAreRefused) {
  EXPECT_EQ(Send(Request("")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Send(Request("not onnx")).status().code(), absl::StatusCode::kInvalidArgument);
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.target.isa = "avx1024";
  EXPECT_EQ(Send(request).status().code(), absl::StatusCode::kUnimplemented);
  request = Request(model);
  request.options.hints.batch_size = 9;
  EXPECT_EQ(Send(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FusionPipelineTest, ADeviceWithoutACodeGeneratorIsForPlansOnly) {
  std::string model = LinearReluModel().Bytes();
  PlanRequest request = Request(model);
  request.target = {.name = "h100", .threads = 0};
  for (PlanMode mode : {PlanMode::kCompile, PlanMode::kByDeadline}) {
    request.mode = mode;
    absl::Status refused = Send(request).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(Message(refused),
              "no code generator for target \"h100\": plans only (PLAN_MODE_PLAN_ONLY, "
              "fusionctl --plan-only)");
  }
  request.mode = PlanMode::kPlanOnly;
  request.dumps = {DumpKind::kSchedule, DumpKind::kSource};
  PlanReply reply = Ask(request);
  const Plan& plan = reply.stored->plan;
  EXPECT_EQ(plan.target, "h100");
  EXPECT_EQ(plan.threads, 132);
  EXPECT_EQ(plan.device.unit, "SM");
  EXPECT_THAT(reply.warnings, Contains(HasSubstr("plans only")));
  ASSERT_EQ(reply.kernels.size(), plan.kernels.size());
  for (const KernelStatus& kernel : reply.kernels) EXPECT_EQ(kernel.state, KernelState::kPending);
  // Schedules there are, sources there are not.
  EXPECT_EQ(reply.dumps.size(), plan.kernels.size());
  for (const Dump& dump : reply.dumps) EXPECT_EQ(dump.kind, DumpKind::kSchedule);
  // The plan is recalled; that does not make it one for compiling.
  request.dumps.clear();
  EXPECT_EQ(Ask(request).cache, CacheOutcome::kHitMemory);
  request.mode = PlanMode::kCompile;
  EXPECT_EQ(Send(request).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(FusionPipelineWithoutAvx512, RefusesTheIsaItsCompilerDoesNotKnow) {
  FakeTools tools;
  tools.on_compile = [](const Command& command) {
    CommandResult result;
    bool unknown = false;
    for (const std::string& arg : command.argv) unknown |= arg.find("avx512") != std::string::npos;
    result.exit_code = unknown ? 1 : 0;
    result.how = "exited with 1";
    result.output = "error: unrecognized command-line option '-mavx512f'";
    return result;
  };
  CapturingLogger logger;
  Toolchain toolchain = Toolchain::Open(FakeToolchainOptions(), tools).value();
  MemoryStore store(1 << 20, logger);
  WorkerPool workers(
      {.workers = 1}, toolchain,
      std::make_unique<FakeStarter>([](const CompileJob&) { return FakeAct::kCompile; }), logger);
  FusionPipeline pipeline({}, BuiltInSpecs().value(), toolchain, store, workers, logger);
  std::string model = LinearReluModel().Bytes();
  PlanRequest request;
  request.source.onnx_model = model;
  request.target.isa = "avx512";
  CancelToken cancel;
  absl::Status status = pipeline.PlanFusion(request, cancel).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("unrecognized"));
  request.mode = PlanMode::kPlanOnly;
  EXPECT_TRUE(pipeline.PlanFusion(request, cancel).ok()) << "planning needs no compiler";
  workers.Stop(std::chrono::seconds(5));
}

}  // namespace
}  // namespace fusion
