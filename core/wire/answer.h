#pragma once

#include "core/bundle/answer.h"

namespace fusion::v1 {
class Binding;
class Dump;
class KernelStatus;
class MissExplanation;
class StageTime;
enum CacheOutcome : int;
enum DumpKind : int;
}  // namespace fusion::v1

namespace fusion {

v1::CacheOutcome ToWire(CacheOutcome outcome);
/// An unknown value (from a newer server) counts as kMiss: the field is only informative.
CacheOutcome FromWire(v1::CacheOutcome outcome);

v1::DumpKind ToWire(DumpKind kind);
/// InvalidArgument if unspecified, Unimplemented for an unknown number.
absl::StatusOr<DumpKind> FromWire(v1::DumpKind kind);

/// Each Encode* writes into an empty message. Names and texts that are not UTF-8 are changed by
/// TextToWire.
void EncodeBinding(const Binding& binding, v1::Binding* out);
/// Cannot fail.
Binding DecodeBinding(const v1::Binding& wire);

void EncodeKernelStatus(const KernelStatus& status, v1::KernelStatus* out);
/// InvalidArgument for a digest of the wrong length, negative sizes and times that are not finite.
absl::StatusOr<KernelStatus> DecodeKernelStatus(const v1::KernelStatus& wire);

void EncodeMiss(const MissExplanation& miss, v1::MissExplanation* out);
/// InvalidArgument for a digest of the wrong length.
absl::StatusOr<MissExplanation> DecodeMiss(const v1::MissExplanation& wire);

void EncodeStageTime(const StageTime& time, v1::StageTime* out);
/// Times that are NaN, negative or longer than a day become 0.
StageTime DecodeStageTime(const v1::StageTime& wire);

void EncodeDump(const Dump& dump, v1::Dump* out);
/// Fails as FromWire(kind) does.
absl::StatusOr<Dump> DecodeDump(const v1::Dump& wire);

}  // namespace fusion
