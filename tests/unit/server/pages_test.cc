// The pages for people as text: names from elsewhere stay text, everything is bounded, everybody
// can read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/observe/status_of.h"
#include "server/pages/epoch_pages.h"
#include "server/pages/kernel_pages.h"
#include "server/pages/overview_page.h"
#include "server/pages/page_frame.h"
#include "server/pages/plan_pages.h"
#include "tests/support/page_checks.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostileName = "</td><script>alert('x')</script> \" & \x1b[31m \u202e";

std::string Framed(const Markup& content) {
  return PageText({.title = "A page",
                   .path = "/plans",
                   .navigation = {{"/", "Overview"}, {"/plans", "Plans"}},
                   .version = "1.0 <beta>",
                   .made = "2027-01-15T08:00:00Z"},
                  content);
}

void ExpectHarmless(const std::string& page) {
  ExpectAccessible(page);
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)"));
  for (const char* never : {"<script", "\x1b", "\u202e"}) {
    EXPECT_THAT(page, Not(HasSubstr(never)));
  }
}

PlanReport HostileReport(int kernels) {
  PlanReport out{
      .plan_key = Sha256("plan"),
      .model_name = kHostileName,
      .target = kHostileName,
      .devices = {kHostileName},
      .runs = {.calls = 7, .samples = 5, .median_us = 300, .p10_us = 290, .p90_us = 310}};
  out.totals = {.kernels = kernels, .launches = kernels, .estimated_us = 100};
  for (int i = 0; i < kernels; ++i) {
    out.kernels.push_back(
        {.kernel_key = Sha256(StrCat("kernel ", i)),
         .label = kHostileName,
         .launches = 1,
         .measured = {.calls = 7, .samples = 5, .median_us = 10.0 + i, .p10_us = 9, .p90_us = 12},
         .estimated_us = 10});
  }
  return out;
}

ServerStatus SampleStatus() {
  ServerStatus out{.version = "1.0", .uptime = std::chrono::seconds(100), .ready = true};
  out.methods = {{.method = "PlanFusion",
                  .started = 30,
                  .finished = {{"OK", 20}, {"INVALID_ARGUMENT", 10}},
                  .seconds = 3}};
  out.plans = {{"planned", 1}, {"memory", 3}, {"store", 0}, {"shared", 0}};
  out.warm_hits = 9;
  out.warm_misses = 3;
  out.calls = 5;
  out.call_limit = 320;
  out.calls_queued = 2;
  out.limit_bytes = 100;
  out.bytes = 50;
  out.refused = {{"bytes", 0}, {"rate", 4}};
  out.tiers = {{.tier = Tier::kMemory, .plans = 2, .kernels = 4, .bytes = 10, .limit_bytes = 20},
               {.tier = Tier::kDisk,
                .plans = 3,
                .limit_bytes = INT64_MAX,
                .writable = false,
                .not_writable = kHostileName}};
  out.top_plans = TopPlans({HostileReport(3)}, 20);
  return out;
}

ServerSnapshot SampleSnapshot() {
  ServerSnapshot out;
  out.tenant_bytes = {{kHostileName, 3}, {"shop", 9}};
  out.recent_bytes = {{"answers", 1}};
  out.recent_limit_bytes = 8;
  out.worker_limit = 2;
  out.workers.running = 1;
  out.registered = {{.name = kHostileName, .pattern = "Conv > Relu", .reason = "because"}};
  for (int i = 0; i < 150; ++i) {
    out.quarantine.push_back(
        {.key = Sha256(StrCat(i)), .reason = kHostileName, .since_unix_ms = 1800000000000});
  }
  return out;
}

