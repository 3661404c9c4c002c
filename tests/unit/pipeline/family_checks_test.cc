#include "core/pipeline/families/family_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/canonical.h"
#include "core/import/graph_source.h"
#include "core/pipeline/families/import_family.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The length of x as an i64 scalar "n".
TestModel WithLength() {
  TestModel m;
  m.Input("x", {"S", 4}).Node("Shape", {"x"}, {"shape"}).Ints("zero", {0});
  m.Node("Gather", {"shape", "zero"}, {"at"}).Node("Squeeze", {"at"}, {"n"});
  return m;
}

// y = x * n' for an i64 scalar n'.
TestModel& Scale(TestModel& m, const std::string& n) {
  m.Node("Cast", {n}, {"factor"}).Attr("to", 1);
  return m.Node("Mul", {"x", "factor"}, {"y"}, "scale").Output("y");
}

TestModel& Number(TestModel& m, const std::string& name, int64_t value) {
  HostTensor number(DType::kI64, {});
  number.SetInt(0, value);
  return m.Initializer(name, number);
}

// Whether one plan is right for all lengths of a range.
absl::Status Check(const TestModel& m, int64_t least, int64_t most) {
  const std::string bytes = m.Bytes();
  PlanOptions options;
  options.dim_ranges = {{"S", {.least = least, .most = most}}};
  const Importer import = [&](const DimValues& dims, const ImportNotes& notes) {
    return ImportGraph({.onnx_model = bytes}, {.dim_bindings = dims,
                                               .short_repeats = true,
                                               .folded = notes.folded,
                                               .trace = notes.trace});
  };
  absl::StatusOr<DimValues> dims = LargestDims(options);
  RETURN_IF_ERROR(dims.status());
  ASSIGN_OR_RETURN(Graph graph, import(*dims, {}));
  ASSIGN_OR_RETURN(CanonicalGraph largest, Canonicalise(graph));
  std::string key;
  return ImportFamily(options, import, nullptr, &largest, &key).status();
}

TEST(ImportFamily, SumsAndProductsOfLengthsAreRightEverywhere) {
  TestModel m = WithLength();
  Number(m, "three", 3).Node("Mul", {"n", "three"}, {"a"}).Node("Add", {"a", "n"}, {"b"});
  EXPECT_TRUE(Check(Scale(m, "b"), 1, 300).ok());
}

struct Decided {
  std::string op;
  int64_t limit;
  int64_t least;
  int64_t most;
  bool right;
};

// One value of a hundred decides something else: no sample is likely to meet it.
TEST(ImportFamily, WhatALengthDecidesIsProvenOrRefused) {
  for (const Decided& d : std::vector<Decided>{{"Min", 5, 1, 16, false},
                                               {"Min", 5, 5, 16, true},
                                               {"Min", 400, 1, 300, true},
                                               {"Min", 299, 1, 300, false},
                                               {"Max", 5, 1, 300, false},
                                               {"Max", 1, 1, 300, true},
                                               {"Mod", 7, 1, 300, false},
                                               {"Mod", 1, 1, 300, true},
                                               {"Div", 2, 1, 300, false}}) {
    TestModel m = WithLength();
    Number(m, "limit", d.limit).Node(d.op, {"n", "limit"}, {"c"}, "decides");
    const absl::Status status = Check(Scale(m, "c"), d.least, d.most);
    EXPECT_EQ(status.ok(), d.right) << d.op << " " << d.limit << ": " << status;
    if (d.right) continue;
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("\"decides\""), HasSubstr("dim S decides"),
                                       HasSubstr("--bind S=VALUE")));
  }
}

