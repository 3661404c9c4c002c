#pragma once

#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/bundle/plan.h"
#include "core/device/target.h"

namespace fusion::v1 {
class OpGraph;
class PlanFusionResponse;
}  // namespace fusion::v1

namespace fusion {

/// Texts a request can ask for, made on the way from graph to kernels.
enum class PlanText : uint8_t {
  kGraph,     // the normalised graph
  kProgram,   // its loop ops
  kSmg,       // space-mapping graph of each group
  kSchedule,  // schedule of each kernel
  kSource,    // generated source of each kernel
};

/// One PlanFusion call. Exactly one of `onnx_model` and `op_graph`.
struct FusionRequest {
  std::string onnx_model;                 // serialised; ReferenceWeights makes it small
  const v1::OpGraph* op_graph = nullptr;  // the caller's
  Target target;                          // DetectTarget()
  PlanMode mode = PlanMode::kCompile;
  Nanoseconds ready_within{0};  // kByDeadline
  PlanOptions options;
  std::vector<PlanText> texts;
  std::string request_id;  // for the server's log
};

/// What the service answered, checked: positions are in range, names and kernels fit the plan.
struct FusionReply {
  /// The caller's names for the canonical positions of the plan; lengths as in the plan.
  struct Binding {
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::vector<std::string> weights;
    std::vector<std::string> nodes;
  };
  struct Kernel {
    Digest key;
    KernelState state = KernelState::kPending;
    Digest content;     // kReady, as all below: SHA-256 of the shared object
    int64_t bytes = 0;  // of the shared object
    CheckReport check;
    bool cached = false;  // the request found it compiled
    double compile_ms = 0;
  };
  struct Stage {
    std::string name;
    double milliseconds = 0;
  };
  struct Text {
    PlanText kind = PlanText::kGraph;
    std::string name;  // "graph", "program", "group 3", or the key of a kernel in hex
    std::string text;
  };
  enum class Cache : uint8_t { kMiss, kHitMemory, kHitStore, kSharedFlight };

  Plan plan;
  Digest plan_key;
  Binding binding;
  std::vector<Kernel> kernels;  // by plan kernel
  Cache cache = Cache::kMiss;
  std::vector<Stage> stages;  // server-side times, in order
  std::vector<Text> texts;
  std::vector<std::string> warnings;
};

/// "planned", "memory", "store", "shared": where the plan of a reply came from.
std::string_view CacheName(FusionReply::Cache cache);

/// The reply as plain values, for bytes that nobody vouches for: the plan as DecodePlan does it;
/// InvalidArgument, naming the field, if names or kernels do not fit the plan.
absl::StatusOr<FusionReply> DecodeReply(const v1::PlanFusionResponse& wire);

}  // namespace fusion