std::shared_ptr<const StoredPlan> HostilePlan(size_t decisions, size_t groups) {
  Plan plan = SamplePlan();
  plan.groups.resize(1);
  plan.groups[0].label = kHostileName;
  plan.groups[0].kernel = 0;
  plan.groups.resize(groups, plan.groups[0]);
  plan.fallbacks = {{.node = 0, .reason = kHostileName}};
  plan.skipped_passes = {{.pass = "layouts", .reason = kHostileName}};
  plan.decisions.clear();
  for (DecisionSubject subject :
       {DecisionSubject::kGroup, DecisionSubject::kPair, DecisionSubject::kSiblings}) {
    PlanDecision decision{.subject = subject,
                          .verdict = Verdict::kNoGain,
                          .code = "no-gain",
                          .reason = kHostileName,
                          .what_ifs = {{.what = "launch", .value = 1, .words = kHostileName}},
                          .places = {{.first_group = 0, .second_group = 0}},
                          .times = 3};
    for (size_t i = 0; i < decisions; ++i) plan.decisions.push_back(decision);
  }
  return std::make_shared<const StoredPlan>(
      MakeStoredPlan("full key", plan, 1800000000000, kHostileName));
}

TEST(Pages, NamesOfClientsStayText) {
  const ServerStatus status = SampleStatus();
  const ServerSnapshot now = SampleSnapshot();
  ExpectHarmless(Framed(OverviewContent(status, now, std::nullopt)));
  ExpectHarmless(Framed(QueueContent(status, now)));
  ExpectHarmless(Framed(WorkersContent(now, kHostileName, "avx2")));
  ExpectHarmless(Framed(KernelsContent({HostileReport(3)}, 100)));
  PlanPage page;
  page.plans = {{.plan_key = Sha256("plan"),
                 .model_name = kHostileName,
                 .target = kHostileName,
                 .fallbacks = 1,
                 .pinned = true,
                 .tenant = kHostileName}};
  page.last = PlanPlace{1800000000000, Sha256("plan")};
  ExpectHarmless(Framed(PlansContent(page, /*first=*/false, 1800000060000)));
  ExpectHarmless(Framed(PlanContent({.stored = HostilePlan(2, 3),
                                     .tenant = kHostileName,
                                     .report = HostileReport(1),
                                     .kernel_stored = {true},
                                     .no_picture = kHostileName})));
  KernelArtifact kernel{.source = StrCat(kHostileName, "\nint i;"),
                        .schedule = kHostileName,
                        .compiler = kHostileName,
                        .reference = kHostileName};
  kernel.check.reason = kHostileName;
  ExpectHarmless(Framed(KernelContent(kernel)));
  const DeviceAccuracy device{
      .device = {kHostileName, "avx2", 2},
      .timings = 12,
      .spec = {.timings = 12, .median = 0.4, .p90 = 1},
      .constants = {{"memory", 1.5}},
      .classes = {{.bound = "memory", .form = "copy", .factor = 0.7, .kernels = 2, .voters = 1}},
      .machines = {{.machine = kHostileName, .tenant = kHostileName, .factor = 2}}};
  const std::string accuracy =
      Framed(AccuracyContent({device}, {"default", kHostileName}, "default"));
  ExpectHarmless(accuracy);
  EXPECT_THAT(accuracy, HasSubstr("/accuracy?tenant=%3C%2Ftd%3E%3Cscript"));
}

TEST(Pages, BytesThatAreNoTextAreShownAsNumbers) {
  for (const Markup& shown : {Words("a\xff<"), Foreign("a\xff<"), Verbatim("v", "a\xff<", 9)}) {
    EXPECT_THAT(shown.html, HasSubstr("a\\xff&lt;"));
  }
  EXPECT_THAT(Foreign(std::string(500, 'n'), 20).html, HasSubstr(">nnnnnnnnnnnnnnnnnnnn...<"));
  EXPECT_EQ(Ops("MatMul+<b>", 99).html, "<bdi>MatMul+<wbr/>&lt;b&gt;</bdi>");
}

