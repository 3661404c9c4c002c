#include "core/wire/basics/scalars.h"

#include <cmath>
#include <cstring>

#include "fusion/v1/fusion_service.pb.h"
#include "fusion/v1/op_graph.pb.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

// Every wire enum is UNSPECIFIED = 0, then our values in our order: first = 1, second = 2, ...
template <typename Wire, typename Ours>
Wire Shift(Ours value) {
  return static_cast<Wire>(static_cast<int>(value) + 1);
}

template <typename Ours>
absl::StatusOr<Ours> Unshift(int value, Ours last) {
  if (value < 1 || value > static_cast<int>(last) + 1) {
    return InvalidArgument("unknown value ", value, "; expected 1..", static_cast<int>(last) + 1);
  }
  return static_cast<Ours>(value - 1);
}

// Bytes of the UTF-8 sequence that starts with `lead`; 0 if none does.
size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

bool IsSequence(std::string_view text, size_t length) {
  if (text.size() < length) return false;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return false;
  }
  if (length < 3) return true;
  auto lead = static_cast<unsigned char>(text[0]);
  auto second = static_cast<unsigned char>(text[1]);
  // Overlong forms, surrogates and code points beyond U+10FFFF.
  return !(lead == 0xe0 && second < 0xa0) && !(lead == 0xed && second > 0x9f) &&
         !(lead == 0xf0 && second < 0x90) && !(lead == 0xf4 && second > 0x8f);
}

static_assert(v1::DATA_TYPE_F4E2M1 == static_cast<int>(DType::kF4E2M1) + 1);
static_assert(v1::NUMERICS_FAST == static_cast<int>(Numerics::kFast) + 1);
static_assert(v1::FUSION_MODE_OP_BY_OP == static_cast<int>(FusionMode::kOpByOp) + 1);
static_assert(v1::PLAN_MODE_BY_DEADLINE == static_cast<int>(PlanMode::kByDeadline) + 1);
static_assert(v1::SPACE_PASS == static_cast<int>(Space::kPass) + 1);
static_assert(v1::GROUP_KIND_PREPARE == static_cast<int>(GroupKind::kPrepare) + 1);
static_assert(v1::DECISION_SUBJECT_SIBLINGS == static_cast<int>(DecisionSubject::kSiblings) + 1);
static_assert(v1::VERDICT_FORBIDDEN == static_cast<int>(Verdict::kForbidden) + 1);
static_assert(v1::KERNEL_STATE_FAILED == static_cast<int>(KernelState::kFailed) + 1);
static_assert(v1::REGISTERED_KERNEL_STATE_QUARANTINED ==
              static_cast<int>(RegisteredState::kQuarantined) + 1);

}  // namespace

v1::DataType ToWire(DType type) { return Shift<v1::DataType>(type); }
v1::Numerics ToWire(Numerics numerics) { return Shift<v1::Numerics>(numerics); }
v1::FusionMode ToWire(FusionMode fusion) { return Shift<v1::FusionMode>(fusion); }
v1::PlanMode ToWire(PlanMode mode) { return Shift<v1::PlanMode>(mode); }
v1::Space ToWire(Space space) { return Shift<v1::Space>(space); }
v1::GroupKind ToWire(GroupKind kind) { return Shift<v1::GroupKind>(kind); }
v1::KernelState ToWire(KernelState state) { return Shift<v1::KernelState>(state); }
v1::DecisionSubject ToWire(DecisionSubject subject) { return Shift<v1::DecisionSubject>(subject); }
v1::Verdict ToWire(Verdict verdict) { return Shift<v1::Verdict>(verdict); }
v1::RegisteredKernelState ToWire(RegisteredState state) {
  return Shift<v1::RegisteredKernelState>(state);
}

absl::StatusOr<DType> FromWire(v1::DataType type) { return Unshift(type, DType::kF4E2M1); }
absl::StatusOr<Numerics> FromWire(v1::Numerics numerics) {
  if (numerics == v1::NUMERICS_UNSPECIFIED) return Numerics::kFp32Accumulate;
  return Unshift(numerics, Numerics::kFast);
}
absl::StatusOr<FusionMode> FromWire(v1::FusionMode fusion) {
  if (fusion == v1::FUSION_MODE_UNSPECIFIED) return FusionMode::kFused;
  return Unshift(fusion, FusionMode::kOpByOp);
}
absl::StatusOr<PlanMode> FromWire(v1::PlanMode mode) {
  if (mode == v1::PLAN_MODE_UNSPECIFIED) return PlanMode::kCompile;
  return Unshift(mode, PlanMode::kByDeadline);
}
absl::StatusOr<Space> FromWire(v1::Space space) { return Unshift(space, Space::kPass); }
absl::StatusOr<GroupKind> FromWire(v1::GroupKind kind) {
  return Unshift(kind, GroupKind::kPrepare);
}
absl::StatusOr<DecisionSubject> FromWire(v1::DecisionSubject subject) {
  return Unshift(subject, DecisionSubject::kSiblings);
}
absl::StatusOr<Verdict> FromWire(v1::Verdict verdict) {
  return Unshift(verdict, Verdict::kForbidden);
}
absl::StatusOr<RegisteredState> FromWire(v1::RegisteredKernelState state) {
  return Unshift(state, RegisteredState::kQuarantined);
}
absl::StatusOr<KernelState> FromWire(v1::KernelState state) {
  return Unshift(state, KernelState::kFailed);
}

std::string DigestToWire(const Digest& digest) { return std::string(BytesOf(digest)); }

absl::StatusOr<Digest> DigestFromWire(std::string_view bytes) {
  Digest digest;
  if (bytes.size() != digest.bytes.size()) {
    return InvalidArgument("a digest of ", bytes.size(), " bytes; expected ", digest.bytes.size());
  }
  std::memcpy(digest.bytes.data(), bytes.data(), bytes.size());
  return digest;
}

absl::Status CheckCounted(std::string_view field, int64_t count) {
  if (count >= 0) return absl::OkStatus();
  return InvalidArgument(field, ": ", count, "; expected 0 or more");
}

absl::Status CheckMeasured(std::string_view field, double value) {
  // Written so that NaN fails too.
  if (value >= 0 && std::isfinite(value)) return absl::OkStatus();
  return InvalidArgument(field, ": ", value, "; expected a finite number of at least 0");
}

absl::Status CheckName(std::string_view field, std::string_view text) {
  if (text.size() <= kMaxNameBytes) return absl::OkStatus();
  return InvalidArgument(field, ": ", text.size(), " bytes; at most ", kMaxNameBytes);
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    size_t length = SequenceLength(static_cast<unsigned char>(text[i]));
    if (length == 0 || !IsSequence(text.substr(i, length), length)) return false;
    i += length;
  }
  return true;
}

std::string TextToWire(std::string_view text) {
  std::string out(text);
  if (IsUtf8(text)) return out;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return out;
}

std::string Beginning(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return std::string(text.substr(0, most));
}

}  // namespace fusion
