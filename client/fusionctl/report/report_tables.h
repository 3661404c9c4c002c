#pragma once

#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// A table of a report, for any format. Cells are text from elsewhere: each format escapes them.
struct ReportTable {
  struct Column {
    std::string heading;
    bool left = false;  // aligned; the last one may be cut
    int spare = 0;      // as Table::Column
  };
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  size_t totals = 0;  // of the last rows
  std::string note;   // below it; may be empty
};

/// Rows of TopRegretTable and SlowerThanPartsTable.
inline constexpr size_t kShownRegrets = 5;

/// Sentences about a plan, without what identifies it.
std::vector<std::string> ReportSentences(const PlanReport& plan);
/// Its kernels.
ReportTable KernelTable(const PlanReport& plan);
/// The parts of transformer layers; without rows if the model has none.
ReportTable SectionTable(const PlanReport& plan);
/// Over all plans; without rows if there is nothing to say.
ReportTable TopRegretTable(const std::vector<PlanReport>& plans);
ReportTable SlowerThanPartsTable(const std::vector<PlanReport>& plans);

/// The plans that a report shows: all but those that others are compared with (IsBaseline), unless
/// nothing else is left.
std::vector<PlanReport> ShownPlans(const std::vector<PlanReport>& plans);

}  // namespace fusion
