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
  std::string onnx_model;                 // serialised; remove weights with ReferenceWeights
  const v1::OpGraph* op_graph = nullptr;  // owned by the caller
  Target target;                          // DetectTarget()
  PlanMode mode = PlanMode::kCompile;
  Nanoseconds ready_within{0};  // kByDeadline
  PlanOptions options;
  std::vector<DumpKind> dumps;
  std::string request_id;  // for the server's log
  std::string model_name;  // for lists and reports; not part of the plan's key
  /// W3C Trace Context of the caller's operation, for the server's log; empty: that of the client.
  std::string traceparent;
  /// Accept a model whose groups are already nodes (ExportFused); it is planned as the original
  /// model. If false, such a model is InvalidArgument, "ALREADY_FUSED: ...".
  bool allow_fused = false;
  bool explain_miss = false;  // sets FusionReply::miss
};

/// The answer of the service, validated: positions are in range, names and kernels match the plan.
struct FusionReply {
  Plan plan;
  Digest plan_key;
  Binding binding;
  std::vector<KernelStatus> kernels;  // by plan kernel
  CacheOutcome cache = CacheOutcome::kMiss;
  std::vector<StageTime> stages;  // on the server, in order
  std::vector<Dump> dumps;
  /// Pins the plan if it is PlanOptions::lock of a later request; null unless requested by
  /// DumpKind::kLock.
  std::shared_ptr<const PlanLock> lock;
  std::vector<std::string> warnings;
  /// The nearest stored plan; set if requested and if the service supports it.
  std::optional<MissExplanation> miss;
};

/// Decodes an untrusted reply. InvalidArgument, naming the field: from DecodePlan, or if names or
/// kernels do not match the plan.
absl::StatusOr<FusionReply> DecodeReply(const v1::PlanFusionResponse& wire);

}  // namespace fusion
