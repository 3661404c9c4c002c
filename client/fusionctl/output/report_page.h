#pragma once

#include <string>
#include <vector>

#include "core/bundle/report.h"

namespace fusion {

/// Reports as one HTML page of at most 1,000 px: a headline, of several plans a table with links to
/// them, and for each plan a sentence, charts of real and estimated time, of traffic before and
/// after, of the share of each kernel, and the table of `fusionctl report`. It needs nothing but
/// itself: no script, no network. It is well-formed XML too. Names come out as text, whatever is in
/// them.
std::string ReportPage(const std::vector<PlanReport>& plans);

}  // namespace fusion
