#pragma once

#include <string>

#include "core/base/clock.h"
#include "core/base/threads/fair_queue.h"
#include "core/bundle/options.h"
#include "core/device/target.h"
#include "core/import/graph_source.h"
#include "core/pipeline/requests/dump.h"

namespace fusion {

/// One PlanFusion call as plain values. Refers to the caller's bytes.
struct PlanRequest {
  GraphSource source;
  Target target;
  PlanMode mode = PlanMode::kCompile;
  Nanoseconds ready_within{0};  // kByDeadline
  PlanOptions options;
  DumpKinds dumps;
  bool allow_fused = false;   // as in ImportOptions
  bool explain_miss = false;  // sets PlanReply::miss
  std::string model_name;     // for people; not part of the key
  WorkOwner owner;            // for scheduling; does not change the result
};

/// The inputs of import and target resolution, framed: equal bytes mean equal work and equal names.
/// Costs one hash, unlike PlanKey, which needs the imported graph; other names or another node
/// order give other bytes. Only for requests that carry ONNX.
std::string RequestKey(const PlanRequest& request);

}  // namespace fusion
