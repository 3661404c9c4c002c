#include "server/call_census.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <vector>

namespace fusion {
namespace {

// With 16,384 peers one takes about a millisecond.
constexpr Nanoseconds kReportEvery = std::chrono::milliseconds(10);

bool IsOverTcp(const std::string& peer) { return !peer.starts_with("unix:"); }

}  // namespace

void CallCensus::Add(const grpc::CallbackServerContext& context) {
  std::string most_of;
  int64_t calls = 0;
  {
    MutexLock lock(&mutex_);
    const Nanoseconds now = clock_.Now();
    auto peer = calls_.try_emplace(context.peer()).first;
    ++peer->second;
    Call& call = made_.at(&context);
    call.peer = peer;
    call.begun = now;
    if (++begun_ <= most_ || now - reported_ < kReportEvery) return;
    reported_ = now;
    for (const auto& [name, count] : calls_) {
      if (count <= calls || !IsOverTcp(name)) continue;
      most_of = name;
      calls = count;
    }
  }
  if (calls > 0) reports_.too_many(most_of, calls);
}

int64_t CallCensus::EndOlderThan(Nanoseconds limit) {
  std::vector<grpc_call*> late;
  {
    MutexLock lock(&mutex_);
    const Nanoseconds now = clock_.Now();
    for (auto& [context, call] : made_) {
      if (call.peer == calls_.end() || call.ended || now - call.begun <= limit) continue;
      call.ended = true;
      late.push_back(call.context->c_call());
      grpc_call_ref(late.back());  // gRPC's own goes after Release
    }
  }
  // Unlocked: what ends there comes back to Release.
  for (grpc_call* call : late) {
    grpc_call_cancel_with_status(call, GRPC_STATUS_DEADLINE_EXCEEDED,
                                 "the call took longer than this server lets any (--call-seconds)",
                                 nullptr);
    grpc_call_unref(call);
  }
  return static_cast<int64_t>(late.size());
}

grpc::CallbackServerContext* CallCensus::NewCallbackServerContext() {
  auto* context = new grpc::CallbackServerContext;
  MutexLock lock(&mutex_);
  made_.emplace(context, Call{context, calls_.end()});
  return context;
}

void CallCensus::Release(grpc::CallbackServerContext* context) {
  std::string taken_back_by;
  {
    MutexLock lock(&mutex_);
    auto made = made_.find(context);
    if (made == made_.end()) return;
    if (const Peers::iterator peer = made->second.peer; peer != calls_.end()) {
      --begun_;
      if (context->IsCancelled() && !made->second.ended) taken_back_by = peer->first;
      if (--peer->second == 0) calls_.erase(peer);
    }
    made_.erase(made);
  }
  delete context;
  if (!taken_back_by.empty()) reports_.taken_back(taken_back_by);
}

}  // namespace fusion
