// One plan for many shapes, through the client library and the real fusiond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "client/detect_target.h"
#include "client/family_model.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/import/import.h"
#include "core/onnx/model_io.h"
#include "core/onnx/weight_source.h"
#include "core/tensor/compare.h"
#include "tests/models/models.h"
#include "tests/service/client_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::HasSubstr;

struct Shape2 {
  int64_t batch;
  int64_t seq;
};

class FamilyTest : public ClientOfDaemonTest {
 protected:
  static GeneratedModel Model(std::string_view name, Shape2 shape) {
    ModelParams params = FindModel(name)->defaults;
    params.dynamic = true;
    params.batch = shape.batch;
    params.seq = shape.seq;
    return GenerateModel(*FindModel(name), params).value();
  }
  static std::map<std::string, HostTensor> Inputs(std::string_view name, Shape2 shape) {
    GeneratedModel model = Model(name, shape);
    std::vector<HostTensor> values = GenerateInputs(model.inputs, 7);
    std::map<std::string, HostTensor> out;
    for (size_t i = 0; i < values.size(); ++i) out.emplace(model.inputs[i].name, values[i]);
    return out;
  }
  // What the evaluator says for these inputs.
  static std::vector<HostTensor> Wanted(std::string_view name, Shape2 shape) {
    GeneratedModel model = Model(name, shape);
    Graph graph =
        ImportOnnx(model.model, {.dim_bindings = {{"batch", shape.batch}, {"seq", shape.seq}},
                                 .inline_limit_bytes = INT64_MAX})
            .value();
    return Evaluate(graph, GenerateInputs(model.inputs, 7), {}).value();
  }
  FamilyModelOptions Options() const {
    FamilyModelOptions options;
    options.model.plan.dim_ranges = {{"batch", {.least = 1, .most = 4}},
                                     {"seq", {.least = 1, .most = 300}}};
    return options;
  }
};

TEST_F(FamilyTest, OnePlanServesEveryShapeAndCompilesNothingMore) {
  ASSERT_TRUE(SaveModel(Model("bert_tiny", {1, 64}).model, dir_.path("m.onnx")).ok());
  FamilyModelOptions options = Options();
  options.most_plans = 1;
  absl::StatusOr<std::unique_ptr<FamilyModel>> model =
      FamilyModel::Load(*client_, dir_.path("m.onnx"), options);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ((*model)->parts().size(), 1);
  const Plan& plan = (*model)->parts()[0].model->plan();
  EXPECT_EQ(plan.symbols.size(), 2);
  EXPECT_FALSE(plan.samples.empty()) << "an answer says what leaving dims open costs";
  const int64_t plans = static_cast<int64_t>(client_->ListPlans().value().size());
  // Back and forth: memory is as large as the largest run needs, whichever comes first.
  for (Shape2 shape : {Shape2{1, 1}, Shape2{4, 300}, Shape2{2, 33}, Shape2{1, 128}, Shape2{3, 7},
                       Shape2{4, 1}, Shape2{1, 299}, Shape2{2, 33}}) {
    SCOPED_TRACE(StrCat(shape.batch, " x ", shape.seq));
    absl::StatusOr<std::vector<HostTensor>> got = (*model)->Run(Inputs("bert_tiny", shape));
    ASSERT_TRUE(got.ok()) << got.status();
    const std::vector<HostTensor> wanted = Wanted("bert_tiny", shape);
    ASSERT_EQ(got->size(), wanted.size());
    for (size_t o = 0; o < wanted.size(); ++o) {
      EXPECT_TRUE(Compare((*got)[o], wanted[o]).ok()) << "output " << o;
    }
  }
  EXPECT_EQ(static_cast<int64_t>(client_->ListPlans().value().size()), plans);
}

