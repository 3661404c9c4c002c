#pragma once

#include <functional>

#include "core/base/key_field.h"
#include "core/base/logging.h"
#include "core/learn/latency_book.h"
#include "core/pipeline/plan_fusion.h"
#include "server/access/authenticator.h"
#include "server/access/rpc_record.h"
#include "server/access/signer.h"
#include "server/admission/admission.h"
#include "server/admission/answer_memory.h"
#include "server/admission/log_sample.h"
#include "server/rpc/response_cache.h"

namespace grpc {
class CallbackServerContext;
}

namespace fusion {

/// What calls need. Outlives the service.
struct ServiceParts {
  FusionPipeline& pipeline;
  Store& store;
  LatencyBook& book;
  std::function<Capabilities()> capabilities;
  const Authenticator& authenticator;
  Signer& signer;
  const std::vector<SigningKey>& import_keys;  // of --import-key
  Admission& admission;
  const JobMemory& job_memory;  // of imports and plannings
  ResponseCache& warm;
  RpcObserver& observer;
  Logger& logger;
  LogSample& usual_log;  // of calls answered from the caches
  LogSample& other_log;
  /// Told of each call as it begins.
  std::function<void(const grpc::CallbackServerContext& context)> begins =
      [](const grpc::CallbackServerContext&) {};
  /// Told of the bytes of its request, or of a part of it, once they came.
  std::function<void(const grpc::CallbackServerContext& context, int64_t bytes)> requested =
      [](const grpc::CallbackServerContext&, int64_t) {};
  /// Told what each answer, or the part of one that is being sent, keeps of memory until it is
  /// read. ResourceExhausted: that is too much, and it must not be sent.
  std::function<absl::Status(const grpc::CallbackServerContext& context, const AnswerMemory& kept)>
      answers =
          [](const grpc::CallbackServerContext&, const AnswerMemory&) { return absl::OkStatus(); };
  /// Told that a call may take as long as its caller likes.
  std::function<void(const grpc::CallbackServerContext& context)> lasts =
      [](const grpc::CallbackServerContext&) {};
  const Clock& clock = Clock::Real();
  int64_t max_request_bytes = 0;
  /// No call takes longer, whatever its own deadline is.
  Nanoseconds call_limit = std::chrono::minutes(10);
  bool tenant_namespaces = false;

  /// False for what the tenant must not know of, by its full key.
  bool Shows(std::string_view full_key, std::string_view tenant) const {
    return !tenant_namespaces || (!tenant.empty() && TenantOfKey(full_key) == tenant);
  }
};

}  // namespace fusion
