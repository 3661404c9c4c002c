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
#include "server/rpc/server_status.h"

namespace grpc {
class CallbackServerContext;
}

namespace fusion {

/// The dependencies of calls, not owned. All must outlive the service.
struct ServiceParts {
  FusionPipeline& pipeline;
  Store& store;
  LatencyBook& book;
  /// What callers of a tenant may see of the epochs (EpochBook::List). Any thread.
  std::function<EpochList(std::optional<std::string_view> tenant)> epochs;
  /// Fits constants now. Returns a line for each outcome. FailedPrecondition: learning is off.
  std::function<absl::StatusOr<std::vector<std::string>>(const CancelToken& cancel)> train;
  /// As EpochBook::RollBack.
  std::function<absl::Status(int64_t epoch, std::string_view reason)> roll_back;
  std::function<Capabilities()> capabilities;  // called on any thread
  /// Called on any thread; ends early, without top plans, if `cancel` does.
  std::function<ServerStatus(const CancelToken& cancel)> status;
  const Authenticator& authenticator;
  Signer& signer;
  const std::vector<SigningKey>& import_keys;  // --import-key
  Admission& admission;
  const JobMemory& job_memory;  // of imports and plannings
  ResponseCache& warm;          // first level of the cache
  RpcObserver& observer;
  Logger& logger;
  LogSample& usual_log;  // for calls answered OK from the caches
  LogSample& other_log;  // for all other calls

  // Callbacks of GrpcServer; any thread.
  /// A call begins.
  std::function<void(const grpc::CallbackServerContext& context)> begins =
      [](const grpc::CallbackServerContext&) {};
  /// `bytes` of its request, or of a message of it, have arrived completely.
  std::function<void(const grpc::CallbackServerContext& context, int64_t bytes)> requested =
      [](const grpc::CallbackServerContext&, int64_t) {};
  /// The memory that an answer, or the message being sent, keeps until it is read.
  /// ResourceExhausted: too much is unread, and it must not be sent.
  std::function<absl::Status(const grpc::CallbackServerContext& context, const AnswerMemory& kept)>
      answers =
          [](const grpc::CallbackServerContext&, const AnswerMemory&) { return absl::OkStatus(); };
  /// The server does not end the call at call_limit (CallTracker::SetLasting).
  std::function<void(const grpc::CallbackServerContext& context)> lasts =
      [](const grpc::CallbackServerContext&) {};
  const Clock& clock = Clock::Real();
  int64_t max_request_bytes = 0;
  /// Maximum duration of a call, whatever its own deadline is; a day for FusionAdmin.
  Nanoseconds call_limit = std::chrono::minutes(10);
  bool tenant_namespaces = false;

  /// Whether `tenant` may see the plan or kernel with this full key.
  bool Shows(std::string_view full_key, std::string_view tenant) const {
    return !tenant_namespaces || (!tenant.empty() && TenantOfKey(full_key) == tenant);
  }
};

}  // namespace fusion
