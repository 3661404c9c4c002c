// Registered kernels as an operator uses them: fusiond --kernels, seen through fusionctl.
#include "core/base/files/file.h"
#include "tests/models/onnx_builder.h"
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// y = Relu(x w + b), a task for each row.
constexpr char kLinear[] = R"(
int FUSION_KERNEL(const FusionKernelArgs* args, int phase, FusionInt64 begin, FusionInt64 end,
                  int worker) {
  const float* x = (const float*)args->tensors[0].data;
  const float* w = (const float*)args->tensors[1].data;
  const float* b = (const float*)args->tensors[2].data;
  float* y = (float*)args->tensors[3].data;
  (void)worker;
  if (phase != 0) return FUSION_KERNEL_BAD_PHASE;
  BEFORE
  for (FusionInt64 m = begin; m < end; ++m) {
    for (FusionInt64 n = 0; n < COLS; ++n) {
      float sum = b[n];
      for (FusionInt64 k = 0; k < INNER; ++k) {
        sum += x[m * args->tensors[0].strides[0] + k] * w[k * COLS + n];
      }
      y[m * COLS + n] = RESULT;
    }
  }
  return FUSION_KERNEL_OK;
}
static FusionInt64 tasks(int phase, const FusionInt64* dims) { return ROWS; }
const FusionKernelDescriptor FUSION_KERNEL_DESCRIPTOR = {
    sizeof(FusionKernelDescriptor), FUSION_KERNEL_ABI_VERSION, FUSION_KERNEL_ISA, 4, 0, PHASES,
    tasks, SCRATCH, 0, 64};
)";