TEST_F(FamilyTest, DimsThatNoPlanIsForAreNamed) {
  ASSERT_TRUE(SaveModel(Model("bert_tiny", {1, 64}).model, dir_.path("m.onnx")).ok());
  FamilyModelOptions options = Options();
  options.most_plans = 1;
  auto model = FamilyModel::Load(*client_, dir_.path("m.onnx"), options).value();
  absl::Status status = model->Run(Inputs("bert_tiny", {1, 301})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the plan is for \"seq\" = 1..300"));
  std::map<std::string, HostTensor> inputs = Inputs("bert_tiny", {1, 16});
  inputs.begin()->second = Inputs("bert_tiny", {2, 16}).begin()->second;
  EXPECT_THAT(std::string(model->Run(inputs).status().message()), HasSubstr("expected 1 = batch"));
}

TEST_F(FamilyTest, LikelyDimsGetAPlanOfTheirOwnInTheBackground) {
  ASSERT_TRUE(SaveModel(Model("bert_tiny", {1, 64}).model, dir_.path("m.onnx")).ok());
  FamilyModelOptions options = Options();
  options.most_plans = 1;
  options.model.plan.dim_ranges["batch"].likely = 2;
  options.model.plan.dim_ranges["seq"].likely = 33;
  auto model = FamilyModel::Load(*client_, dir_.path("m.onnx"), options).value();
  const auto begin = std::chrono::steady_clock::now();
  while (!model->exact().has_value()) {
    ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(model->exact()->ok()) << *model->exact();
  auto inputs = Inputs("bert_tiny", {2, 33});
  EXPECT_TRUE(model->ModelFor(inputs).value()->plan().symbols.empty());
  EXPECT_EQ(model->ModelFor(Inputs("bert_tiny", {2, 32})).value()->plan().symbols.size(), 2);
  EXPECT_TRUE(Compare(model->Run(inputs).value()[0], Wanted("bert_tiny", {2, 33})[0]).ok());
}

TEST_F(FamilyTest, APlanThatLosesIsTakenApart) {
  ASSERT_TRUE(SaveModel(Model("bert_tiny", {1, 64}).model, dir_.path("m.onnx")).ok());
  FamilyModelOptions options = Options();
  options.most_loss = -1;  // always
  options.most_plans = 2;
  auto model = FamilyModel::Load(*client_, dir_.path("m.onnx"), options).value();
  ASSERT_EQ(model->parts().size(), 2);
  EXPECT_EQ(model->parts()[0].ranges.at("seq").most + 1, model->parts()[1].ranges.at("seq").least);
  for (Shape2 shape : {Shape2{1, 2}, Shape2{4, 300}}) {
    EXPECT_TRUE(
        Compare(model->Run(Inputs("bert_tiny", shape)).value()[0], Wanted("bert_tiny", shape)[0])
            .ok());
  }
}

// The largest of the first elements of each row: right only where a row has as many.
FusionRequest FirstElementsRequest(int64_t first, int64_t least, int64_t most) {
  TestModel m;
  m.Input("x", {"B", "S"}).Ints("from", {0}).Ints("to", {first}).Ints("axis", {1});
  m.Node("Slice", {"x", "from", "to", "axis"}, {"part"}, "head");
  m.Node("ReduceMax", {"part"}, {"y"}, "largest").Attr("axes", std::vector<int64_t>{1});
  m.Attr("keepdims", 0).Output("y", {"B"});
  FusionRequest request;
  request.onnx_model = m.Bytes();
  request.target = DetectTarget(1);
  request.options.dim_ranges = {{"B", {.least = 1, .most = 2}},
                                {"S", {.least = least, .most = most}}};
  return request;
}

absl::StatusOr<std::unique_ptr<FusedModel>> LoadFirstElements(const Client& client, int64_t first,
                                                              int64_t least, int64_t most) {
  return FusedModel::Load(client, FirstElementsRequest(first, least, most),
                          [](const std::string& /*name*/) { return InvalidArgument("no weight"); },
                          {});
}

// p = Concat(x[S, 2], y[T, 2])[T:]: which rows these are follows from which of S and T is larger.
FusionRequest CutRequest(DimRange s, DimRange t) {
  TestModel m;
  m.Input("x", {"S", 2}).Input("y", {"T", 2}).Ints("zero", {0}).Ints("end", {1 << 20});
  m.Node("Concat", {"x", "y"}, {"all"}, "joins").Attr("axis", 0);
  m.Node("Shape", {"y"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"t"});
  m.Node("Slice", {"all", "t", "end", "zero"}, {"p"}, "cuts").Output("p");
  FusionRequest request;
  request.onnx_model = m.Bytes();
  request.target = DetectTarget(1);
  request.options.dim_ranges = {{"S", s}, {"T", t}};
  return request;
}

TEST_F(FamilyTest, ACutAtAnotherDimsLengthIsRightWhereOneOrderHoldsElseRefused) {
  auto no_weight = [](const std::string& /*name*/) { return InvalidArgument("no weight"); };
  auto load = [&](DimRange s, DimRange t) {
    return FusedModel::Load(*client_, CutRequest(s, t), no_weight, {});
  };
  const absl::Status both = load({.least = 1, .most = 9}, {.least = 1, .most = 9}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(both)) << both;
  EXPECT_THAT(Message(both), testing::AllOf(HasSubstr("node \"joins\", \"cuts\""),
                                            HasSubstr("dim S, T"), HasSubstr("--bind T=VALUE")));
  const DimRange few{.least = 1, .most = 4};
  const DimRange many{.least = 4, .most = 9};
  for (const auto& [s_range, t_range] : {std::pair(few, many), std::pair(many, few)}) {
    auto model = load(s_range, t_range);
    ASSERT_TRUE(model.ok()) << model.status();
    for (int64_t s : {s_range.least, s_range.least + 2, s_range.most}) {
      for (int64_t t : {t_range.least, t_range.least + 1, t_range.most}) {
        HostTensor x(DType::kF32, {s, 2});
        HostTensor y(DType::kF32, {t, 2});
        for (int64_t i = 0; i < 2 * s; ++i) x.SetDouble(i, static_cast<double>(i));
        for (int64_t i = 0; i < 2 * t; ++i) y.SetDouble(i, static_cast<double>(100 + i));
        auto got = (*model)->Run({{"x", x}, {"y", y}});
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ((*got)[0].dims(), (Dims{s, 2}));
        for (int64_t i = 0; i < 2 * s; ++i) {
          const int64_t at = 2 * t + i;
          EXPECT_EQ((*got)[0].GetDouble(i), at < 2 * s ? x.GetDouble(at) : y.GetDouble(at - 2 * s))
              << "S=" << s << ", T=" << t << ", element " << i;
        }
      }
    }
  }
}

// The kernels of this request with its plan as a store of an older build, or one that somebody
// changed, may hold it: its second dim begins at 1.
absl::StatusOr<std::unique_ptr<FusedModel>> LoadPlanted(const Client& client,
                                                        const FusionRequest& request) {
  ASSIGN_OR_RETURN(FusionReply reply, client.PlanFusion(request));
  std::vector<Digest> keys;
  for (const KernelStatus& kernel : reply.kernels) keys.push_back(kernel.key);
  ASSIGN_OR_RETURN(const std::vector<FetchedKernel> kernels, client.GetKernels(keys));
  if (reply.plan.symbols.size() != 2) return Internal("the plan has no two open dims");
  reply.plan.symbols[1].least = 1;
  reply.plan.variants.clear();
  auto no_weight = [](const std::string& /*name*/) { return InvalidArgument("no weight"); };
  return FusedModel::Load(std::move(reply), kernels, no_weight, {}, nullptr, {});
}

// A plan and kernel for S <= T, planted where S may be larger: the rows of y would begin before its
// first element.
TEST_F(FamilyTest, APlantedKernelOfAnotherOrderReadsNothingBeforeATensor) {
  const DimRange few{.least = 1, .most = 4};
  const DimRange many{.least = 4, .most = 9};
  auto model = LoadPlanted(*client_, CutRequest(few, many));
  ASSERT_TRUE(model.ok()) << model.status();
  auto run = [&](int64_t s, int64_t t) {
    return (*model)
        ->Run({{"x", HostTensor(DType::kF32, {s, 2})}, {"y", HostTensor(DType::kF32, {t, 2})}})
        .status();
  };
  EXPECT_TRUE(run(4, 4).ok()) << run(4, 4);
  EXPECT_TRUE(run(1, 9).ok()) << run(1, 9);
  for (int64_t t : {1, 2, 3}) {
    EXPECT_TRUE(absl::IsDataLoss(run(4, t))) << t << ": " << run(4, t);
    EXPECT_THAT(Message(run(4, t)), HasSubstr("it was made for other dims"));
  }
}

// The length of an input tells the value of a dim even if nothing reads the elements.
TEST_F(FamilyTest, ALengthIsReadFromAnInputThatNothingElseReads) {
  TestModel m;
  m.Input("past", {"P", 3}).Input("x", {2, 2}).Ints("zero", {0});
  m.Node("Shape", {"past"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"p"});
  m.Node("Cast", {"p"}, {"by"}).Attr("to", 1).Node("Mul", {"x", "by"}, {"y"}).Output("y");
  FusionRequest request;
  request.onnx_model = m.Bytes();
  request.target = DetectTarget(1);
  request.options.dim_ranges = {{"P", {.least = 0, .most = 40}}};
  auto model = FusedModel::Load(
      *client_, std::move(request),
      [](const std::string& /*name*/) { return InvalidArgument("no weight"); }, {});
  ASSERT_TRUE(model.ok()) << model.status();
  for (int64_t p : {0, 1, 40}) {
    HostTensor x(DType::kF32, {2, 2});
    for (int64_t i = 0; i < 4; ++i) x.SetDouble(i, static_cast<double>(i + 1));
    auto got = (*model)->Run({{"past", HostTensor(DType::kF32, {p, 3})}, {"x", x}});
    ASSERT_TRUE(got.ok()) << got.status();
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ((*got)[0].GetDouble(i), static_cast<double>((i + 1) * p));
    }
  }
}

