// Ops whose outputs have as many elements as a run decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

HostTensor Reals(Dims dims, const std::vector<double>& values) {
  HostTensor out(DType::kF32, std::move(dims));
  for (size_t i = 0; i < values.size(); ++i) out.SetDouble(static_cast<int64_t>(i), values[i]);
  return out;
}

std::vector<double> ValuesOf(const HostTensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.elements(); ++i) {
    out.push_back(IsFloat(t.dtype()) ? t.GetDouble(i) : static_cast<double>(t.GetInt(i)));
  }
  return out;
}

// A graph of one call on inputs, with its first `outputs` outputs.
Graph OneCall(std::string_view op, const std::vector<HostTensor>& inputs, const AttrMap& attrs,
              size_t outputs = 1) {
  GraphBuilder b;
  std::vector<TensorId> in;
  for (const HostTensor& x : inputs) {
    in.push_back(b.AddInput(StrCat("x", in.size()), {x.dtype(), Shape(x.dims())}));
  }
  auto ids = b.AddMultiNode(*FindOp(op), in, attrs, "n", Names(outputs, "y"));
  EXPECT_TRUE(ids.ok()) << ids.status();
  for (size_t i = 0; ids.ok() && i < outputs; ++i) b.MarkOutput((*ids)[i]);
  auto graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
  return *std::move(graph);
}

std::vector<HostTensor> RunGraph(const Graph& graph, const std::vector<HostTensor>& inputs) {
  auto none = [](TensorId) -> absl::StatusOr<const HostTensor*> { return NotFound("no weights"); };
  auto out = Evaluate(graph, inputs, none);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : std::vector<HostTensor>();
}

std::vector<HostTensor> RunCall(std::string_view op, const std::vector<HostTensor>& inputs,
                                const AttrMap& attrs = {}, size_t outputs = 1) {
  return RunGraph(OneCall(op, inputs, attrs, outputs), inputs);
}

TEST(NonZero, GivesCoordinatesInRowMajorOrder) {
  for (int64_t columns = 1; columns <= 9; ++columns) {
    HostTensor x(DType::kF32, {3, columns});
    std::vector<double> rows;
    std::vector<double> at;
    for (int64_t i = 0; i < x.elements(); ++i) {
      if ((i * i + columns) % 3 == 0) continue;
      x.SetDouble(i, i % 2 == 0 ? kNan : -1);
      rows.push_back(static_cast<double>(i / columns));
      at.push_back(static_cast<double>(i % columns));
    }
    std::vector<HostTensor> out = RunCall("NonZero", {x});
    ASSERT_THAT(out, SizeIs(1)) << "the count is no output of the model";
    EXPECT_EQ(out[0].dims(), (Dims{2, static_cast<int64_t>(rows.size())}));
    rows.insert(rows.end(), at.begin(), at.end());
    EXPECT_EQ(ValuesOf(out[0]), rows) << columns;
  }
}

TEST(NonZero, OfNothingOrOfAScalar) {
  EXPECT_EQ(RunCall("NonZero", {Reals({2, 2}, {0, -0.0, 0, 0})})[0].dims(), (Dims{2, 0}));
  EXPECT_EQ(RunCall("NonZero", {Reals({0, 3}, {})})[0].dims(), (Dims{2, 0}));
  EXPECT_EQ(RunCall("NonZero", {Reals({}, {5})})[0].dims(), (Dims{0, 1}));
  EXPECT_EQ(RunCall("NonZero", {Reals({}, {0})})[0].dims(), (Dims{0, 0}));
}