constexpr char kRegistration[] = R"text(# of a test
kernels {
  name: "linear"
  pattern {
    nodes { id: "mm" ops: "MatMul" }
    nodes { id: "add" ops: "Add" }
    nodes { id: "act" ops: "Relu" }
    edges { from: "mm" to: "add" }
    edges { from: "add" to: "act" }
  }
  when: "dtype(mm.input0) == f32"
  when: "rank(mm.input0) == 2"
  source: "linear.c"
  params: ["mm.input0", "mm.input1", "add.input1", "act.output"]
  integers { name: "ROWS" value: "dim(mm.input0, 0)" }
  integers { name: "INNER" value: "dim(mm.input0, 1)" }
  integers { name: "COLS" value: "dim(mm.input1, 1)" }
  MORE
}
)text";

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class RegisteredTest : public FusionctlTest {
 protected:
  // Relu(x w + b), once for each module.
  std::string Model(int64_t rows = 6, int64_t cols = 40,
                    const std::vector<const char*>& modules = {"one", "two"}) {
    OnnxBuilder b("two_linears", /*seed=*/3);
    std::string x = b.Input("x", DType::kF32, {{rows}, {cols}});
    for (const char* module : modules) {
      auto scope = b.Enter(module);
      x = b.Op("MatMul", {x, b.Weight("weight", {cols, cols})});
      x = b.Op("Add", {x, b.Weight("bias", {cols}, 0.5f)});
      x = b.Op("Relu", {x});
    }
    b.Output(x, DType::kF32, {{rows}, {cols}});
    std::string path = dir_.path(StrCat("model", counter_++, ".onnx"));
    FUSION_CHECK(SaveModel(std::move(b).Finish(), path).ok(), "a file of a test");
    return path;
  }

  struct Linear {
    std::string before;  // the loops
    std::string result = "sum > 0 ? sum : (sum != sum ? sum : 0.0f)";
    std::string phases = "1";          // of the descriptor
    std::string scratch = "0";         // likewise
    std::string more = "force: true";  // of the registration
    std::string registration = kRegistration;
  };

  // The same within a Scan, whose rows it adds.
  std::string ScanModel() {
    TestModel body;
    body.Input("h", {6, 40}).Input("row", {6, 40}).Node("MatMul", {"h", "w"}, {"p"}, "mm");
    body.Node("Add", {"p", "b"}, {"q"}, "add").Node("Relu", {"q"}, {"r"}, "act");
    body.Node("Sub", {"r", "row"}, {"s"}, "sub").Node("Tanh", {"s"}, {"next"}, "tanh");
    body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
    HostTensor w(DType::kF32, {40, 40});
    for (int64_t i = 0; i < w.elements(); ++i) w.SetDouble(i, 0.02 * static_cast<double>(i % 7));
    HostTensor b(DType::kF32, {40});
    TestModel m;
    m.Initializer("w", w).Initializer("b", b).Input("h", {6, 40}).Input("x", {30, 6, 40});
    m.Node("Scan", {"h", "x"}, {"last", "all"}, "scan").AttrGraph("body", body);
    m.Attr("num_scan_inputs", 1).Output("last").Output("all");
    const std::string path = dir_.path(StrCat("model", counter_++, ".onnx"));
    FUSION_CHECK(SaveModel(m.proto(), path).ok(), "a file of a test");
    return path;
  }

  // The registration of a source, in a directory of its own.
  std::string Register(const Linear& linear) {
    std::string dir = dir_.path(StrCat("kernels", counter_++));
    FUSION_CHECK(MakeDirectories(dir).ok(), "a directory of a test");
    std::string source = Replace(kLinear, "BEFORE", linear.before);
    source = Replace(Replace(source, "RESULT", linear.result), "PHASES", linear.phases);
    source = Replace(source, "SCRATCH", linear.scratch);
    FUSION_CHECK(WriteFile(dir + "/linear.c", source).ok(), "a file of a test");
    std::string path = dir + "/linear.textproto";
    FUSION_CHECK(WriteFile(path, Replace(linear.registration, "MORE", linear.more)).ok(), "a file");
    return path;
  }

  void Serve(const std::string& kernels, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--kernels", kernels, "--workers", "1"});
    absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND, more);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    own_ = *std::move(daemon);
  }
  ProgramResult Ask(std::vector<std::string> words) {
    words.insert(words.end(), {"--server", own_->address()});
    return BareCtl(std::move(words));
  }
  Json AskJson(std::vector<std::string> words, int code = 0) {
    words.push_back("--json");
    ProgramResult result = Ask(std::move(words));
    EXPECT_EQ(result.code, code) << result.err << own_->output();
    return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  Json State() { return AskJson({"capabilities"})["registered_kernels"][0]; }

  // How many groups run it.
  static int Runs(const Json& plan, const std::string& name = "linear") {
    int groups = 0;
    for (const Json& group : plan["groups"]) groups += group["registered"] == name ? 1 : 0;
    return groups;
  }

  // What a kernel that fails leaves behind: generated code, the reason, the quarantine.
  void ExpectFallback(const std::string& model, const std::string& reason) {
    Json plan = AskJson({"plan", model});
    EXPECT_EQ(Runs(plan), 0);
    ASSERT_EQ(plan["fallbacks"].size(), 2) << "both places: " << plan["fallbacks"];
    for (const Json& fallback : plan["fallbacks"]) {
      EXPECT_EQ(fallback["registered"], "linear");
      EXPECT_THAT(fallback["reason"].get<std::string>(),
                  AllOf(HasSubstr("registered kernel \"linear\" is quarantined"),
                        testing::ContainsRegex(reason)));
    }
    EXPECT_TRUE(AskJson({"verify", model})["pass"]);
    EXPECT_EQ(State()["state"], "quarantined");
    EXPECT_THAT(State()["reason"].get<std::string>(), testing::ContainsRegex(reason));
    EXPECT_THAT(own_->output(),
                AllOf(HasSubstr("registered_kernel_quarantined"), HasSubstr("linear.c")));
    EXPECT_THAT(HttpGet(own_->admin_address(), "/metrics").body,
                HasSubstr("fusion_registered_kernels{state=\"quarantined\"} 1"));
    ProgramResult text = Ask({"capabilities"});
    EXPECT_THAT(text.out, AllOf(HasSubstr("registered kernel"), HasSubstr("quarantined")));
    // A graph of other shapes is not tried at all.
    Json other = AskJson({"plan", Model(3, 24), "--plan-only"});
    EXPECT_EQ(Runs(other), 0);
    EXPECT_EQ(other["fallbacks"].size(), 2);
  }

  std::unique_ptr<TestDaemon> own_;
};

