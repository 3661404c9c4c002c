#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/bundle/plan.h"

namespace fusion {

// What a search for tiles has measured, for people and programs.

/// What came of it, in a line that `plan` shows; empty if none was asked for.
std::string SearchLine(const TileSearch& search);
/// The same, and the table of every kernel; empty if none was asked for.
std::string SearchText(const Plan& plan);
/// Null if none was asked for. Without "kernels" where the plan has none: ExplainPlan has them.
nlohmann::ordered_json SearchJson(const TileSearch& search);

}  // namespace fusion
