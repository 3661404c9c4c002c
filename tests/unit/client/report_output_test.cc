// The formats of fusionctl report, but for its page (fusionctl_parts_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/fusionctl/report/report_figures.h"
#include "client/fusionctl/report/report_json.h"
#include "client/fusionctl/report/report_page.h"
#include "client/fusionctl/report/report_tables.h"
#include "client/fusionctl/report/report_text.h"
#include "core/base/text/cells.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kHostileText[] = "a|b `c` *d* <e> \\| [f](g) \n# h \x1b[31m";

// A layer in two kernels; of the first the parts were measured too.
PlanReport Layer() {
  PlanReport plan{.plan_key = Sha256("plan"),
                  .model_name = "bert",
                  .target = "generic-avx2",
                  .devices = {"a machine"},
                  .runs = {.calls = 9, .samples = 9, .median_us = 300},
                  .totals = {.launches = 2, .activation_bytes = 1 << 20, .estimated_us = 250},
                  .op_by_op = {.kernels = 30, .activation_bytes = 4 << 20, .estimated_us = 400}};
  plan.peak_bytes = 1 << 20;
  plan.op_by_op_peak_bytes = 2 << 20;
  plan.kernels = {{.kernel_key = Sha256("one"),
                   .label = "MatMul+Add",
                   .launches = 1,
                   .nodes = 4,
                   .measured = {.calls = 10, .samples = 9, .median_us = 120},
                   .estimated_us = 100,
                   .op_by_op_us = 150,
                   .op_by_op_measured_us = 90,
                   .sections = kQkvSection},
                  {.kernel_key = Sha256("two"),
                   .label = kHostileText,
                   .launches = 1,
                   .nodes = 9,
                   .measured = {.calls = 10, .samples = 9, .median_us = 180},
                   .estimated_us = 150,
                   .op_by_op_us = 250}};
  plan.sections = {{.sections = kAttentionSection | kPostAttentionSection,
                    .launches = 1,
                    .measured_us = 180,
                    .estimated_us = 150,
                    .activation_bytes = 1 << 19,
                    .op_by_op_kernels = 20,
                    .op_by_op_us = 250,
                    .op_by_op_activation_bytes = 3 << 20},
                   {.sections = kQkvSection,
                    .launches = 1,
                    .measured_us = 120,
                    .estimated_us = 100,
                    .op_by_op_kernels = 4,
                    .op_by_op_measured_us = 90,
                    .op_by_op_us = 150}};
  return plan;
}

TEST(ReportFigures, SpeedUpsAreOfMeasuredOrOfEstimatedTimesNeverOfBoth) {
  const PlanReport plan = Layer();
  EXPECT_EQ(SpeedupText(SpeedupOf(plan.kernels[0])), "0.75 x");
  EXPECT_EQ(OpByOpText(SpeedupOf(plan.kernels[0])), "90.0 us");
  EXPECT_EQ(SpeedupText(SpeedupOf(plan.kernels[1])), "~1.67 x") << "250 / 150";
  EXPECT_EQ(OpByOpText(SpeedupOf(plan.kernels[1])), "~250 us");
  EXPECT_FALSE(SpeedupOf(plan)->measured);
  EXPECT_EQ(SpeedupText(std::nullopt), "-");
}

TEST(ReportFigures, RegretsAreWeighedByCalls) {
  PlanReport plan = Layer();
  plan.kernels[0].measured.calls = 1000;
  const std::vector<PlanReport> plans = {plan};
  const std::vector<Regret> regrets = TopRegrets(plans, 5);
  ASSERT_THAT(regrets, SizeIs(2));
  EXPECT_EQ(regrets[0].kernel->label, "MatMul+Add");
  EXPECT_EQ(regrets[0].lost_us, 20 * 1000);
  EXPECT_EQ(regrets[1].lost_us, 30 * 10);
  EXPECT_THAT(TopRegrets(plans, 1), SizeIs(1));
  const std::vector<Regret> slower = SlowerThanParts(plans, 5);
  ASSERT_THAT(slower, SizeIs(1)) << "the other one is faster than its parts";
  EXPECT_TRUE(slower[0].measured);
  EXPECT_EQ(slower[0].promised_us, 90);
  plan.fusion = FusionMode::kOpByOp;
  EXPECT_THAT(SlowerThanParts({plan}, 5), IsEmpty());
}

TEST(ReportTables, PartsOfALayerComeInItsOrder) {
  const ReportTable table = SectionTable(Layer());
  ASSERT_THAT(table.rows, SizeIs(3));
  EXPECT_EQ(table.rows[0][0], "QKV");
  EXPECT_EQ(table.rows[0][1], "4 -> 1");
  EXPECT_EQ(table.rows[0][4], "0.75 x");
  EXPECT_EQ(table.rows[1][0], "attention + post-attention");
  EXPECT_EQ(table.rows[1][4], "~1.67 x");
  EXPECT_EQ(table.rows[1][5], "2.50 MiB");
  EXPECT_EQ(table.rows[2][0], "all-in-one");
  EXPECT_EQ(table.rows[2][1], "30 -> 2");
  EXPECT_THAT(table.note, HasSubstr("~: estimated"));
  PlanReport cnn = Layer();
  cnn.sections.clear();
  EXPECT_THAT(SectionTable(cnn).rows, IsEmpty());
  EXPECT_THAT(ReportText({cnn}), Not(HasSubstr("transformer")));
}