TEST_F(RegisteredTest, AKernelRunsWhereItsPatternIsAndIsRight) {
  Serve(Register({}));
  EXPECT_EQ(State()["state"], "unused");
  std::string model = Model();
  Json plan = AskJson({"plan", model});
  EXPECT_EQ(Runs(plan), 2);
  EXPECT_TRUE(plan["fallbacks"].empty());
  EXPECT_EQ(plan["totals"]["launches"], 2);
  Json verified = AskJson({"verify", model});
  EXPECT_TRUE(verified["pass"]);
  EXPECT_EQ(verified["fallbacks"], 0);
  for (const Json& kernel : plan["kernels"]) EXPECT_TRUE(kernel["verified"]) << kernel;
  EXPECT_EQ(State()["state"], "ready");
  EXPECT_EQ(State()["pattern"], "MatMul > Add; Add > Relu");

  // Every text says it.
  EXPECT_THAT(Ask({"plan", model}).out, HasSubstr("registered \"linear\": "));
  EXPECT_THAT(Ask({"show", model, "plan"}).out, HasSubstr("registered kernel \"linear\""));
  EXPECT_THAT(Ask({"show", model, "source"}).out, HasSubstr("y[m * COLS + n] ="));
  EXPECT_THAT(Ask({"explain", model}).out, HasSubstr("registered \"linear\": MatMul+Add+Relu"));
  EXPECT_THAT(Ask({"explain", model, "--group", "0"}).out,
              AllOf(HasSubstr("runs the registered kernel \"linear\", which is forced"),
                    HasSubstr("generated code would take"),
                    HasSubstr("if the registered kernel were not forced")));
  // The same numbers as generated code of another server, and its timings.
  EXPECT_EQ(Ask({"bench", model, "--pairs", "2", "--no-report"}).code, 0);
}

TEST_F(RegisteredTest, OtherKernelsOfItsPlanAreTimedAndItIsNot) {
  Serve(Register({}));
  const std::string model = Model();
  const Json plan = AskJson({"plan", model, "--threads", "1", "--opt-level", "1"});
  EXPECT_EQ(Runs(plan), 2);
  EXPECT_EQ(plan["search"]["state"], "done") << plan["search"];
  EXPECT_THAT(plan["search"]["reason"].get<std::string>(),
              HasSubstr("1 kernel registered, not generated"));
  EXPECT_TRUE(AskJson({"verify", model, "--threads", "1", "--opt-level", "1"})["pass"]);
}

// Generated code would round the weights of products of few rows.
TEST_F(RegisteredTest, AKernelRunsInFastPlans) {
  Serve(Register({}));
  const std::string model = Model(6, 80);
  EXPECT_EQ(Runs(AskJson({"plan", model, "--numerics", "fast"})), 2) << own_->output();
  const Json verified = AskJson({"verify", model, "--numerics", "fast"});
  EXPECT_TRUE(verified["pass"]) << verified;
  EXPECT_EQ(State()["state"], "ready");
}

TEST_F(RegisteredTest, AKernelForAvx512ServesTheLevelWithBf16) {
  Serve(Register({.more = "force: true isas: 'avx512'"}));
  const std::string model = Model();
  const std::pair<const char*, int> kLevels[] = {{"avx2", 0}, {"avx512", 2}, {"avx512-bf16", 2}};
  for (const auto& [isa, runs] : kLevels) {
    const std::string target = StrCat("generic-", isa);
    EXPECT_EQ(Runs(AskJson({"plan", model, "--target", target, "--no-compile"})), runs) << isa;
  }
}

TEST_F(RegisteredTest, AKernelRunsInTheBodyOfALoop) {
  Serve(Register({}));
  const std::string model = ScanModel();
  const Json plan = AskJson({"plan", model});
  EXPECT_EQ(Runs(plan), 1) << own_->output();
  ASSERT_EQ(plan["loops"].size(), 1);
  EXPECT_EQ(plan["loops"][0]["launches"], 2);
  const Json verified = AskJson({"verify", model});
  EXPECT_TRUE(verified["pass"]) << verified;
  EXPECT_EQ(State()["state"], "ready");
  EXPECT_THAT(Ask({"show", model, "plan"}).out, HasSubstr("registered kernel \"linear\""));
  EXPECT_THAT(Ask({"show", model, "source"}).out, HasSubstr("y[m * COLS + n] ="));
  EXPECT_THAT(Ask({"explain", model}).out, HasSubstr("registered \"linear\": MatMul+Add+Relu"));
  EXPECT_THAT(Ask({"explain", model, "--group", "0"}).out,
              HasSubstr("runs the registered kernel \"linear\", which is forced"));
  EXPECT_EQ(Ask({"plan", model, "--write-lock", dir_.path("a.lock")}).code, 3);
  const std::string kept = dir_.path("kept.repro");
  EXPECT_EQ(Ask({"repro", model, "--out", kept}).code, 0);
  const ProgramResult replayed = BareCtl({"repro", "--replay", kept});
  EXPECT_EQ(replayed.code, 0) << replayed.err << replayed.out;

  Serve(Register({.result = "sum + 1"}));
  const Json without = AskJson({"plan", model});
  EXPECT_EQ(Runs(without), 0);
  ASSERT_EQ(without["fallbacks"].size(), 1) << without["fallbacks"];
  EXPECT_EQ(without["fallbacks"][0]["registered"], "linear");
  EXPECT_EQ(without["loops"][0]["launches"], 1);
  EXPECT_TRUE(AskJson({"verify", model})["pass"]);
  EXPECT_EQ(State()["state"], "quarantined");
}

