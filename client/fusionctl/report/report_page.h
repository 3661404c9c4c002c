#pragma once

#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// Reports as one HTML page, at most 1,000 px wide: a headline; for several plans a table with
/// links to them; for each plan a sentence, charts of real and estimated time, of traffic before
/// and after fusion and of the share of each kernel, and the table of `fusionctl report`.
/// Self-contained, without scripts. Also well-formed XML. Names are escaped.
std::string ReportPage(const std::vector<PlanReport>& plans);

}  // namespace fusion
