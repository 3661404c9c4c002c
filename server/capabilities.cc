#include "server/capabilities.h"

#include "core/base/kernel_abi.h"
#include "core/bundle/measured/report_origin.h"
#include "core/codegen/backend.h"
#include "core/graph/graph.h"
#include "core/import/import.h"
#include "core/import/sources/supported_ops.h"
#include "core/onnx/limits.h"
#include "core/tensor/shape.h"
#include "core/tune/tile_search.h"
#include "core/wire/basics/limits.h"
#include "core/wire/plan.h"
#include "core/wire/report.h"
#include "server/admission/object_count.h"
#include "server/rpc/request_codec.h"

namespace fusion {
namespace {

DeviceCapability DeviceOf(const DeviceSpec& spec, const Toolchain& toolchain) {
  bool has_backend = FindBackend(spec.backend).ok();
  bool compiles = has_backend && toolchain.SupportsIsa(spec.isa).ok();
  return {.name = spec.name,
          .description = StrCat(spec.kind, ", ", spec.arch,
                                !has_backend || compiles      ? ""
                                : toolchain.version().empty() ? "; there is no compiler"
                                                              : "; the compiler does not know it"),
          .backend = compiles ? spec.backend : "",
          .isa = spec.arch};
}

std::vector<OpCapability> ModelOps() {
  std::vector<OpCapability> ops;
  for (const SupportedOp& op : SupportedOps()) {
    ops.push_back({op.name, op.min_opset, op.max_opset});
  }
  return ops;
}

int64_t Milliseconds(double seconds) { return static_cast<int64_t>(seconds * 1e3); }

// In the order in which a request is checked against them.
std::vector<ServiceLimit> LimitsOf(const ServerConfig& config, const PipelineOptions& pipeline) {
  int64_t calls = config.request_threads + config.request_queue;
  std::vector<ServiceLimit> limits = {
      {"request bytes", config.max_request_bytes, "bytes", "--max-request-bytes"},
      {"calls under way", calls, "calls", "--request-threads plus --request-queue"},
      {"calls at work", config.request_threads, "calls", "--request-threads"},
      {"answers being read in parts", config.max_streams, "calls", "--max-streams"},
      {"connections", config.max_connections, "connections", "--max-connections"},
      {"time of a call", Milliseconds(config.call_seconds), "ms", "--call-seconds"},
      {"bytes of requests under way", config.max_inflight_bytes, "bytes", "--max-inflight-bytes"},
      {"memory of a planning", config.planning_bytes, "bytes", "--planning-bytes"},
      {"steps of a planning", config.planning_steps, "steps", "--planning-steps"},
      {"messages, texts and numbers / 8 in a request", kMaxRequestObjects, "objects", ""},
      {"nesting of messages", kMaxMessageDepth, "levels", ""},
      {"keys in a GetKernels call", kMaxKernelKeys, "keys", ""},
      {"plans in a GetReport or ListPlans answer", kMaxListedPlans, "plans", ""},
      {"samples of one launch in a report", kMaxReportSamples, "samples", ""},
      {"reports in a ReportLatencies call", kMaxStreamedReports, "reports", ""},
      {"threads of a target", kMaxTargetThreads, "threads", ""},
      {"dim bindings", kMaxDimBindings, "entries", ""},
      {"kept outputs", kMaxKeptOutputs, "entries", ""},
      {"rules of a request", kMaxRules, "rules", ""},
      {"bytes of a constant that always travels", kInlineLimitBytes, "bytes", ""},
      {"bytes of a mask or index that travels", kInlineMaskLimitBytes, "bytes", ""},
      {"nodes of a graph", kMaxImportedNodes, "nodes", ""},
      {"steps that the nodes of a graph fall apart into", kMaxGraphLoopOps, "steps", ""},
      {"bytes of constants of such steps", kMaxGraphStepConstantBytes, "bytes", ""},
      {"rank of a tensor", kMaxTensorRank, "dims", ""},
      {"extent of a dim", kMaxExtent, "elements", ""},
      {"bytes of a tensor", kMaxTensorBytes, "bytes", ""},
      {"planning of a graph", pipeline.planning.limit / std::chrono::milliseconds(1), "ms", ""},
      {"opt level of a plan", config.max_opt_level, "level", "--max-opt-level"},
      {"searches for tiles that wait", static_cast<int64_t>(pipeline.builds.search_queue),
       "searches", ""},
      {"search for tiles, level 1", BudgetOf(1).limit / std::chrono::milliseconds(1), "ms", ""},
      {"search for tiles, level 2", BudgetOf(2).limit / std::chrono::milliseconds(1), "ms", ""},
      {"search for tiles, level 3", BudgetOf(3).limit / std::chrono::milliseconds(1), "ms", ""},
      {"kernels waiting for a worker", config.compile_queue, "kernels", "--compile-queue"},
      {"compiler time of a kernel", Milliseconds(config.compile_seconds), "ms",
       "--compile-seconds"},
      {"memory of a failed kernel", Milliseconds(config.failure_ttl_seconds), "ms",
       "--failure-ttl-seconds"},
      {"address space of a worker (0: no limit)", config.worker_memory_bytes, "bytes",
       "--worker-memory"},
      {"bytes kept in memory", config.memory_limit_bytes, "bytes", "--memory-limit"},
  };
  if (config.store_dir.empty()) return limits;
  const bool bounded = config.store_limit_bytes < INT64_MAX;
  limits.push_back({"bytes kept on disk (0: no limit)", bounded ? config.store_limit_bytes : 0,
                    "bytes", "--store-limit"});
  return limits;
}

}  // namespace

Capabilities CapabilitiesOf(const ServerConfig& config, const std::vector<DeviceSpec>& specs,
                            const Toolchain& toolchain, const PipelineOptions& pipeline) {
  Capabilities out{.version = std::string(ServerVersion()),
                   .plan_version = kPlanVersion,
                   .kernel_abi_version = FUSION_KERNEL_ABI_VERSION,
                   .compiler = toolchain.Available().ok() ? toolchain.version() : "",
                   .workers = config.workers,
                   .durable_store = !config.store_dir.empty(),
                   .devices = {},
                   .ops = ModelOps(),
                   .limits = LimitsOf(config, pipeline),
                   .sandbox = {}};
  for (const DeviceSpec& spec : specs) out.devices.push_back(DeviceOf(spec, toolchain));
  return out;
}

}  // namespace fusion