TEST_F(RegisteredTest, TheExampleOfTheRepositoryRuns) {
  std::string from = StrCat(FUSION_SOURCE_DIR, "/deploy/kernels/");
  Serve(from);
  std::string model = Write("conv_bias_leakyrelu", [] {
    ModelParams params = FindModel("conv_bias_leakyrelu")->defaults;
    params.channels = 8;
    params.image = 9;
    return params;
  }());
  EXPECT_TRUE(AskJson({"verify", model})["pass"]);
  EXPECT_EQ(State()["name"], "conv-leaky");
  EXPECT_NE(State()["state"], "quarantined") << State();
  // As it is where it is forced.
  std::string dir = dir_.path("forced");
  ASSERT_TRUE(MakeDirectories(dir).ok());
  for (const char* file : {"conv_leaky.c", "conv_leaky.textproto"}) {
    std::string text = ReadFile(from + file, 1 << 20).value();
    text = Replace(text, "  source: \"conv_leaky.c\"", "  force: true source: \"conv_leaky.c\"");
    ASSERT_TRUE(WriteFile(StrCat(dir, "/", file), text).ok());
  }
  Serve(dir);
  Json plan = AskJson({"plan", model});
  EXPECT_EQ(Runs(plan, "conv-leaky"), 1) << own_->output();
  EXPECT_TRUE(AskJson({"verify", model})["pass"]);
  EXPECT_EQ(State()["state"], "ready") << State();
}

TEST_F(RegisteredTest, ItCompetesByItsEstimate) {
  std::string model = Model();
  Serve(Register({.more = "cost { time_us: '0.001' }"}));
  Json cheap = AskJson({"plan", model});
  EXPECT_EQ(Runs(cheap), 2);
  for (const Json& group : cheap["groups"]) {
    if (group["registered"] != "linear") continue;
    EXPECT_EQ(group["estimate"]["time_us"], 0.001);
  }
  EXPECT_TRUE(AskJson({"verify", model})["pass"]);

  Serve(Register({.more = "cost { time_us: '1000 * elements(act.output)' }"}));
  Json dear = AskJson({"plan", model});
  EXPECT_EQ(Runs(dear), 0);
  EXPECT_TRUE(dear["fallbacks"].empty()) << "a choice, not a failure";
  EXPECT_EQ(State()["state"], "unused");

  // A rate: 2 * 6 * 40 * 40 flops at least, of a slow kernel.
  Serve(Register({.more = "cost { rate { flops_per_us: 0.001 } }"}));
  EXPECT_EQ(Runs(AskJson({"plan", model})), 0);
  // Nothing is said: it is preferred to generated code of the same nodes, but not to one kernel of
  // both.
  Serve(Register({.more = ""}));
  EXPECT_EQ(Runs(AskJson({"plan", Model(6, 40, {"one"})})), 1);
  EXPECT_EQ(Runs(AskJson({"plan", model})), 0);
}

TEST_F(RegisteredTest, WhereItDoesNotFitGeneratedCodeRuns) {
  std::string model = Model();
  for (const char* more :
       {"force: true when: 'dim(mm.input0, 0) > 100'",
        "force: true when: 'dtype(add.input1) == f16'",
        "force: true when: 'attr(mm, nothing) == 1'",
        "force: true integers { name: 'HALF' value: 'dim(mm.input0, 0) / 4' }"}) {
    Serve(Register({.more = more}));
    Json plan = AskJson({"plan", model});
    EXPECT_EQ(Runs(plan), 0) << more;
    EXPECT_TRUE(plan["fallbacks"].empty()) << more;
  }
  EXPECT_THAT(own_->output(), AllOf(HasSubstr("registered_kernel_not_used"),
                                    HasSubstr("constant HALF is 1.5 here")));
  // What is not among the params is named: here the bias.
  Serve(Register({.registration = Replace(kRegistration, "\"add.input1\", ", "")}));
  EXPECT_EQ(Runs(AskJson({"plan", model, "--plan-only"})), 0);
  EXPECT_THAT(own_->output(), HasSubstr("params lack a tensor f32[40] that the match reads"));
}

