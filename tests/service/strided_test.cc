// Inputs and outputs that do not lie dense in the caller's memory, through the client library,
// fusionctl and the real fusiond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/family_model.h"
#include "core/onnx/model_io.h"
#include "core/tensor/compare.h"
#include "core/tensor/strided_copy.h"
#include "tests/service/client_fixture.h"
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 5;

// y [rows,7] = softmax(x w), t [12,rows] = relu(x) transposed, for x [rows,12].
TestModel Model() {
  TestModel m;
  HostTensor weight(DType::kF32, {12, 7});
  for (int64_t i = 0; i < weight.elements(); ++i) {
    weight.SetDouble(i, static_cast<double>(i % 11 - 5) / 8);
  }
  m.Input("x", {"rows", 12}).Initializer("w", weight);
  m.Node("MatMul", {"x", "w"}, {"s"}).Node("Softmax", {"s"}, {"y"}).Attr("axis", -1);
  m.Node("Relu", {"x"}, {"r"});
  m.Node("Transpose", {"r"}, {"t"}).Attr("perm", std::vector<int64_t>{1, 0});
  m.Output("y").Output("t");
  return m;
}

HostTensor Input(int64_t rows) {
  HostTensor x(DType::kF32, {rows, 12});
  for (int64_t i = 0; i < x.elements(); ++i) x.SetDouble(i, static_cast<double>(i * 7 % 13) - 6);
  return x;
}

// A tensor in memory with these strides, NaN between its elements.
struct Placed {
  Placed(const HostTensor& dense, Dims wanted)
      : dims(dense.dims()), strides(std::move(wanted)), memory(dense.dtype(), {Span() + 3}) {
    for (int64_t i = 0; i < memory.elements(); ++i) memory.SetDouble(i, NAN);
    CopyStrided(dense.dtype(), dims, dense.bytes(), RowMajorStrides(dims), memory.bytes(), strides);
  }
  int64_t Span() const { return SpanOf(dims, strides); }
  BoundTensor Bound() {
    return {memory.dtype(), &dims, memory.bytes(), Span() * DTypeBytes(memory.dtype())};
  }
  HostTensor Dense() const {
    HostTensor out(memory.dtype(), dims);
    CopyStrided(memory.dtype(), dims, memory.bytes(), strides, out.bytes(), RowMajorStrides(dims));
    return out;
  }
  int64_t Gaps() const {
    int64_t nan = 0;
    for (int64_t i = 0; i < memory.elements(); ++i) nan += std::isnan(memory.GetDouble(i)) ? 1 : 0;
    return nan;
  }

  Dims dims;
  Dims strides;
  HostTensor memory;
};

class StridedTest : public ClientOfDaemonTest {
 protected:
  static FusedModelOptions Options(bool open) {
    FusedModelOptions options;
    if (open) {
      options.plan.dim_ranges = {{"rows", {.least = 0, .most = 40}}};
    } else {
      options.plan.dim_bindings = {{"rows", kRows}};
    }
    return options;
  }
  absl::StatusOr<std::unique_ptr<FusedModel>> Load(const FusedModelOptions& options) {
    return FusedModel::Load(*client_, Model().proto(), "", options);
  }
  std::string WriteModel() {
    std::string path = dir_.path("model.onnx");
    FUSION_CHECK(SaveModel(Model().proto(), path).ok(), "a file of a test");
    return path;
  }
};

TEST_F(StridedTest, RunsOnTheCallersMemoryAndLeavesItsGaps) {
  struct Case {
    Dims x, y, t;
  };
  const std::vector<Case> cases = {
      {{16, 1}, {8, 1}, {48, 1}},    // padded rows
      {{1, 64}, {1, 50}, {1, 20}},   // dims in another order
      {{36, 3}, {21, 2}, {100, 2}},  // every other element
  };
  for (const bool open : {false, true}) {
    absl::StatusOr<std::unique_ptr<FusedModel>> plain = Load(Options(open));
    ASSERT_TRUE(plain.ok()) << plain.status();
    for (const Case& c : cases) {
      FusedModelOptions options = Options(open);
      options.plan.bound_strides = {{"x", c.x}, {"y", c.y}, {"t", c.t}};
      absl::StatusOr<std::unique_ptr<FusedModel>> model = Load(options);
      ASSERT_TRUE(model.ok()) << model.status();
      for (const int64_t rows : open ? std::vector<int64_t>{0, 1, 13, 40} : std::vector{kRows}) {
        SCOPED_TRACE(StrCat(DimsToString(c.x), " rows ", rows));
        std::vector<HostTensor> wanted = (*plain)->Run({Input(rows)}).value();
        Placed x(Input(rows), c.x);
        Placed y(HostTensor(DType::kF32, {rows, 7}), c.y);
        Placed t(HostTensor(DType::kF32, {12, rows}), c.t);
        const int64_t gaps = y.Gaps() + t.Gaps();
        ASSERT_TRUE((*model)->RunInPlace({x.Bound()}, {y.Bound(), t.Bound()}).ok());
        EXPECT_TRUE(Compare(y.Dense(), wanted[0]).ok());
        EXPECT_TRUE(Compare(t.Dense(), wanted[1]).ok());
        EXPECT_EQ(y.Gaps() + t.Gaps(), gaps) << "what lies between is not touched";
        // Dense tensors are copied there and back.
        std::vector<HostTensor> copied = (*model)->Run({Input(rows)}).value();
        EXPECT_TRUE(Compare(copied[0], wanted[0]).ok());
        EXPECT_TRUE(Compare(copied[1], wanted[1]).ok());
      }
    }
  }
}