// What a range was checked for is its own: neither side answers for the other one.
TEST_F(FamilyTest, AKernelServesTheRangeThatItWasCheckedForAlone) {
  auto right = LoadFirstElements(*client_, 6, 6, 16);
  ASSERT_TRUE(right.ok()) << right.status();
  const absl::Status longer = LoadFirstElements(*client_, 6, 1, 16).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(longer)) << longer;
  EXPECT_THAT(Message(longer), testing::AllOf(HasSubstr("node \"head\" (Slice)"),
                                              HasSubstr("dim S decides"), HasSubstr("--bind S=")));
  EXPECT_TRUE(absl::IsFailedPrecondition(LoadFirstElements(*client_, 7, 1, 16).status()));
  auto other = LoadFirstElements(*client_, 7, 7, 16);
  ASSERT_TRUE(other.ok()) << "a refused range refuses no other one: " << other.status();
  const Digest first = (*right)->plan().kernels[0].key;
  auto shorter = LoadFirstElements(*client_, 6, 8, 16);
  ASSERT_TRUE(shorter.ok()) << shorter.status();
  EXPECT_NE((*shorter)->plan().kernels[0].key, first) << "bounds are part of the key";
}

// The plan says 1..16, its kernel reads six elements of each row.
TEST_F(FamilyTest, APlantedKernelOfAnotherRangeReadsNothingOutside) {
  auto model = LoadPlanted(*client_, FirstElementsRequest(6, 6, 16));
  ASSERT_TRUE(model.ok()) << model.status();
  auto run = [&](int64_t length) {
    return (*model)->Run({{"x", HostTensor(DType::kF32, {1, length})}}).status();
  };
  EXPECT_TRUE(run(6).ok()) << run(6);
  EXPECT_TRUE(run(16).ok()) << run(16);
  for (int64_t length : {1, 3, 5}) {
    EXPECT_TRUE(absl::IsDataLoss(run(length))) << length << ": " << run(length);
    EXPECT_THAT(Message(run(length)), HasSubstr("it was made for other dims"));
  }
}

TEST_F(FamilyTest, ARangeOfOneValueIsABinding) {
  auto model = LoadFirstElements(*client_, 6, 9, 9);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->plan().symbols.size(), 1U);
}

TEST_F(FamilyTest, NeedsRanges) {
  EXPECT_TRUE(absl::IsInvalidArgument(FamilyModel::Load(*client_, "m.onnx", {}).status()));
}

}  // namespace
}  // namespace fusion
