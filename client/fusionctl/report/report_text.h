#pragma once

#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// Width of reports where stdout is not a terminal.
inline constexpr size_t kReportColumns = 100;

/// Reports as text of at most `columns` cells a line, where no word is longer. Names of kernels are
/// cut.
std::string ReportText(const std::vector<PlanReport>& plans, size_t columns = kReportColumns);

/// Reports in Markdown (GitHub's): headings, lists, tables. Nothing is cut. Text from elsewhere is
/// escaped: it makes neither cells nor markup.
std::string ReportMarkdown(const std::vector<PlanReport>& plans);

/// `text` as text of one line within Markdown, also in a cell of a table.
std::string EscapeMarkdown(std::string_view text);

}  // namespace fusion
