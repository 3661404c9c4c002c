#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// What became of a candidate for one kernel.
enum class Verdict : uint8_t {
  kChosen,
  kRefused,     // no kernel can hold it
  kNoGain,      // it could be one kernel, and is not faster as one
  kSuperseded,  // it could be one kernel and would gain; others that it excludes were taken
  kForbidden,   // somebody asked for it not to be: the request, a rule, a failed kernel
};

/// Why a set of ops is not one kernel. A new reason is a new enumerator and a row of the table in
/// refusal.cc; everything else (words on the wire, `fusionctl explain`, its legend) follows.
enum class RefusalCode : uint8_t {
  kNone,
  // Of the search.
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
  // Asked for.
  kAlone,
  kPressure,
  kOpByOp,
  kRule,
  kRegistered,
  kBias,
  kLocked,
  // Of schedules; those of streaming follow.
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
  // Of streaming.
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

/// True if a schedule was tried, or several: reasons of schedules and of streaming.
constexpr bool IsOfSchedules(RefusalCode code) { return code >= RefusalCode::kReshape; }

/// Every code but kNone, in the order of the enumerators.
std::span<const RefusalEntry> RefusalTable();
/// The row of a code; it must not be kNone.
const RefusalEntry& RefusalRow(RefusalCode code);
/// The row of a word; null for one that this build does not know.
const RefusalEntry* FindRefusal(std::string_view word);

/// A reason, and the case at hand in words with numbers. Empty: nothing stands against it.
struct Refusal {
  RefusalCode code = RefusalCode::kNone;
  std::string words;

  bool empty() const { return code == RefusalCode::kNone; }
  Verdict verdict() const { return empty() ? Verdict::kChosen : RefusalRow(code).verdict; }
  /// "alias: Softmax reads %5 along other dims than it is written"; empty if it is.
  std::string ToString() const;
};

template <typename... Parts>
Refusal Refuse(RefusalCode code, const Parts&... parts) {
  return {code, StrCat(parts...)};
}

/// The same as a status, for functions that give something else: FailedPrecondition, its message
/// Refusal::ToString().
template <typename... Parts>
absl::Status RefusalStatus(RefusalCode code, const Parts&... parts) {
  return FailedPrecondition(Refuse(code, parts...).ToString());
}

/// Inverse of Refusal::ToString. Text that begins with no word of the table is kNoSchedule, with
/// all of it as words; empty text is none.
Refusal RefusalFrom(std::string_view text);

}  // namespace fusion
