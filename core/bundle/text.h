#pragma once

#include <string>
#include <string_view>

#include "core/bundle/answer.h"

namespace fusion {

// Text forms of plans, for people. Pure; any thread.

std::string_view KindName(GroupKind kind);              // "inner", "cross-operator", ...
std::string_view SpaceName(Space space);                // "input", "arena", ...
std::string_view FusionName(FusionMode fusion);         // "fused", "op by op"
std::string_view SubjectName(DecisionSubject subject);  // "candidate", "group", ...
std::string_view VerdictName(Verdict verdict);          // "chosen", "refused", "no-gain", ...
std::string_view NumericsName(Numerics numerics);       // "fp32-accumulate", "bitwise", "fast"
std::string_view TileSearchStateName(TileSearchState state);  // "none", "pending", ...

/// "intel-skylake-server (avx512, 2 threads)".
std::string TargetText(const Plan& plan);

/// "launches 2..4 run in 100 passes; from one to the next t3 to t9; along t2, t8".
std::string LoopText(const PlanLoop& loop);

/// The plan's target, tensors with their memory, launches and groups. `names`: the caller's names;
/// missing ones are omitted. Ends with a newline.
///
///   fused, fp32-accumulate, for generic-avx2 (avx2, 1 thread)
///   0 B between kernels, 0 B of prepared weights
///
///   tensors
///     t0  f32[4,8]  input 0 "x"
///   ...
std::string PlanText(const Plan& plan, const Binding& names);

/// The decision ledger: one line per entry, followed by the changes that would reverse it.
/// Candidates are shown by their canonical node positions.
///
///   group 1  chosen: gains 4.2 us of 9.1 us: ...
///   groups 1 > 2 and 11 more  cyclic: 1 group lies between the two
///     possible if nothing lay between, or if that joined as well
///   [0] + [1]  chosen: gains 4.2 us
std::string DecisionsText(const Plan& plan);

}  // namespace fusion
