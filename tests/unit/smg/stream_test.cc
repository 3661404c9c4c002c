// What the temporal slicer derives. That what it derives is right is shown where it is lowered
// (unit/schedule) and compiled (conformance).
#include "core/smg/stream.h"

#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/graph/program/half_precision.h"
#include "core/smg/smg.h"
#include "tests/support/dims.h"
#include "tests/support/disguise.h"
#include "tests/support/stream_cases.h"

namespace fusion {
namespace {

struct Built {
  Program program;
  Smg smg;
  DimId dim = -1;
};

Graph GraphOf(const StreamCase& c) {
  auto graph = ParseGraph(c.graph);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return *std::move(graph);
}

Built Build(const StreamCase& c, const Graph& graph) {
  Built out;
  out.program = BuildProgram(graph).value();
  std::vector<bool> outside(out.program.values.size(), false);
  for (ValueId v : out.program.outputs) outside[static_cast<size_t>(v)] = true;
  const std::vector<LoopId> all = KeepWide(outside, &out.program);
  out.smg = BuildSmg(out.program, all).value();
  out.dim = DimOf(out.smg, c.extent);
  return out;
}

std::string Describe(const Streamed& streamed) {
  return StrCat("kind ", streamed.kind, "; ", streamed.refusal.ToString(), "\n",
                StrJoin(streamed.certificate, "\n"), "\n", ToString(streamed.smg));
}

std::string_view KindName(Streamed::Kind kind) {
  constexpr std::string_view kNames[] = {"refused", "streams", "simple aggregate",
                                         "update then aggregate"};
  return kNames[kind];
}

// One line for tables: what was derived, or why not.
std::string Summary(const Streamed& s) {
  if (s.kind == Streamed::kRefused) return StrCat("refused: ", RefusalRow(s.refusal.code).word);
  std::string apart =
      s.apart.empty() ? "" : StrCat("; dims apart: ", RefusalRow(s.apart.code).word);
  return StrCat(KindName(s.kind), "; certificate of ", s.certificate.size(), " lines, ",
                s.needed.size(), " borders of tiles", apart);
}

class Streams : public ::testing::TestWithParam<StreamCase> {};

TEST_P(Streams, AsDerived) {
  const StreamCase& c = GetParam();
  Built b = Build(c, GraphOf(c));
  Streamed streamed = StreamAlong(b.smg, b.program.outputs, b.dim);
  RecordProperty("derived", Summary(streamed));
  EXPECT_EQ(streamed.kind, c.kind) << Describe(streamed);
  const Refusal& refusal = c.kind == Streamed::kRefused ? streamed.refusal : streamed.apart;
  EXPECT_EQ(refusal.empty() ? "" : RefusalRow(refusal.code).word, c.refusal) << refusal.words;
  if (c.kind == Streamed::kRefused) return;
  EXPECT_EQ(streamed.needed.size(), c.needed) << Describe(streamed);
  EXPECT_EQ(streamed.underflow.needed.size(), c.underflow) << Describe(streamed);
  // An equal form: outputs are written, ops come behind what they read.
  for (size_t i = 0; i < streamed.smg.ops.size(); ++i) {
    for (const SmgRead& read : streamed.smg.ops[i].reads) {
      EXPECT_LT(read.producer, static_cast<int>(i)) << Describe(streamed);
    }
  }
  for (ValueId v : b.program.outputs) {
    EXPECT_TRUE(std::any_of(streamed.smg.ops.begin(), streamed.smg.ops.end(),
                            [&](const SmgOp& op) { return op.output == v; }));
  }
  EXPECT_EQ(streamed.rewritten, !streamed.certificate.empty()) << Describe(streamed);
}

INSTANTIATE_TEST_SUITE_P(Cases, Streams, ::testing::ValuesIn(kStreamCases),
                         [](const auto& param) { return std::string(param.param.name); });

class DisguisedStreams : public ::testing::TestWithParam<std::tuple<StreamCase, Disguise>> {};

// However a function is written, and with whatever besides it, the same is derived.
TEST_P(DisguisedStreams, AreSeenThrough) {
  const auto& [c, disguise] = GetParam();
  Built plain = Build(c, GraphOf(c));
  Built b = Build(c, Disguised(GraphOf(c), disguise, c.extent));
  auto code = [](const Streamed& s) -> std::string_view {
    const Refusal& why = s.kind == Streamed::kRefused ? s.refusal : s.apart;
    return why.empty() ? "" : RefusalRow(why.code).word;
  };
  Streamed expected = StreamAlong(plain.smg, plain.program.outputs, plain.dim);
  // What streamed freely has something to add up.
  bool adds = disguise == Disguise::kExtraReduction && expected.kind == Streamed::kStream;
  Streamed::Kind kind = adds ? Streamed::kSimpleAggregate : expected.kind;
  std::string_view refusal = RefusalOf(c, disguise);
  std::string seen;
  bool found = false;
  for (size_t d = 0; d < b.smg.dims.size() && !found; ++d) {
    if (b.smg.dims[d].extent != c.extent) continue;
    Streamed streamed = StreamAlong(b.smg, b.program.outputs, static_cast<DimId>(d));
    seen += StrCat("\n", Describe(streamed));
    // What is returned besides is needed of tiles that a mask hides, too.
    bool all = disguise == Disguise::kExtraReduction && streamed.needed.empty() &&
               streamed.underflow.needed.empty();
    bool tiles = streamed.needed.size() == expected.needed.size() &&
                 streamed.underflow.needed.size() == expected.underflow.needed.size();
    // A disguise that takes the form away that reads the input once leaves one that reads it twice,
    // or none.
    bool other = c.kind != Streamed::kRefused && refusal != c.refusal;
    bool same = streamed.kind == kind && (all || tiles);
    found = (other || same) && code(streamed) == refusal;
  }
  EXPECT_TRUE(found) << "expected " << Describe(expected) << "\ngot" << seen;
}

INSTANTIATE_TEST_SUITE_P(Cases, DisguisedStreams,
                         ::testing::Combine(::testing::ValuesIn(kStreamCases),
                                            ::testing::ValuesIn(kDisguises)),
                         [](const auto& param) {
                           return StrCat(std::get<0>(param.param).name, "_",
                                         Name(std::get<1>(param.param)));
                         });

// Two maxima that differ in their last digits are two: what follows one is wrong for the other.
TEST(Streams, TellNearlyEqualApart) {
  struct Case {
    const char* type;
    const char* factor;
    bool one_pass;
  };
  for (const Case& c : {Case{"f32", "1", true}, Case{"f32", "1.000004", false},
                        Case{"f32", "0x1.000002p0", false}, Case{"f64", "1", true},
                        Case{"f64", "1.0000004", false}, Case{"f64", "1.000000000001", false}}) {
    SCOPED_TRACE(StrCat(c.type, " ", c.factor));
    std::string text = R"(graph "g" {
  %0 = input "x" : TYPE[10,12]
  %1 = input "mask" : bool[10,12]
  %2 = const "" : TYPE[] {FACTOR}
  %3 = ReduceMax(%0) {axes=[1], keepdims=1} : TYPE[10,1]  "" @ ""
  %4 = Mul(%3, %2) : TYPE[10,1]  "" @ ""
  %5 = Sub(%0, %3) : TYPE[10,12]  "" @ ""
  %6 = Sub(%0, %4) : TYPE[10,12]  "" @ ""
  %7 = Where(%1, %5, %6) : TYPE[10,12]  "" @ ""
  %8 = Exp(%7) : TYPE[10,12]  "" @ ""
  %9 = ReduceSum(%8) {axes=[1], keepdims=1} : TYPE[10,1]  "" @ ""
  output %9
}
)";
    for (auto [from, to] : {std::pair("TYPE", c.type), std::pair("FACTOR", c.factor)}) {
      for (size_t at = 0; (at = text.find(from)) != std::string::npos;) {
        text.replace(at, std::string_view(from).size(), to);
      }
    }
    StreamCase described{
        .name = "", .extent = 12, .kind = {}, .refusal = "", .graph = text.c_str()};
    Built b = Build(described, GraphOf(described));
    Streamed streamed = StreamAlong(b.smg, b.program.outputs, b.dim);
    EXPECT_EQ(streamed.kind == Streamed::kUpdateThenAggregate, c.one_pass) << Describe(streamed);
    EXPECT_EQ(streamed.apart.empty(), c.one_pass) << Describe(streamed);
  }
}

