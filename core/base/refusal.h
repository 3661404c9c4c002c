#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// The outcome for a candidate, a set of ops that might be one kernel.
enum class Verdict : uint8_t {
  kChosen,
  kRefused,     // no kernel can hold it
  kNoGain,      // one kernel is possible but not faster
  kSuperseded,  // one kernel is possible and faster, but a competing group was chosen
  kForbidden,   // excluded by the request, a rule or a failed kernel
};

/// Why a set of ops is not one kernel. A new reason is a new enumerator and a row of the table in
/// refusal.cc; everything else (words on the wire, `fusionctl explain`, its legend) follows.
enum class RefusalCode : uint8_t {
  kNone,
  // From the search for groups.
  kCyclic,
  kLoop,
  kOpaque,
  kLarge,
  kWide,
  kPrepare,
  kView,
  kNoGain,
  kSuperseded,
  kPhases,
  kPipeline,
  // Requested or forced: by options, rules, locks, failures.
  kAlone,
  kPressure,
  kOpByOp,
  kRule,
  kRegistered,
  kBias,
  kLocked,
  // From lowering to a schedule. All codes from here on are IsOfSchedules.
  kReshape,
  kAlias,
  kShift,
  kColumns,
  kRoles,
  kNoBlocks,
  kOnChip,
  kEmpty,
  kSideBySide,
  kLayout,
  // From streaming a dim.
  kNeedsFinishedReduction,
  kCrossing,
  kShiftedState,
  kStateInReduction,
  kMonoid,
  kRounding,
  kNotSeparable,
  kUnbounded,
  kUnboundedUpdate,
  kUnboundedError,
  kNotTotal,
  kInfinities,
  kNoSchedule,
};

/// A row of the table of refusals.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which rows read
struct RefusalEntry {
  RefusalCode code = RefusalCode::kNone;
  std::string_view word;  // kebab-case; never changes, so that programs may compare it
  Verdict verdict = Verdict::kRefused;
  std::string_view meaning;  // one line for people
};

/// True for the codes of lowering and of streaming: at least one schedule was tried.
constexpr bool IsOfSchedules(RefusalCode code) { return code >= RefusalCode::kReshape; }

/// Every code but kNone, in the order of the enumerators.
std::span<const RefusalEntry> RefusalTable();
/// The row of `code`, which must not be kNone.
const RefusalEntry& RefusalRow(RefusalCode code);
/// The row of `word`; null if this build does not know the word.
const RefusalEntry* FindRefusal(std::string_view word);

/// A refusal code, and a description of this case with its numbers. Empty: not refused.
struct Refusal {
  RefusalCode code = RefusalCode::kNone;
  std::string words;

  bool empty() const { return code == RefusalCode::kNone; }
  Verdict verdict() const { return empty() ? Verdict::kChosen : RefusalRow(code).verdict; }
  /// "alias: Softmax reads %5 along other dims than it is written"; "" if empty().
  std::string ToString() const;
};

template <typename... Parts>
Refusal Refuse(RefusalCode code, const Parts&... parts) {
  return {code, StrCat(parts...)};
}

/// The same as a status, for functions that return StatusOr: FailedPrecondition with the message
/// Refusal::ToString().
template <typename... Parts>
absl::Status RefusalStatus(RefusalCode code, const Parts&... parts) {
  return FailedPrecondition(Refuse(code, parts...).ToString());
}

/// Inverse of Refusal::ToString. Text that does not begin with a word of the table and ": " becomes
/// kNoSchedule with the whole text as words. Empty text gives an empty Refusal.
Refusal RefusalFrom(std::string_view text);

}  // namespace fusion