TEST(ReportText, FitsIntoItsColumns) {
  PlanReport plan = Layer();
  plan.model_name = std::string(128, 'm');
  plan.devices = {std::string(128, 'd'), "another"};
  plan.kernels[0].label = std::string(900, 'x');
  plan.kernels[0].measured = {.calls = 999'999'999, .samples = 5, .median_us = 9e5};
  plan.op_by_op.activation_bytes = int64_t{1000} << 40;
  plan.sections[0].sections = kQkvSection | kAttentionSection | kPostAttentionSection;
  for (const size_t columns : {size_t{100}, size_t{80}}) {
    const std::string text = ReportText({plan}, columns);
    for (const std::string_view line : StrSplit(text, '\n')) {
      EXPECT_LE(CellsOf(line), columns) << line;
    }
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
  const std::string text = ReportText({Layer()});
  for (const char* shown :
       {"speed-up", "op by op", "Peak memory: 1.00 MiB instead of", "about 2.00 MiB (50.0 % saved)",
        "|ln(measured / estimated)|", "Top regrets", "Fused, but slower than op by op",
        "both estimated", "all-in-one"}) {
    EXPECT_THAT(text, HasSubstr(shown));
  }
}

TEST(ReportText, APlanThatOthersAreComparedWithHasNoPartOfItsOwn) {
  PlanReport plan = Layer();
  PlanReport apart = Layer();
  apart.plan_key = Sha256("apart");
  apart.fusion = FusionMode::kOpByOp;
  plan.op_by_op_plan = apart.plan_key;
  plan.op_by_op_runs = {.calls = 7, .samples = 7, .median_us = 600};
  EXPECT_THAT(ShownPlans({plan, apart}), SizeIs(1));
  EXPECT_THAT(ShownPlans({apart}), SizeIs(1));
  const std::string text = ReportText({plan, apart});
  EXPECT_THAT(text, AllOf(HasSubstr("600 us instead of 300 us, 2.00 x, both measured"),
                          HasSubstr("7 runs"), HasSubstr(apart.plan_key.ToHex().substr(0, 8))));
  EXPECT_EQ(ReportJson({plan, apart})["plans"].size(), 2u) << "all of them";
}

// The cells of a row: parts between bars that are not escaped.
size_t CellsOfRow(std::string_view row) {
  size_t bars = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '\\') {
      ++i;
    } else if (row[i] == '|') {
      ++bars;
    }
  }
  return bars - 1;
}

TEST(ReportMarkdown, TablesAreWellFormedWhateverIsInThem) {
  PlanReport plan = Layer();
  plan.model_name = kHostileText;
  plan.devices = {kHostileText};
  const std::string text = ReportMarkdown({plan});
  size_t cells = 0;
  int tables = 0;
  for (const std::string_view line : StrSplit(text, '\n')) {
    if (!line.starts_with("|")) {
      cells = 0;
      continue;
    }
    if (cells == 0) {
      ++tables;
      cells = CellsOfRow(line);
      EXPECT_GT(cells, 5u);
    }
    EXPECT_EQ(CellsOfRow(line), cells) << line;
    EXPECT_EQ(line.back(), '|') << line;
  }
  EXPECT_EQ(tables, 4) << "kernels, parts, two of regrets";
  EXPECT_THAT(text, AllOf(HasSubstr("a\\|b \\`c\\` \\*d\\* \\<e\\>"), Not(HasSubstr("\n# h")),
                          Not(HasSubstr("\x1b"))));
  EXPECT_THAT(ReportMarkdown({}), HasSubstr("no latencies were reported"));
}

TEST(ReportMarkdown, EscapesWhatIsMarkup) {
  EXPECT_EQ(EscapeMarkdown("a|b`c`\\"), "a\\|b\\`c\\`\\\\");
  EXPECT_EQ(EscapeMarkdown("1 + 2 - x.y"), "1 + 2 - x.y");
  EXPECT_EQ(EscapeMarkdown("~1.67 x"), "\\~1.67 x");
}

TEST(ReportJson, HasEverythingThatIsDerived) {
  const auto json = ReportJson({Layer()});
  const auto& plan = json["plans"][0];
  EXPECT_EQ(plan["peak_saved_bytes"], 1 << 20);
  EXPECT_TRUE(plan["op_by_op_plan"].is_null());
  EXPECT_EQ(plan["speedup"]["measured"], false);
  EXPECT_EQ(plan["accuracy"]["kernels"], 2);
  EXPECT_NEAR(plan["accuracy"]["worst_abs_ln"].get<double>(), 0.1823, 1e-3);
  EXPECT_EQ(plan["kernels"][0]["speedup"]["measured"], true);
  EXPECT_EQ(plan["kernels"][0]["sections"][0], "QKV");
  EXPECT_EQ(plan["sections"].size(), 2u);
  EXPECT_EQ(plan["sections"][0]["op_by_op_kernels"], 20);
  EXPECT_EQ(json["top_regrets"].size(), 2u);
  EXPECT_EQ(json["slower_than_parts"].size(), 1u);
  EXPECT_EQ(json["slower_than_parts"][0]["promised_is_measured"], true);
}

TEST(ReportPage, HasTheTablesOfTheText) {
  const std::string page = ReportPage({Layer()});
  for (const char* shown : {"Top regrets", "Parts of transformer layers", "all-in-one",
                            "Peak memory", "slower than op by op"}) {
    EXPECT_THAT(page, HasSubstr(shown));
  }
  EXPECT_THAT(page, Not(HasSubstr("<e>")));
}

}  // namespace
}  // namespace fusion
