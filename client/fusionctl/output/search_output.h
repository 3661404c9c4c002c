#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/bundle/plan.h"

namespace fusion {

// The results of a search for tiles (--opt-level) as text and JSON.

/// A summary in one line; empty if no search was requested.
std::string SearchLine(const TileSearch& search);
/// The summary and a table of all kernels; empty if no search was requested.
std::string SearchText(const Plan& plan);
/// Null if no search was requested. Has "kernels" only if `search` lists them: plans in
/// explanations do, other plans do not.
nlohmann::ordered_json SearchJson(const TileSearch& search);

}  // namespace fusion