TEST_F(RegisteredTest, ItIsNoPartOfOtherContracts) {
  Serve(Register({}));
  std::string model = Model();
  for (std::vector<std::string> words :
       {std::vector<std::string>{"--fusion", "op-by-op"}, {"--numerics", "bitwise"}}) {
    words.insert(words.begin(), {"plan", model, "--plan-only"});
    Json plan = AskJson(words);
    EXPECT_EQ(Runs(plan), 0);
    EXPECT_EQ(plan["plan_key"], CtlJson(words)["plan_key"]) << "the key of any server";
  }
  // A lock pins generated kernels: none is written of this plan.
  ProgramResult lock = Ask({"plan", model, "--write-lock", dir_.path("a.lock")});
  EXPECT_EQ(lock.code, 3);
  EXPECT_THAT(lock.err, HasSubstr("runs the registered kernel \"linear\""));
}

TEST_F(RegisteredTest, TheKeysFollowTheSource) {
  std::string model = Model();
  Json without = CtlJson({"plan", model, "--plan-only"});
  auto planned = [&](const Linear& linear) {
    Serve(Register(linear));
    return AskJson({"plan", model, "--plan-only"});
  };
  auto kernel = [](const Json& plan) {
    for (const Json& group : plan["groups"]) {
      if (group["registered"] == "linear")
        return plan["kernels"][group["kernel"].get<int>()]["key"];
    }
    return Json();
  };
  Json first = planned({});
  Json again = planned({});
  Json comment = planned({.before = "/* another text */"});
  EXPECT_NE(first["plan_key"], without["plan_key"]);
  EXPECT_EQ(first["plan_key"], again["plan_key"]);
  EXPECT_EQ(kernel(first), kernel(again));
  EXPECT_NE(comment["plan_key"], first["plan_key"]);
  EXPECT_NE(kernel(comment), kernel(first));
  EXPECT_FALSE(kernel(first).is_null());
  // A file without registrations is no file.
  std::string empty = dir_.Write("empty.textproto", "# nothing\n");
  Serve(empty);
  EXPECT_EQ(AskJson({"plan", model, "--plan-only"})["plan_key"], without["plan_key"]);
  EXPECT_TRUE(AskJson({"capabilities"})["registered_kernels"].empty());
}

TEST_F(RegisteredTest, AWrongKernelFallsBack) {
  Serve(Register({.result = "sum"}));
  ExpectFallback(Model(), "check: output 0 on .*elements differ");
}

TEST_F(RegisteredTest, AKernelThatCrashesFallsBack) {
  Serve(Register({.before = "*(volatile int*)16 = 1;"}));
  ExpectFallback(Model(), "two workers|worker");
}

TEST_F(RegisteredTest, AKernelThatHangsFallsBackAndIsTriedAgainAtTheNextStart) {
  std::string store = dir_.path("store");
  std::string kernels = Register({.before = "for (volatile int i = 0; i < 1;) {}"});
  Serve(kernels, {"--compile-seconds", "1", "--store", store});
  std::string model = Model();
  ExpectFallback(model, "killed after [0-9.]+ s in stage .check.");
  Json before = AskJson({"plan", model, "--plan-only"});
  own_->Stop();
  // It was a limit, which another day may not see: nothing is stored of it.
  Serve(Register({}), {"--compile-seconds", "1", "--store", store});
  EXPECT_EQ(State()["state"], "unused");
  EXPECT_EQ(Runs(AskJson({"plan", model})), 2);
}

TEST_F(RegisteredTest, AKernelThatDoesNotCompileFallsBackWithTheCompilersWords) {
  Serve(Register({.before = "undeclared = 1;"}));
  ExpectFallback(Model(), "kernel.c:[0-9]+:[0-9]+: error: .*undeclared");
}

TEST_F(RegisteredTest, AWrongDescriptorFallsBack) {
  Serve(Register({.phases = "2"}));
  ExpectFallback(Model(), "has 2 phases, its schedule 1");
  Serve(Register({.before = "\n#undef FUSION_KERNEL_ABI_VERSION\n"
                            "#define FUSION_KERNEL_ABI_VERSION 7\n"}));
  ExpectFallback(Model(), "ABI version 7");
}