TEST(Compress, TakesWhatIsTrueHoweverLongTheListIs) {
  const HostTensor x = Reals({2, 3}, {1, 2, 3, 4, 5, 6});
  auto bools = [](std::initializer_list<int> values) {
    return HostTensor::FromValues(DType::kBool, {static_cast<int64_t>(values.size())}, values);
  };
  const AttrMap columns = {{"axis", int64_t{-1}}};
  EXPECT_THAT(ValuesOf(RunCall("Compress", {x, bools({0, 1})}, columns)[0]), ElementsAre(2, 5));
  EXPECT_THAT(ValuesOf(RunCall("Compress", {x, bools({0, 1, 1, 1})}, columns)[0]),
              ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(ValuesOf(RunCall("Compress", {x, bools({0, 1, 0, 0, 1})})[0]), ElementsAre(2, 5));
  EXPECT_EQ(RunCall("Compress", {x, bools({0, 0})}, columns)[0].dims(), (Dims{2, 0}));
}

TEST(Unique, SortsWithNanLastOrKeepsTheOrder) {
  const HostTensor x = Reals({7}, {3, kNan, -0.0, 3, 0, kNan, -HUGE_VAL});
  std::vector<HostTensor> sorted = RunCall("Unique", {x}, {}, 4);
  ASSERT_THAT(sorted, SizeIs(4));
  EXPECT_EQ(sorted[0].dims(), (Dims{4}));
  EXPECT_TRUE(std::isnan(sorted[0].GetDouble(3)));
  EXPECT_THAT(ValuesOf(sorted[1]), ElementsAre(6, 2, 0, 1));
  EXPECT_THAT(ValuesOf(sorted[2]), ElementsAre(2, 3, 1, 2, 1, 3, 0));
  EXPECT_THAT(ValuesOf(sorted[3]), ElementsAre(1, 2, 2, 2));
  std::vector<HostTensor> kept = RunCall("Unique", {x}, {{"sorted", int64_t{0}}}, 4);
  EXPECT_THAT(ValuesOf(kept[1]), ElementsAre(0, 1, 2, 6));
  EXPECT_THAT(ValuesOf(kept[2]), ElementsAre(0, 1, 2, 0, 2, 1, 3));
}

TEST(Unique, ComparesRowsAndColumns) {
  const HostTensor x = Reals({4, 2}, {1, 0, 1, -1, 1, 0, 0, 9});
  std::vector<HostTensor> rows = RunCall("Unique", {x}, {{"axis", int64_t{0}}}, 4);
  EXPECT_EQ(rows[0].dims(), (Dims{3, 2}));
  EXPECT_THAT(ValuesOf(rows[0]), ElementsAre(0, 9, 1, -1, 1, 0));
  EXPECT_THAT(ValuesOf(rows[2]), ElementsAre(2, 1, 2, 0));
  std::vector<HostTensor> columns = RunCall("Unique", {x}, {{"axis", int64_t{-1}}});
  EXPECT_THAT(ValuesOf(columns[0]), ElementsAre(0, 1, -1, 1, 0, 1, 9, 0));
  EXPECT_EQ(RunCall("Unique", {Reals({0}, {})}, {}, 4)[3].dims(), (Dims{0}));
}

AttrMap AtMost(int64_t boxes) {
  auto most = std::make_shared<HostTensor>(DType::kI64, Dims{1});
  most->SetInt(0, boxes);
  return {{"max_output_boxes_per_class", std::shared_ptr<const HostTensor>(std::move(most))}};
}

TEST(NonMaxSuppression, KeepsTheBestOfThoseThatOverlap) {
  const HostTensor boxes = Reals({1, 4, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 1, 1, 0, 0, 5, 5, 6, 6});
  const HostTensor scores = Reals({1, 2, 4}, {0.5, 0.9, 0.9, 0.1, 0.2, 0.2, 0.3, 0.3});
  const HostTensor half = Reals({1}, {0.5});
  EXPECT_THAT(ValuesOf(RunCall("NonMaxSuppression", {boxes, scores, half}, AtMost(9))[0]),
              ElementsAre(0, 0, 1, 0, 0, 3, 0, 1, 2, 0, 1, 3));
  EXPECT_THAT(
      ValuesOf(RunCall("NonMaxSuppression", {boxes, scores, half, Reals({}, {0.2})}, AtMost(9))[0]),
      ElementsAre(0, 0, 1, 0, 1, 2, 0, 1, 3));
  EXPECT_THAT(ValuesOf(RunCall("NonMaxSuppression", {boxes, scores, half}, AtMost(1))[0]),
              ElementsAre(0, 0, 1, 0, 1, 2));
  EXPECT_EQ(RunCall("NonMaxSuppression", {boxes, scores}, {})[0].dims(), (Dims{0, 3}));
}

TEST(NonMaxSuppression, WithoutALeastScoreTakesAnyNumber) {
  const HostTensor boxes = Reals({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  const HostTensor scores = Reals({1, 1, 3}, {-HUGE_VAL, kNan, 0.5});
  EXPECT_THAT(ValuesOf(RunCall("NonMaxSuppression", {boxes, scores}, AtMost(9))[0]),
              ElementsAre(0, 0, 2, 0, 0, 0));
  EXPECT_THAT(
      ValuesOf(RunCall("NonMaxSuppression",
                       {boxes, scores, Reals({1}, {0.5}), Reals({1}, {-HUGE_VAL})}, AtMost(9))[0]),
      ElementsAre(0, 0, 2));
}

TEST(NonMaxSuppression, NoNumberIsTooLarge) {
  const HostTensor boxes = Reals({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  const HostTensor scores = Reals({1, 1, 3}, {0.5, 0.25, 0.75});
  EXPECT_THAT(ValuesOf(RunCall("NonMaxSuppression", {boxes, scores}, AtMost(int64_t{1} << 62))[0]),
              ElementsAre(0, 0, 2, 0, 0, 0, 0, 0, 1));
}

TEST(Unique, OfManyTakesASortAndNoMore) {
  constexpr int64_t kMany = 200'000;
  HostTensor x(DType::kI64, {kMany});
  for (int64_t i = 0; i < kMany; ++i) x.SetInt(i, (kMany - i) % 150'000);
  const std::vector<HostTensor> made = RunCall("Unique", {x}, {});
  ASSERT_EQ(made[0].elements(), 150'000);
  for (int64_t i = 0; i < 150'000; i += 7919) EXPECT_EQ(made[0].GetInt(i), i);
}

TEST(Compress, OfNothingGivesNoIndexThatOthersLack) {
  const HostTensor x = HostTensor::FromValues(DType::kI64, {2}, {1, 99});
  const HostTensor none = HostTensor::FromValues(DType::kBool, {2}, {0, 0});
  GraphBuilder b;
  TensorId in = b.AddInput("x", {DType::kI64, {2}});
  TensorId which = b.AddInput("which", {DType::kBool, {2}});
  TensorId table = b.AddInput("table", {DType::kF32, {10}});
  TensorId some = b.AddMultiNode(*FindOp("Compress"), {in, which}, {}, "c", {"i"}).value()[0];
  b.MarkOutput(b.AddNode("Gather", {table, some}).value());
  std::vector<HostTensor> out = RunGraph(b.Build().value(), {x, none, Reals({10}, {})});
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(out[0].dims(), (Dims{0}));
}

class CountedDims : public testing::Test {
 protected:
  TensorId Coordinates() {
    TensorId x = b_.AddInput("x", {DType::kF32, {4, 5}});
    return b_.AddMultiNode(*FindOp("NonZero"), {x}, {}, "nz", {"at"}).value()[0];
  }
  TensorId Add(std::string_view op, std::vector<TensorId> inputs, AttrMap attrs = {}) {
    auto id = b_.AddNode(op, std::move(inputs), std::move(attrs), "n");
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  std::string Refusal(std::string_view op, std::vector<TensorId> inputs, AttrMap attrs = {}) {
    auto id = b_.AddNode(op, std::move(inputs), std::move(attrs), "n");
    return id.ok() ? "none" : std::string(Message(id.status()));
  }
  GraphBuilder b_;
};

TEST_F(CountedDims, FollowThroughOpsThatTreatEachElementAlone) {
  TensorId at = Coordinates();
  TensorId rows = Add("Transpose", {at}, {{"perm", Ints{1, 0}}});
  EXPECT_EQ(b_.tensor(rows).counted->dim, 0);
  TensorId table = b_.AddInput("table", {DType::kF32, {4, 5, 3}});
  TensorId picked = Add("GatherND", {table, rows});
  EXPECT_EQ(b_.tensor(picked).counted->dim, 0);
  TensorId soft = Add("Softmax", {picked}, {{"axis", int64_t{-1}}});
  b_.MarkOutput(soft);
  b_.MarkOutput(at);
  Graph graph = b_.Build().value();
  EXPECT_EQ(graph.model_outputs(), 2);
  EXPECT_THAT(graph.outputs(), SizeIs(3)) << "both have one count";

  HostTensor x = Reals({4, 5}, std::vector<double>(20, 0));
  x.SetDouble(7, 1);
  x.SetDouble(19, 1);
  HostTensor values(DType::kF32, {4, 5, 3});
  std::vector<HostTensor> out = RunGraph(graph, {x, values});
  EXPECT_EQ(out[0].dims(), (Dims{2, 3}));
  EXPECT_THAT(ValuesOf(out[1]), ElementsAre(1, 3, 2, 4));
}

TEST_F(CountedDims, StopAtOpsThatNeedAllElements) {
  TensorId at = Coordinates();
  const std::string why =
      "a run decides how many elements of input 0 (at most i64[2,20]) there are along dim 1";
  EXPECT_THAT(Refusal("ReduceSum", {at}, {{"axes", Ints{1}}}), HasSubstr(why));
  EXPECT_THAT(Refusal("Shape", {at}), HasSubstr(why));
  EXPECT_THAT(Refusal("Reshape", {at}, {{"shape", Ints{40}}}), HasSubstr(why));
  EXPECT_THAT(Refusal("NonZero", {at}), HasSubstr("a run decides"));
  EXPECT_THAT(Refusal("CumSum", {at}, {{"axis", Ints{1}}}), HasSubstr("a run decides"));
  EXPECT_EQ(Refusal("ReduceSum", {at}, {{"axes", Ints{0}}}), "none");
  TensorId y = b_.AddInput("y", {DType::kF32, {20}});
  TensorId other = b_.AddMultiNode(*FindOp("NonZero"), {y}, {}, "nz", {"o"}).value()[0];
  EXPECT_THAT(Refusal("Add", {at, other}), HasSubstr("two extents"));
}

// Elements that are there must stay where they are, and nothing else may come beside them.
TEST_F(CountedDims, StopWhereElementsMoveOrOthersComeIn) {
  TensorId at = Coordinates();  // i64[2,20]
  const std::string why = "a run decides how many elements of input 0";
  EXPECT_THAT(Refusal("Slice", {at}, {{"axes", Ints{1}}, {"starts", Ints{0}}, {"ends", Ints{3}}}),
              HasSubstr(why));
  EXPECT_THAT(Refusal("Slice", {at}, {{"axes", Ints{1}}, {"starts", Ints{0}}, {"ends", Ints{-1}}}),
              HasSubstr(why));
  EXPECT_THAT(Refusal("Pad", {at}, {{"pads", Ints{0, 0, 0, 2}}}), HasSubstr(why));
  TensorId two = b_.AddInput("two", {DType::kI64, {2, 2}});
  TensorId many = b_.AddInput("many", {DType::kI64, {2, 20}});
  TensorId rows = b_.AddInput("rows", {DType::kI64, {2, 1}});
  TensorId yes = b_.AddInput("yes", {DType::kBool, {}});
  EXPECT_THAT(Refusal("Concat", {at, two}, {{"axis", int64_t{1}}}), HasSubstr(why));
  EXPECT_THAT(Refusal("Concat", {at, at}, {{"axis", int64_t{1}}}), HasSubstr(why));
  const std::string beside = "beside one of which a run decides the extent (at most 20)";
  EXPECT_THAT(Refusal("Add", {at, many}), HasSubstr(beside));
  EXPECT_THAT(Refusal("Concat", {at, many}, {{"axis", int64_t{0}}}), HasSubstr(beside));
  EXPECT_THAT(Refusal("Where", {yes, at, many}), HasSubstr(beside)) << "what an If becomes";
  TensorId square = b_.AddInput("square", {DType::kI64, {20, 20}});
  EXPECT_NE(Refusal("ScatterElements", {square, at, at}, {{"axis", int64_t{0}}}), "none");
  EXPECT_EQ(Refusal("Add", {at, rows}), "none");
  EXPECT_EQ(Refusal("Where", {yes, at, rows}), "none");
  EXPECT_EQ(Refusal("Concat", {at, at}, {{"axis", int64_t{0}}}), "none");
  EXPECT_EQ(Refusal("Gelu", {Add("Cast", {at}, {{"to", std::string("f32")}})}), "none");
}

TEST_F(CountedDims, HaveNoMoreOutputsThanTheOp) {
  TensorId x = b_.AddInput("x", {DType::kF32, {4}});
  auto nodes = b_.AddMultiNode(*FindOp("NonZero"), {x}, {}, "n", Names(3, "y"));
  EXPECT_THAT(std::string(Message(nodes.status())), HasSubstr("has 3 outputs, expected at most 2"));
}

TEST_F(CountedDims, OfConstantsAreKnownAtOnce) {
  TensorId c = b_.AddConstant("c", Reals({5}, {0, 1, 0, 1, 1}));
  TensorId at = Add("NonZero", {c});
  EXPECT_EQ(b_.tensor(at).type, (TensorType{DType::kI64, {1, 3}}));
  EXPECT_EQ(Refusal("Reshape", {at}, {{"shape", Ints{3}}}), "none");
}

TEST_F(CountedDims, StayWhenAGraphIsBuiltAgain) {
  b_.MarkOutput(Coordinates());
  Graph graph = b_.Build().value();
  CanonicalGraph canonical = Canonicalise(graph).value();
  EXPECT_THAT(canonical.output_names, ElementsAre("at"));
  EXPECT_EQ(canonical.graph.output_extents(), graph.output_extents());
  CanonicalGraph again = Canonicalise(canonical.graph).value();
  EXPECT_EQ(again.key_text, canonical.key_text);
  Graph parsed = ParseGraph(ToString(graph)).value();
  EXPECT_EQ(parsed.output_extents(), graph.output_extents());
  EXPECT_EQ(ToString(parsed), ToString(graph));
}

}  // namespace
}  // namespace fusion
