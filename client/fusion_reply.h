#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/bundle/answer.h"
#include "core/bundle/plan_lock.h"
#include "core/device/target.h"

namespace fusion::v1 {
class OpGraph;
class PlanFusionResponse;
}  // namespace fusion::v1

namespace fusion {

/// One PlanFusion call. Exactly one of `onnx_model` and `op_graph`.
struct FusionRequest {
  std::string onnx_model;                 // serialised; ReferenceWeights makes it small
  const v1::OpGraph* op_graph = nullptr;  // the caller's
  Target target;                          // DetectTarget()
  PlanMode mode = PlanMode::kCompile;
  Nanoseconds ready_within{0};  // kByDeadline
  PlanOptions options;
  std::vector<DumpKind> dumps;
  std::string request_id;  // for the server's log
  std::string model_name;  // what people call it, for lists and reports; no part of the plan's key
  /// W3C Trace Context of what this request is part of, for the server's log; empty: the client's.
  std::string traceparent;
  /// Whether the model may be one whose groups are nodes already (ExportFused): it is then planned
  /// as the one that it was written from. False: InvalidArgument, "ALREADY_FUSED: ...".
  bool allow_fused = false;
  bool explain_miss = false;  // FusionReply::miss is wanted
};

/// What the service answered, checked: positions are in range, names and kernels fit the plan.
struct FusionReply {
  Plan plan;
  Digest plan_key;
  Binding binding;
  std::vector<KernelStatus> kernels;  // by plan kernel
  CacheOutcome cache = CacheOutcome::kMiss;
  std::vector<StageTime> stages;  // on the server, in order
  std::vector<Dump> dumps;
  /// Pins the plan, as PlanOptions::lock of a later request; null unless asked for by
  /// DumpKind::kLock.
  std::shared_ptr<const PlanLock> lock;
  std::vector<std::string> warnings;
  /// The stored plan that is nearest to this one; if it was asked for and the service is not older.
  std::optional<MissExplanation> miss;
};

/// The reply as plain values, for bytes that nobody vouches for: the plan as DecodePlan does it;
/// InvalidArgument, naming the field, if names or kernels do not fit the plan.
absl::StatusOr<FusionReply> DecodeReply(const v1::PlanFusionResponse& wire);

}  // namespace fusion
