#include "server/call_census.h"

#include <grpc/grpc.h>

#include <chrono>
#include <utility>
#include <vector>

#include "core/base/retry_after.h"
#include "core/base/text.h"

namespace fusion {
namespace {

// With 16,384 peers one takes about a millisecond.
constexpr Nanoseconds kReportEvery = std::chrono::milliseconds(10);
// A peer with no more than this part of what may be unread is let in above it.
constexpr int64_t kModestPart = 8;
// A deadline that leaves less is none: our own network takes as long.
constexpr Nanoseconds kLeastPatience = std::chrono::milliseconds(1);

bool IsOverTcp(const std::string& peer) { return !peer.starts_with("unix:"); }

}  // namespace

// Nobody if it was asked a short while before.
CallCensus::Heaviest CallCensus::FindHeaviest(int64_t Kept::*amount, Nanoseconds* reported) {
  Heaviest heaviest;
  const Nanoseconds now = clock_.Now();
  if (now - *reported < kReportEvery) return heaviest;
  *reported = now;
  for (const auto& [name, kept] : peers_) {
    if (kept.*amount <= heaviest.amount || !IsOverTcp(name)) continue;
    heaviest = {name, kept.*amount};
  }
  return heaviest;
}

void CallCensus::Add(const grpc::CallbackServerContext& context) {
  Heaviest heaviest;
  {
    MutexLock lock(&mutex_);
    auto peer = peers_.try_emplace(context.peer()).first;
    ++peer->second.calls;
    Call& call = made_.at(&context);
    call.peer = peer;
    call.begun = clock_.Now();
    if (++begun_ > most_.calls) heaviest = FindHeaviest(&Kept::calls, &reported_many_);
  }
  if (heaviest.amount > 0) reports_.too_many(heaviest.peer, heaviest.amount);
}

absl::Status CallCensus::SetAnswer(const grpc::CallbackServerContext& context, int64_t bytes) {
  Heaviest heaviest;
  absl::Status room;
  {
    MutexLock lock(&mutex_);
    Call& call = made_.at(&context);
    int64_t& own = call.peer->second.answer_bytes;
    const int64_t others = answer_bytes_ - call.answer_bytes;
    const int64_t beside = own - call.answer_bytes;
    const int64_t most = most_.answer_bytes;
    // Closing connections takes a while, in which answers are made faster than those go.
    if (others > 0 && others + bytes > most) {
      heaviest = FindHeaviest(&Kept::answer_bytes, &reported_much_);
      if (beside + bytes > most / kModestPart || others + bytes > most + most / 2) {
        room = ServerBusy("answers of ", HumanBytes(others), " are not read yet");
        bytes = 0;
      }
    }
    own = beside + bytes;
    answer_bytes_ = others + bytes;
    call.answer_bytes = bytes;
  }
  if (heaviest.amount > 0) reports_.too_much(heaviest.peer, heaviest.amount);
  return room;
}

void CallCensus::SetLasting(const grpc::CallbackServerContext& context) {
  MutexLock lock(&mutex_);
  made_.at(&context).lasting = true;
}

int64_t CallCensus::EndOlderThan(Nanoseconds limit) {
  std::vector<grpc_call*> late;
  {
    MutexLock lock(&mutex_);
    const Nanoseconds now = clock_.Now();
    for (auto& [context, call] : made_) {
      if (call.peer == peers_.end() || call.ended || call.lasting) continue;
      if (now - call.begun <= limit) continue;
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
  made_.emplace(context, Call{context, peers_.end()});
  return context;
}

bool CallCensus::WasTakenBack(const Call& call) const {
  if (call.ended || !call.context->IsCancelled()) return false;
  const auto passed = std::chrono::system_clock::now() - call.context->deadline();
  return passed < Nanoseconds(0) || clock_.Now() - call.begun - passed < kLeastPatience;
}

void CallCensus::Release(grpc::CallbackServerContext* context) {
  std::string taken_back_by;
  {
    MutexLock lock(&mutex_);
    auto made = made_.find(context);
    if (made == made_.end()) return;
    const Call& call = made->second;
    if (const Peers::iterator peer = call.peer; peer != peers_.end()) {
      if (WasTakenBack(call)) taken_back_by = peer->first;
      --begun_;
      answer_bytes_ -= call.answer_bytes;
      peer->second.answer_bytes -= call.answer_bytes;
      if (--peer->second.calls == 0) peers_.erase(peer);
    }
    made_.erase(made);
  }
  delete context;
  if (!taken_back_by.empty()) reports_.taken_back(taken_back_by);
}

}  // namespace fusion