TEST_F(RegisteredTest, ItWorksInTheMemoryThatItsRegistrationSays) {
  const std::string in_scratch = "((float*)args->scratch)[worker * args->scratch_stride / 4] = 1;";
  Serve(Register({.before = in_scratch, .scratch = "4096"}));
  ExpectFallback(Model(), "4096 bytes of scratch and 0 of workspace; expected at most 0 and 0");
  Serve(Register({.before = in_scratch,
                  .scratch = "4096",
                  .more = "scratch_bytes: '512 * (dim(mm.input1, 1) - 32)' force: true"}));
  const std::string model = Model();
  Json plan = AskJson({"plan", model});
  EXPECT_EQ(Runs(plan), 2);
  EXPECT_GE(plan["run_bytes"].get<int64_t>(), plan["arena_bytes"].get<int64_t>() + 4096);
  EXPECT_TRUE(AskJson({"verify", model})["pass"]);
}

TEST_F(RegisteredTest, ARefusedKernelStaysOutOfStoredPlans) {
  std::string store = dir_.path("store");
  std::string kernels = Register({.result = "sum"});
  std::string model = Model();
  Serve(kernels, {"--store", store});
  ExpectFallback(model, "elements differ");
  own_->Stop();
  Serve(kernels, {"--store", store});
  Json plan = AskJson({"plan", model});
  EXPECT_EQ(plan["cache"], "store");
  EXPECT_EQ(Runs(plan), 0);
  EXPECT_EQ(plan["fallbacks"].size(), 2);
}

TEST_F(RegisteredTest, BadRegistrationsNameFileAndField) {
  struct {
    const char* what;
    Linear linear;
    std::string message;
  } const kCases[] = {
      {"source",
       {.registration = Replace(kRegistration, "\"linear.c\"", "\"none.c\"")},
       "linear.textproto:2: kernels[0] \"linear\": source: "},
      {"pattern",
       {.registration = Replace(kRegistration, "to: \"act\"", "to: \"nobody\"")},
       "kernels[0] \"linear\": pattern.edges[1].to: \"nobody\" is the id of no node"},
      {"syntax", {.more = "forse: true"}, "linear.textproto:18: column "},
      {"operator",
       {.registration = Replace(kRegistration, "\"Relu\"", "\"Fly\"")},
       "\"Fly\" is no operator"},
      {"param",
       {.registration = Replace(kRegistration, "\"act.output\"]", "\"act.inner\"]")},
       "params[3]: line 1, column 1: expected output or input"},
      {"no output",
       {.registration = Replace(kRegistration, ", \"act.output\"]", "]")},
       "params: no output"},
      {"constant",
       {.more = "numbers { name: 'fk_x' value: '1' }"},
       "numbers[0].name: \"fk_x\"; expected a letter"},
      {"expression",
       {.more = "numbers { name: 'A' value: 'attr(act' }"},
       "numbers[0].value: line 1, column 9: expected"},
      {"kernel term", {.more = "cost { time_us: '2 * time_us' }"}, "cost.time_us: it asks what"},
      {"isa", {.more = "isas: 'avx1024'"}, "isas[0]: "},
      {"phases", {.more = "phases: 65"}, "phases: 65; expected 0..64"},
      {"cost", {.more = "cost { rate {} }"}, "cost.rate: both are 0"},
      {"condition", {.more = "when: 'dim(mm.output) > 1'"}, "when[2]: line 1, column"},
      {"twice",
       {.registration = StrCat(kRegistration, kRegistration)},
       "name: an earlier kernel has the same"},
      {"include",
       {.before = "\n # include \"/etc/passwd\"\n"},
       "linear.c: line 11: \"# include \\\"/etc/passwd\\\"\"; expected a source without includes"},
  };
  for (const auto& bad : kCases) {
    ProgramEnd end = TestDaemon::RunToEnd(
        FUSIOND, {"--listen", "127.0.0.1:0", "--kernels", Register(bad.linear)});
    EXPECT_EQ(end.exit_code, 1) << bad.what;
    EXPECT_THAT(Replace(end.output, "\\\"", "\""), HasSubstr("--kernels: ")) << bad.what;
    EXPECT_THAT(end.output, testing::AnyOf(HasSubstr(bad.message),
                                           HasSubstr(Replace(bad.message, "\"", "\\\""))))
        << bad.what;
  }
  ProgramEnd absent =
      TestDaemon::RunToEnd(FUSIOND, {"--listen", "127.0.0.1:0", "--kernels", dir_.path("none")});
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_THAT(absent.output, HasSubstr("--kernels: "));
}

}  // namespace
}  // namespace fusion
