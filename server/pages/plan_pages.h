#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bundle/explanation.h"
#include "core/bundle/report.h"
#include "core/cache/store.h"
#include "core/wire/stored_plan.h"
#include "server/pages/markup.h"

namespace fusion {

/// Plans of one page of the list.
inline constexpr size_t kPlansOfPage = 50;

/// The list of stored plans, newest first, with links to the next page and back to the first.
/// `first`: it is the first page. `now_unix_ms`: for ages.
Markup PlansContent(const PlanPage& page, bool first, int64_t now_unix_ms);

/// The text of a place in the list, for a URL: "1767225600000-5f1c...". ParsePlace is its inverse;
/// nullopt for anything else.
std::string PlaceText(const PlanPlace& place);
std::optional<PlanPlace> ParsePlace(std::string_view text);

/// What is shown of one plan.
struct PlanView {
  std::shared_ptr<const StoredPlan> stored;
  std::string tenant;  // empty: unknown
  /// Measured times; unset: no latencies were reported.
  std::optional<PlanReport> report;
  std::vector<bool> kernel_stored;  // by Plan::kernels
  /// Why there is no picture; empty: there is one at /plans/KEY.svg.
  std::string no_picture;
};

/// One plan: facts, the picture of its graph with the groups, its groups with estimates beside
/// measured times, and the ledger of decisions.
Markup PlanContent(const PlanView& view);

/// The ledger of `plan`: why each group is one kernel, why others are two, with what would change
/// it. At most kLedgerRows rows a table.
inline constexpr size_t kLedgerRows = 200;
Markup LedgerContent(const Plan& plan);

}  // namespace fusion