TEST(Pages, AreBounded) {
  const std::string workers = Framed(WorkersContent(SampleSnapshot(), "g++", "avx2"));
  EXPECT_THAT(workers, HasSubstr("And 50 more"));
  const std::string kernels = Framed(KernelsContent({HostileReport(300)}, 1));
  EXPECT_EQ(AllMatches(kernels, std::regex("<tr>")).size(), kKernelRows + 1);
  EXPECT_THAT(kernels, AllOf(HasSubstr("The first 200 of 300 kernels."),
                             HasSubstr("Of the 1 plans with the latest reports")));
  // Those that take most time are shown.
  EXPECT_THAT(kernels, HasSubstr(Sha256("kernel 299").ToHex()));
  EXPECT_THAT(kernels, Not(HasSubstr(Sha256("kernel 0").ToHex())));
  const std::string plan =
      Framed(PlanContent({.stored = HostilePlan(1000, 1000), .no_picture = "none"}));
  ExpectAccessible(plan);
  EXPECT_THAT(plan, AllOf(HasSubstr("The first 300 of 1000 groups"),
                          HasSubstr("The first 200 of 1000 entries")));
  EXPECT_EQ(AllMatches(plan, std::regex("<tr>")).size(), 300 + 3 * kLedgerRows + 2 + 5)
      << "groups, entries, what is avoided, and headings";
  KernelArtifact kernel{.source = std::string(1 << 20, 'x')};
  const std::string source = Framed(KernelContent(kernel));
  EXPECT_LT(source.size(), 300u << 10);
  EXPECT_THAT(source, HasSubstr("The first 192.00 KiB of 1.00 MiB."));
}

TEST(Pages, ShowWhatCounts) {
  const ServerStatus status = SampleStatus();
  std::string page = Framed(OverviewContent(status, SampleSnapshot(), std::nullopt));
  for (const char* shown : {"ready</span>", "on average over 1 min; 30 in all", "75.0 %",
                            "INVALID_ARGUMENT", "3.00 x</span>", "not writable"}) {
    EXPECT_THAT(page, HasSubstr(shown));
  }
  // 30 calls in 100 s, but 28 of them in the last 4 s.
  const EarlierCounts before{.uptime = std::chrono::seconds(96),
                             .finished = {{"PlanFusion", {{"OK", 2}}}}};
  page = Framed(OverviewContent(status, SampleSnapshot(), before));
  EXPECT_THAT(page, AllOf(HasSubstr("7.0</dd>"), HasSubstr("over the last 4 s; 30 in all"),
                          HasSubstr(">4.5</td>"), HasSubstr(">2.5</td>")));
  page = Framed(QueueContent(status, SampleSnapshot()));
  EXPECT_THAT(page, AllOf(HasSubstr("5 of 320"), HasSubstr("50 B of 100 B"), HasSubstr("rate")));
  EXPECT_THAT(page, Not(HasSubstr(">bytes</th>"))) << "no call was refused for that";
}

TEST(Pages, SayWhatIsNotThere) {
  const ServerStatus status;
  const ServerSnapshot now;
  const std::string page = Framed(OverviewContent(status, now, std::nullopt));
  ExpectAccessible(page);
  EXPECT_THAT(page, AllOf(HasSubstr("No call has ended yet."), HasSubstr("not ready"),
                          HasSubstr("No latencies were reported.")));
  ExpectAccessible(Framed(QueueContent(status, now)));
  ExpectAccessible(Framed(WorkersContent(now, "", "")));
  EXPECT_THAT(PlansContent({}, /*first=*/true, 0).html, HasSubstr("No plan is stored."));
  EXPECT_THAT(KernelsContent({}, 100).html, HasSubstr("No latencies of kernels were reported"));
  EXPECT_THAT(AccuracyContent({}, {"default"}, "default").html,
              HasSubstr("No latencies of kernels were reported"));
}

TEST(Pages, PlacesOfAListAreReadBack) {
  const PlanPlace place{1800000000000, Sha256("plan")};
  EXPECT_EQ(ParsePlace(PlaceText(place)), place);
  for (const std::string& wrong :
       {std::string(), std::string("1800000000000"), StrCat("-1-", place.key.ToHex()),
        StrCat("x-", place.key.ToHex()), StrCat(PlaceText(place), "0"),
        std::string("1800000000000-abc"), StrCat("99999999999999999999-", place.key.ToHex())}) {
    EXPECT_EQ(ParsePlace(wrong), std::nullopt) << wrong;
  }
}