TEST(ImportFamily, OneLengthThatIsEqualIsFoundHoweverLongTheRange) {
  for (int64_t equal : {7, 137, 4099, 99991}) {
    TestModel m = WithLength();
    Number(m, "equal", equal).Node("Equal", {"n", "equal"}, {"is"}, "asks");
    m.Node("Where", {"is", "equal", "n"}, {"c"}, "chooses");
    const absl::Status always = Check(Scale(m, "c"), 1, 100000);
    // Where(n == k, k, n) is n: nothing is wrong, and nothing proves it.
    EXPECT_THAT(Message(always),
                AllOf(HasSubstr("node \"asks\" (Equal)"), HasSubstr("S=1..100000")));
    TestModel other = WithLength();
    Number(other, "equal", equal).Node("Equal", {"n", "equal"}, {"is"}, "asks");
    other.Node("Where", {"is", "equal", "n"}, {"c"}, "chooses");
    EXPECT_TRUE(Check(Scale(other, "c"), equal + 1, equal + 1000).ok()) << "it is never equal";
  }
}

TEST(ImportFamily, FewLengthsAreAllTried) {
  TestModel m = WithLength();
  Number(m, "equal", 7).Node("Equal", {"n", "equal"}, {"is"}, "asks");
  m.Node("Where", {"is", "equal", "n"}, {"c"}, "chooses");
  EXPECT_TRUE(Check(Scale(m, "c"), 1, 12).ok()) << "of twelve values each is right";
}

// Random inputs lie below both.
TEST(ImportFamily, AThresholdThatALengthDecidesIsSeenThoughNoValueReachesIt) {
  TestModel m = WithLength();
  Number(m, "one", 1);
  Number(m, "few", 10);
  Number(m, "many", 1000);
  m.Node("Equal", {"n", "one"}, {"is"}, "asks");
  m.Node("Where", {"is", "many", "few"}, {"c"}, "chooses");
  m.Node("Cast", {"c"}, {"most"}).Attr("to", 1);
  m.Node("Min", {"x", "most"}, {"y"}, "clips").Output("y");
  const absl::Status status = Check(m, 1, 64);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("\"asks\""), HasSubstr("--bind S=")));
}

TEST(ImportFamily, SlicesAreCutShortWhereRowsEnd) {
  for (int64_t least : {4, 5, 6}) {
    TestModel m;
    m.Input("x", {"S", 4}).Ints("from", {0}).Ints("to", {5}).Ints("axes", {0});
    m.Node("Slice", {"x", "from", "to", "axes"}, {"y"}, "head").Output("y");
    const absl::Status status = Check(m, least, 90);
    EXPECT_EQ(status.ok(), least >= 5) << status;
    EXPECT_EQ(Message(status).find("node \"head\" (Slice)") == 0, least < 5) << status;
  }
}

TEST(ImportFamily, AModelThatIsInvalidAtAnEndIsRefusedWithTheValue) {
  TestModel m;
  m.Input("x", {"S", 4}).Ints("k", {3});
  m.Node("TopK", {"x", "k"}, {"y", "i"}, "top").Attr("axis", 0).Output("y");
  const absl::Status status = Check(m, 2, 40);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("S=2"), HasSubstr("\"top\"")));
  EXPECT_TRUE(Check(m, 3, 40).ok()) << Check(m, 3, 40);
}

// -x is |x| of half of all numbers, and floor(x) is round(x): one draw tells nothing.
TEST(ImportFamily, AlternativesThatOftenAgreeAreToldApart) {
  for (const auto& [then_op, else_op] : std::vector<std::pair<std::string, std::string>>{
           {"Neg", "Abs"}, {"Floor", "Round"}, {"Ceil", "Round"}, {"Relu", "Identity"}}) {
    TestModel m;
    m.Input("x", {1, "S"}).Node("Shape", {"x"}, {"shape"}).Ints("one", {1});
    m.Node("Gather", {"shape", "one"}, {"n"}).Node("Equal", {"n", "one"}, {"is"}, "asks");
    m.Node(then_op, {"x"}, {"a"}).Node(else_op, {"x"}, {"b"});
    m.Node("Where", {"is", "a", "b"}, {"y"}, "chooses").Output("y");
    const absl::Status status = Check(m, 1, 64);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << then_op << " or " << else_op;
  }
}

}  // namespace
}  // namespace fusion