TEST_F(StridedTest, FamiliesTakeThePlanForTheDims) {
  FamilyModelOptions options;
  options.model = Options(true);
  options.model.plan.dim_ranges["rows"].likely = kRows;
  options.model.plan.bound_strides = {{"x", {16, 1}}};
  absl::StatusOr<std::unique_ptr<FamilyModel>> model =
      FamilyModel::Load(*client_, WriteModel(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int64_t rows : {int64_t{1}, kRows, int64_t{40}}) {
    Placed x(Input(rows), {16, 1});
    Placed y(HostTensor(DType::kF32, {rows, 7}), {7, 1});
    Placed t(HostTensor(DType::kF32, {12, rows}), {rows, 1});
    ASSERT_TRUE((*model)->RunInPlace({x.Bound()}, {y.Bound(), t.Bound()}).ok());
    std::map<std::string, HostTensor> dense;
    dense["x"] = Input(rows);
    std::vector<HostTensor> wanted = (*model)->Run(dense).value();
    EXPECT_TRUE(Compare(y.Dense(), wanted[0]).ok());
    EXPECT_TRUE(Compare(t.Dense(), wanted[1]).ok());
  }
  Placed x(Input(41), {16, 1});
  EXPECT_THAT(std::string((*model)->RunInPlace({x.Bound()}, {}).message()),
              HasSubstr("the plan is for \"rows\" = 0..40"));
  EXPECT_THAT(std::string((*model)->RunInPlace({}, {}).message()), HasSubstr("0 inputs given"));
}

TEST_F(StridedTest, TooLittleMemoryIsRefusedByName) {
  FusedModelOptions options = Options(false);
  options.plan.bound_strides = {{"x", {16, 1}}};
  absl::StatusOr<std::unique_ptr<FusedModel>> model = Load(options);
  ASSERT_TRUE(model.ok()) << model.status();
  Placed x(Input(kRows), {16, 1});
  Placed y(HostTensor(DType::kF32, {kRows, 7}), {7, 1});
  Placed t(HostTensor(DType::kF32, {12, kRows}), {kRows, 1});
  auto run = [&](BoundTensor in, std::vector<BoundTensor> out) {
    return std::string((*model)->RunInPlace({in}, out).message());
  };
  EXPECT_EQ(run(x.Bound(), {y.Bound(), t.Bound()}), "");
  BoundTensor small = x.Bound();
  --small.bytes;
  EXPECT_THAT(run(small, {y.Bound(), t.Bound()}),
              HasSubstr("input 0 has 303 bytes of memory, expected 304"));
  small = t.Bound();
  small.data = nullptr;
  EXPECT_THAT(run(x.Bound(), {y.Bound(), small}), HasSubstr("output 1 has 0 bytes of memory"));
  const Dims other = {kRows, 6};
  BoundTensor shorter = y.Bound();
  shorter.dims = &other;
  EXPECT_THAT(run(x.Bound(), {shorter, t.Bound()}), HasSubstr("output 0 is f32[5,6]"));
  EXPECT_THAT(run(x.Bound(), {y.Bound()}), HasSubstr("1 inputs and 1 outputs given"));
  EXPECT_THAT(run({}, {y.Bound(), t.Bound()}), HasSubstr("input 0 is not given"));
}

TEST_F(StridedTest, CachesInThatMemoryGoTogether) {
  // keys behind those in `past`, beside an output with padded rows
  TestModel m;
  m.Input("x", {1, 3}).Input("past", {"past", 3});
  m.Node("Exp", {"x"}, {"new"});
  m.Node("Concat", {"past", "new"}, {"present"}).Attr("axis", 0);
  m.Node("Relu", {"x"}, {"y"}).Output("present").Output("y");
  FusedModelOptions options;
  options.plan.dim_ranges = {{"past", {.least = 0, .most = 7}}};
  options.plan.shared_buffers = {{"past", "present", 8}};
  options.plan.bound_strides = {{"y", {6, 2}}};
  auto model = FusedModel::Load(*client_, m.proto(), "", options);
  ASSERT_TRUE(model.ok()) << model.status();
  HostTensor cache(DType::kF32, {8, 3});
  HostTensor x = HostTensor::FromValues<float>(DType::kF32, {1, 3}, {0, -1, 1});
  for (int64_t past = 0; past < 3; ++past) {
    const Dims before = {past, 3};
    const Dims after = {past + 1, 3};
    Placed y(HostTensor(DType::kF32, {1, 3}), {6, 2});
    const BoundTensor in = {DType::kF32, &before, cache.bytes(), cache.byte_size()};
    const BoundTensor out = {DType::kF32, &after, cache.bytes(), cache.byte_size()};
    const BoundTensor token = {DType::kF32, &x.dims(), x.bytes(), x.byte_size()};
    absl::Status run = (*model)->RunInPlace({token, in}, {out, y.Bound()});
    ASSERT_TRUE(run.ok()) << run;
    EXPECT_EQ(y.Dense().GetDouble(2), 1);
    EXPECT_NEAR(cache.GetDouble(past * 3 + 2), std::exp(1.0), 1e-6);
    EXPECT_EQ(cache.GetDouble(past * 3 + 3), 0) << "beyond the rows";
    HostTensor apart = cache;
    const BoundTensor elsewhere = {DType::kF32, &after, apart.bytes(), apart.byte_size()};
    EXPECT_THAT(std::string((*model)->RunInPlace({token, in}, {elsewhere, y.Bound()}).message()),
                HasSubstr("share a buffer, and do not begin at the same place"));
  }
}

class FusionctlStridedTest : public FusionctlTest {};

TEST_F(FusionctlStridedTest, VerifyPlanAndBenchTakeStrides) {
  const std::string model = Write(Model().proto());
  const std::vector<std::string> words = {"--strides", "x=16,1", "--strides", "t=1,20"};
  auto with = [&](std::vector<std::string> head, const std::vector<std::string>& more) {
    head.push_back(model);
    head.insert(head.end(), words.begin(), words.end());
    head.insert(head.end(), more.begin(), more.end());
    return head;
  };
  EXPECT_EQ(CtlJson(with({"verify"}, {"--bind", "rows=9"}))["pass"], true);
  EXPECT_EQ(CtlJson(with({"verify"}, {"--range", "rows=1..30", "--bind", "rows=9"}))["pass"], true);
  Json plan = CtlJson(with({"plan"}, {"--bind", "rows=9"}));
  ASSERT_EQ(plan["bound_strides"].size(), 2);
  EXPECT_EQ(plan["bound_strides"][1], Json({{"tensor", "t"}, {"strides", {1, 20}}}));
  EXPECT_THAT(Ctl(with({"plan"}, {"--bind", "rows=9"})).out,
              HasSubstr("strides: x [16,1], t [1,20]\n"));
  Json bench = CtlJson(with({"bench"}, {"--bind", "rows=9", "--seconds", "0.02"}));
  EXPECT_TRUE(bench.contains("ratio")) << bench;
  EXPECT_EQ(CtlJson(with({"run"}, {"--bind", "rows=9", "--compare"}))["pass"], true);
}

TEST_F(FusionctlStridedTest, StridesThatDoNotFitAreNamed) {
  const std::string model = Write(Model().proto());
  struct Case {
    const char* strides;
    int code;
    const char* error;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"x", 2, "expected NAME=STRIDE,STRIDE,..., got \"x\""},
           {"x=1,", 2, "expected NAME=STRIDE,STRIDE,..."},
           {"z=1,2", 3, "--strides[0]: tensor \"z\": the graph has no such input or output"},
           {"x=12", 3, "1 strides; expected 2, one for each dim"},
           {"x=0,1", 3, "stride 0 of dim 0; expected 1.."},
           {"x=11,1", 3, "stride 11 of dim 0 of [9,12]; expected at least 12"}}) {
    ProgramResult bad = Ctl({"plan", model, "--bind", "rows=9", "--strides", c.strides});
    EXPECT_EQ(bad.code, c.code) << c.strides;
    EXPECT_THAT(bad.err, HasSubstr(c.error));
  }
}

}  // namespace
}  // namespace fusion