// WCAG 2.2 AA: 4.5 for text, 3 for what is drawn.
TEST(Pages, ColoursHaveContrastInBothSchemes) {
  const std::string page = Framed({});
  for (bool dark : {false, true}) {
    const PageColours colours = ColoursOf(page, dark);
    ASSERT_GE(colours.size(), 11u) << dark;
    static const std::regex used("var\\((--[a-z-]+)\\)");
    for (const std::smatch& one : AllMatches(page, used)) {
      EXPECT_TRUE(colours.contains(one[1])) << one[1];
    }
    for (const auto& [front, back] :
         std::vector<std::pair<std::string, std::string>>{{"--text", "--back"},
                                                          {"--text", "--panel"},
                                                          {"--quiet", "--back"},
                                                          {"--quiet", "--panel"},
                                                          {"--link", "--back"},
                                                          {"--link", "--panel"},
                                                          {"--back", "--text"},
                                                          {"--good", "--good-back"},
                                                          {"--bad", "--bad-back"}}) {
      EXPECT_GE(ContrastOf(colours.at(front), colours.at(back)), 4.5)
          << front << " on " << back << (dark ? ", dark" : ", light");
    }
    EXPECT_GE(ContrastOf(colours.at("--bar"), colours.at("--line")), 3) << dark;
  }
  EXPECT_NE(ColoursOf(page, true).at("--back"), ColoursOf(page, false).at("--back"));
  EXPECT_NEAR(ContrastOf("#000000", "#ffffff"), 21, 1e-9);
  EXPECT_NEAR(ContrastOf("#777777", "#ffffff"), 4.48, 0.01) << "the known near miss";
}

TEST(Pages, TheCurrentPageIsMarkedAndReloadsIfAsked) {
  const std::string page = Framed({});
  EXPECT_THAT(page, AllOf(HasSubstr("<a href=\"/plans\" aria-current=\"page\">"),
                          HasSubstr("1.0 &lt;beta&gt;"), Not(HasSubstr("http-equiv"))));
  EXPECT_THAT(PageText({.title = "t", .refresh_seconds = 10}, {}),
              HasSubstr("<meta http-equiv=\"refresh\" content=\"10\"/>"));
}

TEST(TopPlans, WithoutRunsTheirKernelsCount) {
  PlanReport report = HostileReport(2);
  EXPECT_DOUBLE_EQ(UseOf(report).median_us, 300);
  report.runs = {};
  report.kernels[0].launches = 2;
  report.kernels[0].measured.calls = 14;
  const PlanUse use = UseOf(report);
  EXPECT_DOUBLE_EQ(use.median_us, 2 * 10 + 11);
  EXPECT_EQ(use.calls, 7);
  PlanReport other = HostileReport(1);
  other.plan_key = Sha256("other");
  other.runs.calls = 1000;
  const std::vector<PlanUse> top = TopPlans({report, other}, 1);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].plan_key, other.plan_key);
}

TEST(Pages, EpochsShowEvidenceAndHistoryAndNamesStayText) {
  EpochList list;
  for (int i = 0; i < 40; ++i) {
    list.epochs.push_back({.number = 40 - i,
                           .tenant = kHostileName,
                           .device = {kHostileName, "avx2", 1},
                           .factors = {.memory = 2, .product = {{"f32", 0.5}}},
                           .events = {{1000, EpochState::kActive, kHostileName}},
                           .plans = {{Sha256("p"), kHostileName, 20, 10, kHostileName}}});
  }
  for (int i = 0; i < 300; ++i) {
    list.decisions.push_back({1000, 3, kHostileName, Sha256("p"), kHostileName, kHostileName});
  }
  const std::string page = Framed(EpochsContent(list));
  ExpectHarmless(page);
  EXPECT_THAT(page, HasSubstr("Epoch 40, active"));
  EXPECT_THAT(page, HasSubstr("2.00 x"));
  EXPECT_THAT(page, Not(HasSubstr("Epoch 24,"))) << "bounded";
  EXPECT_THAT(page, HasSubstr("24 older ones"));
  const std::string empty = Framed(EpochsContent({}));
  ExpectAccessible(empty);
  EXPECT_THAT(empty, HasSubstr("plans are made with the constants of the device"));
}

}  // namespace
}  // namespace fusion
