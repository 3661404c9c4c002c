// fusionctl --range: plans that leave dims open.
#include "core/base/files/file.h"
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class FusionctlFamilyTest : public FusionctlTest {
 protected:
  std::string WriteOpen(std::string_view name) {
    ModelParams params = FindModel(name)->defaults;
    params.dynamic = true;
    return Write(name, params);
  }
  static std::vector<std::string> Ranges() {
    return {"--range", "batch=1..4", "--range", "seq=1..300@64"};
  }
  static std::vector<std::string> With(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(FusionctlFamilyTest, VerifyRunsOnePlanAtAnyOfItsShapes) {
  const std::string model = WriteOpen("bert_tiny");
  std::set<std::string> keys;
  for (const char* seq : {"1", "37", "300"}) {
    Json report = CtlJson(With(With({"verify", model}, Ranges()),
                               {"--bind", "batch=3", "--bind", StrCat("seq=", seq)}));
    EXPECT_TRUE(report["pass"]) << report;
    keys.insert(report["plan_key"].get<std::string>());
  }
  EXPECT_EQ(keys.size(), 1) << "the value at which it runs is no part of the plan";
}

TEST_F(FusionctlFamilyTest, PlanSaysWhatIsOpenAndWhatThatCosts) {
  const std::string model = WriteOpen("bert_tiny");
  Json plan = CtlJson(With({"plan", model, "--plan-only"}, Ranges()));
  ASSERT_EQ(plan["symbols"].size(), 2);
  EXPECT_EQ(plan["symbols"][1]["name"], "seq");
  EXPECT_EQ(plan["symbols"][1]["max"], 300);
  EXPECT_EQ(plan["symbols"][1]["likely"], 64);
  ASSERT_FALSE(plan["samples"].empty());
  for (const Json& sample : plan["samples"]) EXPECT_GT(sample["exact_us"], 0);
  ProgramResult text = Ctl(With({"plan", model, "--plan-only"}, Ranges()));
  EXPECT_THAT(text.out, HasSubstr("open:    batch 1..4, seq 1..300; figures are for the largest"));
  EXPECT_THAT(text.out, HasSubstr("loss:    against plans of these values alone, estimated: "));
}

TEST_F(FusionctlFamilyTest, StepsAreKept) {
  const std::string model = WriteOpen("bert_tiny");
  const std::vector<std::string> ranges = {"--range", "batch=1..4", "--range", "seq=8..256/8"};
  for (const char* seq : {"8", "64", "256"}) {
    Json report = CtlJson(With(With({"verify", model}, ranges),
                               {"--bind", "batch=2", "--bind", StrCat("seq=", seq)}));
    EXPECT_TRUE(report["pass"]) << report;
  }
  ProgramResult odd =
      Ctl(With(With({"verify", model}, ranges), {"--bind", "batch=2", "--bind", "seq=12"}));
  EXPECT_EQ(odd.code, 3);
  EXPECT_THAT(odd.err, HasSubstr("\"seq\" = 8..256 in multiples of 8"));
}

TEST_F(FusionctlFamilyTest, RangesThatFitNothingAreNamed) {
  TestModel m;
  m.Input("x", {"n", 8}).Node("Softmax", {"x"}, {"y"}).Output("y");
  const std::string model = Write(m.proto());
  auto ask = [&](const std::vector<std::string>& options) {
    return Ctl(With({"kernels", model}, options));
  };
  const ProgramResult unknown = ask({"--range", "q=1..5"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("--range name \"q\", which is no dim"));
  const ProgramResult twice = ask({"--range", "n=1..5", "--range", "n=1..6"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("dim \"n\" has two ranges"));
  const ProgramResult values = ask({"--bind", "n=5", "--bind", "n=6"});
  EXPECT_EQ(values.code, 2);
  EXPECT_THAT(values.err, HasSubstr("dim \"n\" is 5 and 6"));
  const ProgramResult outside = ask({"--range", "n=1..5", "--bind", "n=9"});
  EXPECT_EQ(outside.code, 3);
  EXPECT_THAT(outside.err, HasSubstr("--bind \"n\": 9; the plan is for \"n\" = 1..5"));
}

// Values beyond these cannot be compared with what the plan would compute: that takes no memory
// before it is known.
TEST_F(FusionctlFamilyTest, RangesOfVastTensorsAreRefusedWithTheDims) {
  TestModel m;
  m.Input("x", {"a", "b", "c", "d"}).Node("Sin", {"x"}, {"s"}).Ints("flat", {-1});
  m.Node("Reshape", {"s", "flat"}, {"y"}).Output("y");
  const std::string model = Write(m.proto());
  for (const char* most : {"256", "1024"}) {
    std::vector<std::string> words = {"kernels", model};
    for (const char* dim : {"a", "b", "c", "d"}) {
      words.emplace_back("--range");
      words.push_back(StrCat(dim, "=1..", most));
    }
    const ProgramResult refused = Ctl(words);
    EXPECT_EQ(refused.code, 3) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("--bind a=VALUE"));
  }
}

// A sum of weights that is as long as a sequence is made by every run, at the largest length too,
// where it is a sum of whole tables; what weights alone say is not.
TEST_F(FusionctlFamilyTest, ATableByPositionIsAsLongAsTheSequence) {
  TestModel m;
  auto table = [](Dims dims) {
    HostTensor t(DType::kF32, std::move(dims));
    for (int64_t i = 0; i < t.elements(); ++i) t.SetDouble(i, static_cast<double>(i % 37) / 8);
    return t;
  };
  m.Input("x", {"batch", "seq", 32}).Initializer("table", table({64, 32}));
  m.Initializer("kinds", table({2, 32})).Initializer("w", table({32, 32}));
  m.Ints("one", {1}).Ints("none", {0}).Ints("second", {2});
  m.Node("Shape", {"x"}, {"dims"}).Node("Slice", {"dims", "one", "second"}, {"seq"});
  m.Node("Slice", {"table", "none", "seq", "none"}, {"positions"});
  m.Node("Slice", {"kinds", "none", "one", "none"}, {"kind"});
  m.Node("Add", {"positions", "kind"}, {"both"}).Node("Add", {"w", "kind"}, {"weight"});
  m.Node("Add", {"x", "both"}, {"sum"}).Node("MatMul", {"sum", "weight"}, {"y"}).Output("y");
  const std::string model = Write(m.proto());
  for (const char* range : {"seq=1..64", "seq=1..50"}) {
    const std::vector<std::string> ranges = {"--range", "batch=1..3", "--range", range};
    for (const char* seq : {"1", "7", "50"}) {
      Json report = CtlJson(With(With({"verify", model}, ranges),
                                 {"--bind", "batch=2", "--bind", StrCat("seq=", seq)}));
      EXPECT_EQ(report["pass"], true) << report;
    }
  }
}

// A tensor is not written in the place of one that only has as many elements at the largest values.
TEST_F(FusionctlFamilyTest, PlacesAreThoseOfEqualShapes) {
  TestModel m;
  m.Input("x", {"rows", 8}).Input("past", {"past", 8});
  m.Node("Softmax", {"past"}, {"p"}).Attr("axis", 0).Node("Softmax", {"p"}, {"q"}).Attr("axis", 1);
  m.Node("Softmax", {"x"}, {"s"}).Attr("axis", 0).Node("Softmax", {"s"}, {"t"}).Attr("axis", 1);
  m.Node("Concat", {"q", "t"}, {"all"}).Attr("axis", 0);
  m.Node("Softmax", {"all"}, {"y"}).Attr("axis", 0).Output("y").Output("t");
  const std::string model = Write(m.proto());
  Json report = CtlJson({"verify", model, "--range", "rows=1..40", "--range", "past=0..40",
                         "--bind", "rows=3", "--bind", "past=17"});
  EXPECT_EQ(report["pass"], true) << report;
}

TEST_F(FusionctlFamilyTest, ARotaryModelRunsAtEveryLength) {
  const std::string model = WriteOpen("llama_small");
  for (const char* seq : {"1", "129"}) {
    Json report = CtlJson(With(With({"verify", model}, Ranges()),
                               {"--bind", "batch=2", "--bind", StrCat("seq=", seq)}));
    EXPECT_TRUE(report["pass"]) << report;
  }
}

TEST_F(FusionctlFamilyTest, ADecodeStepRunsAtEveryLengthOfItsCache) {
  const std::string model = WriteOpen("llama_small_decode");
  const std::vector<std::string> ranges = {"--range",  "batch=1..4", "--range",
                                           "seq=1..8", "--range",    "past=0..300"};
  const std::vector<std::pair<std::string, std::string>> steps = {
      {"1", "0"}, {"1", "300"}, {"5", "77"}};
  for (const auto& [seq, past] : steps) {
    Json report =
        CtlJson(With(With({"verify", model}, ranges),
                     {"--bind", "batch=2", "--bind", "seq=" + seq, "--bind", "past=" + past}));
    EXPECT_TRUE(report["pass"]) << report;
  }
}

TEST_F(FusionctlFamilyTest, ALockGivesThePlanAgain) {
  const std::string model = WriteOpen("bert_tiny");
  const std::string lock = dir_.path("family.lock");
  Json plan = CtlJson(With(With({"plan", model, "--plan-only"}, Ranges()), {"--write-lock", lock}));
  Json report = CtlJson(With(With({"verify", model, "--lock", lock}, Ranges()),
                             {"--bind", "batch=2", "--bind", "seq=9"}));
  EXPECT_TRUE(report["pass"]) << report;
  Json again = CtlJson(With(With({"plan", model, "--plan-only"}, Ranges()), {"--lock", lock}));
  EXPECT_EQ(again["launches"], plan["launches"]);
}

// Batches of 1..8 and up to 512 positions, for which a few rows are other work than many.
const std::vector<std::string> kWide = {"--range", "batch=1..8", "--range", "seq=1..512"};

TEST_F(FusionctlFamilyTest, FewElementsHaveAVariant) {
  const std::string model = WriteOpen("llama_small");
  const std::vector<std::string> words =
      With({"plan", model, "--plan-only", "--target", "generic-avx512"}, kWide);
  Json plan = CtlJson(words);
  ASSERT_EQ(plan["variants"].size(), 1);
  const Json& variant = plan["variants"][0];
  EXPECT_EQ(variant["measure"], "batch*seq");
  EXPECT_GE(variant["most"], 4);
  EXPECT_LE(variant["most"], 16);
  EXPECT_EQ(variant["symbols"][1]["max"], 32);
  EXPECT_LT(variant["arena_bytes"], plan["arena_bytes"]);
  std::set<std::string> keys;
  for (const Json& kernel : plan["kernels"]) keys.insert(kernel["key"]);
  for (const Json& group : variant["groups"]) EXPECT_TRUE(keys.contains(group["kernel"]));
  EXPECT_THAT(Ctl(words).out,
              HasSubstr(StrCat("variant: where batch*seq <= ", variant["most"].get<int>(),
                               ", other groups and cuts: ")));
  Json pressed = CtlJson(With(words, {"--memory-pressure", "0.9"}));
  EXPECT_TRUE(pressed["variants"].empty()) << "its packed weights are memory";
}

TEST_F(FusionctlFamilyTest, AVariantRunsWhereItIsForTheValues) {
  const std::string model = WriteOpen("llama_small");
  Json plan = CtlJson(With({"plan", model}, kWide));
  ASSERT_EQ(plan["variants"].size(), 1) << "on this machine there is none";
  const Json& variant = plan["variants"][0];
  for (const auto& [batch, seq] : {std::pair{1, 1}, std::pair{2, 2}, std::pair{3, 40}}) {
    const std::vector<std::string> at = {"--bind", StrCat("batch=", batch), "--bind",
                                         StrCat("seq=", seq)};
    Json report = CtlJson(With(With({"verify", model}, kWide), at));
    EXPECT_TRUE(report["pass"]) << report;
    Json run = CtlJson(With(With({"run", model, "--kernels"}, kWide), at));
    const bool few = batch * seq <= variant["most"].get<int>();
    EXPECT_EQ(run["variant"], few ? Json(0) : Json());
    EXPECT_EQ(run["totals"], few ? variant["totals"] : plan["totals"]);
    int64_t launches = 0;
    for (const Json& kernel : run["kernels"]) launches += kernel["launches"].get<int64_t>();
    EXPECT_EQ(launches, run["totals"]["launches"]);
    ProgramResult text = Ctl(With(With({"run", model}, kWide), at));
    EXPECT_THAT(text.out, few ? HasSubstr(", the plan's variant\n") : HasSubstr("random inputs\n"));
  }
}

TEST_F(FusionctlFamilyTest, ALockHoldsTheVariant) {
  const std::string model = WriteOpen("llama_small");
  const std::string lock = dir_.path("variant.lock");
  const std::vector<std::string> words =
      With({"plan", model, "--plan-only", "--target", "generic-avx512"}, kWide);
  Json plan = CtlJson(With(words, {"--write-lock", lock}));
  Json again = CtlJson(With(words, {"--lock", lock}));
  EXPECT_EQ(again["variants"], plan["variants"]);
  auto key = [](const Json& kernel) { return kernel["key"]; };
  ASSERT_EQ(again["kernels"].size(), plan["kernels"].size());
  for (size_t k = 0; k < plan["kernels"].size(); ++k) {
    EXPECT_EQ(key(again["kernels"][k]), key(plan["kernels"][k]));
  }
  // Up to where it runs may be edited, and what then no longer holds be left out.
  std::string text = ReadFile(lock, 1 << 20).value();
  const std::string edited_lock = dir_.path("edited.lock");
  const std::string most = StrCat("most: ", plan["variants"][0]["most"].get<int>());
  ASSERT_NE(text.find(most), std::string::npos);
  text.replace(text.find(most), most.size(), "most: 3");
  ASSERT_TRUE(WriteFile(edited_lock, text, FileRights::kUmask).ok());
  EXPECT_THAT(Ctl(With(words, {"--lock", edited_lock})).err,
              HasSubstr(StrCat("--lock ", Quote(edited_lock), ": plan_sha256: the plan is ")));
  const size_t digest = text.find("plan_sha256");
  text.erase(digest, text.find('\n', digest) - digest);
  ASSERT_TRUE(WriteFile(edited_lock, text, FileRights::kUmask).ok());
  Json edited = CtlJson(With(words, {"--lock", edited_lock}));
  EXPECT_EQ(edited["variants"][0]["most"], 3);
  // The same graph without open dims.
  ProgramResult bound = Ctl({"plan", model, "--plan-only", "--target", "generic-avx512", "--bind",
                             "batch=8", "--bind", "seq=512", "--lock", lock});
  EXPECT_EQ(bound.code, 3);
  EXPECT_THAT(bound.err,
              HasSubstr("lock\": variants: 1; a plan that leaves no dims open has none"));
}

TEST_F(FusionctlFamilyTest, AReproHasTheKernelsOfTheVariant) {
  const std::string model = WriteOpen("llama_small");
  const std::string archive = dir_.path("variant.tar");
  Json made = CtlJson(With({"repro", model, "--out", archive}, kWide));
  Json plan = CtlJson(With({"plan", model}, kWide));
  std::set<std::string> keys;
  for (const Json& kernel : plan["kernels"]) keys.insert(kernel["key"]);
  for (const Json& group : plan["variants"].at(0)["groups"]) {
    EXPECT_TRUE(keys.contains(group["kernel"])) << group;
  }
  EXPECT_EQ(made["kernels"], keys.size());
  Json replayed = CtlJson({"repro", "--replay", archive});
  EXPECT_TRUE(replayed["pass"]) << replayed;
  ASSERT_FALSE(replayed["kernels"].empty());
  for (const Json& kernel : replayed["kernels"]) EXPECT_TRUE(kernel["verified"]) << kernel;
}

// Equal kernels are compiled once: the texts of some are then of the ranges that another plan has.
TEST_F(FusionctlFamilyTest, AReproHasKernelsThatOtherRangesAskedForFirst) {
  const std::string model = WriteOpen("llama_small");
  CtlJson({"plan", model, "--range", "batch=1..4", "--range", "seq=1..24"});
  const std::string archive = dir_.path("ranges.tar");
  CtlJson(With({"repro", model, "--out", archive}, kWide));
  Json replayed = CtlJson({"repro", "--replay", archive});
  EXPECT_TRUE(replayed["pass"]) << replayed;
  ASSERT_FALSE(replayed["kernels"].empty());
  for (const Json& kernel : replayed["kernels"]) EXPECT_TRUE(kernel["verified"]) << kernel;
}

TEST_F(FusionctlFamilyTest, BenchCountsWhatRan) {
  const std::string model = WriteOpen("llama_small");
  Json plan = CtlJson(With({"plan", model}, kWide));
  ASSERT_EQ(plan["variants"].size(), 1);
  const std::vector<std::string> words =
      With(With({"bench", model, "--seconds", "0.05"}, kWide), {"--bind", "batch=1"});
  Json few = CtlJson(With(words, {"--bind", "seq=2"}));
  EXPECT_EQ(few["fused"]["variant"], 0);
  EXPECT_EQ(few["fused"]["totals"], plan["variants"][0]["totals"]);
  EXPECT_GE(few["fused"]["memory"]["prepared_bytes"], plan["prepared_bytes"]);
  Json many = CtlJson(With(words, {"--bind", "seq=99"}));
  EXPECT_EQ(many["fused"]["variant"], Json());
  EXPECT_EQ(many["fused"]["totals"], plan["totals"]);
  EXPECT_THAT(Ctl(With(words, {"--bind", "seq=2"})).out, HasSubstr(", the plan's variant\n"));
}

TEST_F(FusionctlFamilyTest, PlansThatDifferInVariantsAreNotIdentical) {
  const std::string model = WriteOpen("llama_small");
  const std::vector<std::string> words =
      With({"plan", model, "--plan-only", "--target", "generic-avx512"}, kWide);
  Json plan = CtlJson(words);
  Json pressed = CtlJson(With(words, {"--memory-pressure", "0.9"}));
  auto diff = [&](const Json& first, const Json& second) {
    return CtlJson({"diff", first["plan_key"], second["plan_key"]});
  };
  EXPECT_TRUE(diff(plan, plan)["identical"]);
  Json other = diff(plan, pressed);
  EXPECT_FALSE(other["identical"]);
  EXPECT_TRUE(other["other_variants"]);
  EXPECT_EQ(other["first"]["variants"].size(), 1);
  ProgramResult text = Ctl({"diff", plan["plan_key"], pressed["plan_key"]});
  EXPECT_THAT(text.out, HasSubstr("first:  variant: where "));
  EXPECT_THAT(text.out, HasSubstr("second: no variant\n"));
}

TEST_F(FusionctlFamilyTest, LatenciesAreMeasuredButNotReported) {
  Json bench = CtlJson(With(With({"bench", WriteOpen("bert_tiny"), "--seconds", "0.05"}, Ranges()),
                            {"--bind", "batch=2", "--bind", "seq=9"}));
  EXPECT_THAT(bench.dump(), HasSubstr("leaves dims open"));
}

// A pool takes even widths apart into its windows, and leaves a column of odd ones alone.
TEST_F(FusionctlFamilyTest, WindowsThatDivideEvenlyAtSomeValuesAskForMultiples) {
  TestModel m;
  HostTensor weight(DType::kF32, {4, 4, 3, 3});
  for (int64_t i = 0; i < weight.elements(); ++i)
    weight.SetDouble(i, 0.01 * static_cast<double>(i % 29));
  m.Input("x", {1, 4, 8, "w"}).Initializer("weight", weight);
  m.Node("Conv", {"x", "weight"}, {"c"}).Attr("pads", std::vector<int64_t>{1, 1, 1, 1});
  m.Node("Relu", {"c"}, {"r"}).Node("MaxPool", {"r"}, {"y"});
  m.Attr("kernel_shape", std::vector<int64_t>{2, 2}).Attr("strides", std::vector<int64_t>{2, 2});
  const std::string model = Write(m.Output("y").proto());
  ProgramResult any = Ctl({"plan", model, "--range", "w=20..80"});
  EXPECT_EQ(any.code, 3);
  EXPECT_THAT(any.err, HasSubstr("node \"y\": no one form of it holds for all of w=20..80"));
  EXPECT_THAT(any.err, HasSubstr("--range w=MIN..MAX/2"));
  for (const char* w : {"20", "46", "80"}) {
    Json report = CtlJson({"verify", model, "--range", "w=20..80/2", "--bind", StrCat("w=", w)});
    EXPECT_EQ(report["pass"], true) << report;
  }
}

TEST_F(FusionctlFamilyTest, BadRangesAreSaidInOneLine) {
  const std::string model = WriteOpen("bert_tiny");
  ProgramResult form = Ctl({"plan", model, "--range", "seq=1-8"});
  EXPECT_EQ(form.code, 2);
  EXPECT_THAT(form.err, HasSubstr("expected NAME=MIN..MAX[/STEP][@LIKELY], got \"seq=1-8\""));
  ProgramResult empty = Ctl({"plan", model, "--range", "seq=9..8"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("values 9..8"));
  ProgramResult one = Ctl({"plan", model, "--range", "seq=8..8", "--bind", "batch=1"});
  EXPECT_EQ(one.code, 0) << "one value leaves nothing open: " << one.err;
  ProgramResult none = Ctl({"plan", model, "--range", "seq=0..1", "--bind", "batch=1"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("--range \"seq\": 0..1; expected a largest value"));
  ProgramResult unknown = Ctl({"plan", model, "--range", "sequence=1..8"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("\"sequence\""));
}

}  // namespace
}  // namespace fusion
