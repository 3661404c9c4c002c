#pragma once

#include <string>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/bundle/plan.h"
#include "core/bundle/report.h"

// The enums of fusion/v1/*.pb.h, declared without the cost of including them.
namespace fusion::v1 {
enum DataType : int;
enum Numerics : int;
enum FusionMode : int;
enum PlanMode : int;
enum Space : int;
enum GroupKind : int;
enum KernelState : int;
enum DecisionSubject : int;
enum Verdict : int;
enum RegisteredKernelState : int;
}  // namespace fusion::v1

namespace fusion {

/// Enums in both directions. FromWire fails with InvalidArgument for an unknown number. Where the
/// .proto has a default for UNSPECIFIED (numerics, fusion, mode), FromWire returns that default.
v1::DataType ToWire(DType type);
v1::Numerics ToWire(Numerics numerics);
v1::FusionMode ToWire(FusionMode fusion);
v1::PlanMode ToWire(PlanMode mode);
v1::Space ToWire(Space space);
v1::GroupKind ToWire(GroupKind kind);
v1::KernelState ToWire(KernelState state);
v1::DecisionSubject ToWire(DecisionSubject subject);
v1::Verdict ToWire(Verdict verdict);
v1::RegisteredKernelState ToWire(RegisteredState state);

absl::StatusOr<DType> FromWire(v1::DataType type);
absl::StatusOr<Numerics> FromWire(v1::Numerics numerics);
absl::StatusOr<FusionMode> FromWire(v1::FusionMode fusion);
absl::StatusOr<PlanMode> FromWire(v1::PlanMode mode);
absl::StatusOr<Space> FromWire(v1::Space space);
absl::StatusOr<GroupKind> FromWire(v1::GroupKind kind);
absl::StatusOr<DecisionSubject> FromWire(v1::DecisionSubject subject);
absl::StatusOr<Verdict> FromWire(v1::Verdict verdict);
absl::StatusOr<RegisteredState> FromWire(v1::RegisteredKernelState state);
/// For the kernels of a plan. KERNEL_STATE_UNKNOWN, which only GetKernels returns, is
/// InvalidArgument here.
absl::StatusOr<KernelState> FromWire(v1::KernelState state);

/// The 32 bytes of a digest, for a `bytes` field.
std::string DigestToWire(const Digest& digest);
/// InvalidArgument unless there are exactly 32 bytes.
absl::StatusOr<Digest> DigestFromWire(std::string_view bytes);

/// Maximum length of names that this code base defines (target, feature, backend, symbol) in a
/// message.
inline constexpr size_t kMaxNameBytes = 256;
/// InvalidArgument, naming `field`, if `text` is longer.
absl::Status CheckName(std::string_view field, std::string_view text);

/// InvalidArgument, naming `field`, if a count is negative.
absl::Status CheckCounted(std::string_view field, int64_t count);
/// InvalidArgument, naming `field`, if a measured quantity is negative or not finite.
absl::Status CheckMeasured(std::string_view field, double value);

/// True if `text` is well-formed UTF-8. A receiver cannot parse a message with a `string` field
/// that is not.
bool IsUtf8(std::string_view text);
/// `text` for a `string` field: unchanged if it is UTF-8, else with every byte outside ASCII
/// replaced by '?'.
std::string TextToWire(std::string_view text);

/// The first `most` bytes of a text, or fewer so that no UTF-8 character is split.
std::string Beginning(std::string_view text, size_t most);

}  // namespace fusion
