#include "core/base/refusal.h"

#include <algorithm>

#include "core/base/check.h"

namespace fusion {
namespace {

constexpr RefusalEntry kTable[] = {
    {RefusalCode::kCyclic, "cyclic", Verdict::kRefused,
     "a third group reads from the first and the second reads from it, so it must run in between"},
    {RefusalCode::kLoop, "loop", Verdict::kRefused,
     "a part is a loop: its launches run once in every pass, and by themselves"},
    {RefusalCode::kOpaque, "opaque", Verdict::kRefused,
     "a part is no loop over elements (a sort, a running sum, a choice of boxes): it is a kernel "
     "of "
     "its own"},
    {RefusalCode::kLarge, "large", Verdict::kRefused,
     "together they have more loop ops than one kernel may have"},
    {RefusalCode::kWide, "wide", Verdict::kRefused,
     "together they read more inputs than one kernel may read"},
    {RefusalCode::kPrepare, "prepare", Verdict::kRefused,
     "one side is computed from weights alone, once; the other one at every run"},
    {RefusalCode::kView, "view", Verdict::kRefused,
     "the first node is a view: every reader looks through it, so nothing is left to fuse"},
    {RefusalCode::kNoGain, "no-gain", Verdict::kNoGain,
     "one kernel is estimated to be no faster than two"},
    {RefusalCode::kSuperseded, "superseded", Verdict::kSuperseded,
     "it would gain, but one of its sides went into another group"},
    {RefusalCode::kPhases, "phases", Verdict::kRefused,
     "they are in two launches of several phases: a launch ends with its layer, and where it would "
     "be too long"},
    {RefusalCode::kPipeline, "pipeline", Verdict::kRefused,
     "two phases of a launch do not run slice by slice without a barrier: they do not keep to the "
     "same slices, or take longer"},
    {RefusalCode::kAlone, "alone", Verdict::kForbidden,
     "a kernel that held the node failed, so the node is fused with nothing"},
    {RefusalCode::kPressure, "pressure", Verdict::kForbidden,
     "a hint's pressure is high: the speed-up does not justify the group, or the least memory that "
     "was "
     "found does without it"},
    {RefusalCode::kOpByOp, "op-by-op", Verdict::kForbidden,
     "the request asked for one kernel a node"},
    {RefusalCode::kRule, "rule", Verdict::kForbidden,
     "a rule of the request or of the server forbids one kernel with all of its nodes"},
    {RefusalCode::kRegistered, "registered", Verdict::kForbidden,
     "a registered kernel of the server is forced for a part of it, and computes nothing else"},
    {RefusalCode::kBias, "bias", Verdict::kForbidden,
     "one kernel is estimated to be faster, but not as a rule weighs the estimates"},
    {RefusalCode::kLocked, "locked", Verdict::kForbidden,
     "it would gain; the lock that the request came with keeps them apart"},
    {RefusalCode::kReshape, "reshape", Verdict::kRefused,
     "a value is read under a shape that has no common factors with its own, so from memory"},
    {RefusalCode::kAlias, "alias", Verdict::kRefused,
     "an intermediate is read along other dims than it is written"},
    {RefusalCode::kShift, "shift", Verdict::kRefused,
     "an intermediate is read at an offset that one loop over both cannot follow"},
    {RefusalCode::kColumns, "columns", Verdict::kRefused,
     "blocks would cut packed columns inside their panels"},
    {RefusalCode::kRoles, "roles", Verdict::kRefused,
     "products of one loop nest do not agree on rows and columns"},
    {RefusalCode::kNoBlocks, "no-blocks", Verdict::kRefused,
     "no dim can be cut so that blocks do not depend on each other"},
    {RefusalCode::kOnChip, "on-chip", Verdict::kRefused,
     "the tiles of a block need more memory on chip than a block has"},
    {RefusalCode::kEmpty, "empty", Verdict::kRefused,
     "a part has no work, and nothing is joined with it"},
    {RefusalCode::kSideBySide, "side-by-side", Verdict::kRefused,
     "a part has several phases, so it does not run beside another one"},
    {RefusalCode::kLayout, "layout", Verdict::kRefused,
     "a phase reads a value in another order than an earlier one writes it"},
    {RefusalCode::kNeedsFinishedReduction, "needs-finished-reduction", Verdict::kRefused,
     "an op along a dim needs a finished reduction along it, so the dim cannot be streamed"},
    {RefusalCode::kCrossing, "crossing", Verdict::kRefused,
     "an op reads an intermediate at other places along the dim, which cannot be streamed"},
    {RefusalCode::kShiftedState, "shifted-state", Verdict::kRefused,
     "a partial result is read at an offset"},
    {RefusalCode::kStateInReduction, "state-in-reduction", Verdict::kRefused,
     "what depends on a partial result is reduced along another dim before it is summed"},
    {RefusalCode::kMonoid, "monoid", Verdict::kRefused,
     "what depends on a partial result is folded by something else than a sum or an extremum"},
    {RefusalCode::kRounding, "rounding", Verdict::kRefused,
     "rounding does not commute with a scale that changes from tile to tile"},
    {RefusalCode::kNotSeparable, "not-separable", Verdict::kRefused,
     "no law of arithmetic separates a partial result from what varies along the dim"},
    {RefusalCode::kUnbounded, "unbounded", Verdict::kRefused,
     "an exponent may grow without bound while partial results change"},
    {RefusalCode::kUnboundedUpdate, "unbounded-update", Verdict::kRefused,
     "the factor between two tiles may be larger than 1"},
    {RefusalCode::kUnboundedError, "unbounded-error", Verdict::kRefused,
     "nothing bounds the digits that are lost while a partial result changes"},
    {RefusalCode::kNotTotal, "not-total", Verdict::kRefused,
     "the factor between two tiles has no value before the first one"},
    {RefusalCode::kInfinities, "infinities", Verdict::kRefused,
     "the separated form would lose a NaN that infinities make"},
    {RefusalCode::kNoSchedule, "no-schedule", Verdict::kRefused, "no schedule was found"},
};
static_assert(std::size(kTable) == static_cast<size_t>(RefusalCode::kNoSchedule));

}  // namespace

std::span<const RefusalEntry> RefusalTable() { return kTable; }

const RefusalEntry& RefusalRow(RefusalCode code) {
  FUSION_CHECK(code != RefusalCode::kNone, "no refusal has no row");
  return kTable[static_cast<size_t>(code) - 1];
}

const RefusalEntry* FindRefusal(std::string_view word) {
  const auto* row = std::find_if(std::begin(kTable), std::end(kTable),
                                 [&](const RefusalEntry& entry) { return entry.word == word; });
  return row == std::end(kTable) ? nullptr : row;
}

std::string Refusal::ToString() const {
  return empty() ? "" : StrCat(RefusalRow(code).word, ": ", words);
}

Refusal RefusalFrom(std::string_view text) {
  if (text.empty()) return {};
  constexpr std::string_view kSeparator = ": ";
  size_t split = text.find(kSeparator);
  if (split != std::string_view::npos) {
    const RefusalEntry* row = FindRefusal(text.substr(0, split));
    if (row != nullptr) return {row->code, std::string(text.substr(split + kSeparator.size()))};
  }
  return {RefusalCode::kNoSchedule, std::string(text)};
}

}  // namespace fusion