// A mean of more halves than a half can count.
TEST(Streams, CountInMoreThanHalves) {
  StreamCase c{.name = "", .extent = 70000, .kind = {}, .refusal = "", .graph = R"(graph "g" {
  %0 = input "x" : f16[3,70000]
  %1 = ReduceMean(%0) {axes=[1], keepdims=1} : f16[3,1]  "" @ ""
  %2 = Sub(%0, %1) : f16[3,70000]  "" @ ""
  %3 = Mul(%2, %2) : f16[3,70000]  "" @ ""
  %4 = ReduceMean(%3) {axes=[1], keepdims=1} : f16[3,1]  "" @ ""
  output %4
}
)"};
  Built b = Build(c, GraphOf(c));
  Streamed streamed = StreamAlong(b.smg, b.program.outputs, b.dim);
  ASSERT_EQ(streamed.kind, Streamed::kUpdateThenAggregate) << Describe(streamed);
  int counting = 0;
  for (const SmgOp& op : streamed.smg.ops) {
    if (op.label != "Count" && op.label != "Share" && op.label != "First") continue;
    ++counting;
    EXPECT_EQ(op.value.type(), DType::kF32) << Describe(streamed);
    EXPECT_EQ(op.value.ToString().find("inf"), std::string::npos) << Describe(streamed);
  }
  EXPECT_EQ(counting, 4);
}

// Each law is needed: without it some case comes out otherwise.
TEST(Streams, NoLawIsIdle) {
  for (int r = 0; r < kAlgebraRuleCount; ++r) {
    AlgebraRules rules = AlgebraRules().Without(static_cast<AlgebraRule>(r));
    bool differs = false;
    for (const StreamCase& c : kStreamCases) {
      Built b = Build(c, GraphOf(c));
      Streamed with = StreamAlong(b.smg, b.program.outputs, b.dim);
      Streamed without = StreamAlong(b.smg, b.program.outputs, b.dim, rules);
      differs = differs || with.kind != without.kind ||
                with.refusal.words != without.refusal.words ||
                with.certificate != without.certificate;
    }
    EXPECT_TRUE(differs) << "law " << r;
  }
}

}  // namespace
}  // namespace fusion
