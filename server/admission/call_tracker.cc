#include "server/admission/call_tracker.h"

#include <grpc/grpc.h>

#include <chrono>
#include <utility>
#include <vector>

#include "core/base/text/text.h"
#include "core/base/threads/retry_after.h"

namespace fusion {
namespace {

// With 16,384 peers, FindHeaviest takes about a millisecond.
constexpr Nanoseconds kReportEvery = std::chrono::milliseconds(10);
// A peer with at most 1/8 of the limit of unread bytes may exceed that limit, up to 1.5 times.
constexpr int64_t kModestPartOfUnread = 8;
// A shorter deadline counts as a cancellation: no answer can arrive within it.
constexpr Nanoseconds kLeastPatience = std::chrono::milliseconds(1);

}  // namespace

CallTracker::Heaviest CallTracker::FindHeaviest(int64_t Kept::*amount, Nanoseconds* reported) {
  Heaviest heaviest;
  const Nanoseconds now = clock_.Now();
  if (now - *reported < kReportEvery) return heaviest;
  *reported = now;
  for (const auto& [name, kept] : peers_) {
    if (kept.*amount > heaviest.amount) heaviest = {name, kept.*amount};
  }
  return heaviest;
}

void CallTracker::Add(const grpc::CallbackServerContext& context) {
  Heaviest heaviest;
  std::string name = peer_of_(context);
  {
    MutexLock lock(&mutex_);
    const auto peer = peers_.try_emplace(std::move(name)).first;
    ++peer->second.calls;
    Call& call = made_.at(&context);
    call.peer = peer;
    call.begun = clock_.Now();
    if (++begun_ > most_.calls) heaviest = FindHeaviest(&Kept::calls, &reported_many_);
  }
  if (heaviest.amount > 0) reports_.too_many(heaviest.peer, heaviest.amount);
}

void CallTracker::AddRequest(const grpc::CallbackServerContext& context, int64_t bytes) {
  MutexLock lock(&mutex_);
  request_bytes_[made_.at(&context).peer->first] += bytes;
}

std::unordered_map<std::string, int64_t> CallTracker::RequestBytes(bool begins_anew) {
  std::unordered_map<std::string, int64_t> out;
  MutexLock lock(&mutex_);
  if (begins_anew) {
    out.swap(request_bytes_);
  } else {
    out = request_bytes_;
  }
  return out;
}

int64_t CallTracker::AddedBy(const AnswerMemory& kept) const {
  int64_t bytes = kept.own;
  for (const AnswerMemory::Part& part : kept.shared) {
    if (!shared_.contains(part.what)) bytes += part.bytes;
  }
  return bytes;
}

void CallTracker::Keep(const AnswerMemory& kept, Call* call) {
  answer_bytes_ += AddedBy(kept);
  for (const AnswerMemory::Part& part : kept.shared) {
    Shared& shared = shared_[part.what];
    if (shared.answers++ == 0) shared.bytes = part.bytes;
  }
  call->peer->second.answer_bytes += kept.most();
  call->answer = kept;
}

void CallTracker::Drop(Call* call) {
  answer_bytes_ -= call->answer.own;
  for (const AnswerMemory::Part& part : call->answer.shared) {
    auto shared = shared_.find(part.what);
    if (--shared->second.answers > 0) continue;
    answer_bytes_ -= shared->second.bytes;
    shared_.erase(shared);
  }
  call->peer->second.answer_bytes -= call->answer.most();
  call->answer.own = 0;
  call->answer.shared.clear();
}

absl::Status CallTracker::SetAnswer(const grpc::CallbackServerContext& context,
                                    const AnswerMemory& kept) {
  Heaviest heaviest;
  absl::Status room;
  {
    MutexLock lock(&mutex_);
    Call& call = made_.at(&context);
    Drop(&call);
    const int64_t others = answer_bytes_;
    const int64_t added = AddedBy(kept);
    const int64_t most = most_.answer_bytes;
    if (others > 0 && added > 0 && others + added > most) {
      heaviest = FindHeaviest(&Kept::answer_bytes, &reported_much_);
      const int64_t own = call.peer->second.answer_bytes + kept.most();
      // Answers are made faster than connections are closed, so refuse more of them. An answer in a
      // cache exists already and may be shared.
      const bool too_much = own > most / kModestPartOfUnread || others + added > most + most / 2;
      if (too_much && (!kept.cached || kept.own > kSmallAnswerBytes)) {
        room = ServerBusy("answers of ", HumanBytes(others), " are not read yet");
      }
    }
    if (room.ok()) Keep(kept, &call);
  }
  if (heaviest.amount > 0) reports_.too_much(heaviest.peer, heaviest.amount);
  return room;
}

void CallTracker::SetLasting(const grpc::CallbackServerContext& context) {
  MutexLock lock(&mutex_);
  made_.at(&context).lasting = true;
}

int64_t CallTracker::EndOlderThan(Nanoseconds limit) {
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
  // Unlocked, because cancelling may call Release.
  for (grpc_call* call : late) {
    grpc_call_cancel_with_status(call, GRPC_STATUS_DEADLINE_EXCEEDED,
                                 "the call took longer than this server lets any (--call-seconds)",
                                 nullptr);
    grpc_call_unref(call);
  }
  return static_cast<int64_t>(late.size());
}

grpc::CallbackServerContext* CallTracker::NewCallbackServerContext() {
  auto* context = new grpc::CallbackServerContext;
  MutexLock lock(&mutex_);
  made_.emplace(context, Call{.context = context, .peer = peers_.end()});
  return context;
}

bool CallTracker::WasTakenBack(const Call& call) const {
  if (call.ended || !call.context->IsCancelled()) return false;
  const auto passed = std::chrono::system_clock::now() - call.context->deadline();
  return passed < Nanoseconds(0) || clock_.Now() - call.begun - passed < kLeastPatience;
}

void CallTracker::Release(grpc::CallbackServerContext* context) {
  std::string taken_back_by;
  {
    MutexLock lock(&mutex_);
    auto made = made_.find(context);
    if (made == made_.end()) return;
    Call& call = made->second;
    if (const Peers::iterator peer = call.peer; peer != peers_.end()) {
      if (WasTakenBack(call)) taken_back_by = peer->first;
      --begun_;
      Drop(&call);
      if (--peer->second.calls == 0) peers_.erase(peer);
    }
    made_.erase(made);
  }
  delete context;
  if (!taken_back_by.empty()) reports_.taken_back(taken_back_by);
}

}  // namespace fusion
