#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"
#include "server/admission/answer_memory.h"

namespace fusion {

/// Counts the calls that gRPC keeps, and the bytes of their answers, by peer: until the caller has
/// read the answer, which may be long after ours was given. Above `most` of them the peer with the
/// most is reported; and so is each call that its caller took back. A call whose deadline has
/// passed is none of those, unless the deadline was too short for any answer. Thread-safe.
class CallTracker final : public grpc::ContextAllocator {
 public:
  /// What the call tracker says, by gRPC's name of a peer; on any thread.
  struct Reports {
    /// All together have more than the most calls or bytes of answers, and the peer has most of
    /// them. Each a hundred times a second at most.
    std::function<void(const std::string& peer, int64_t calls)> too_many;
    std::function<void(const std::string& peer, int64_t bytes)> too_much;
    std::function<void(const std::string& peer)> taken_back;
  };
  /// gRPC's name of who calls: "ipv4:127.0.0.1:4711", "unix:uid=0,pid=4711,connection=17".
  using PeerOf = std::function<std::string(const grpc::CallbackServerContext&)>;
  struct Most {
    int64_t calls = 0;
    int64_t answer_bytes = 0;
  };
  /// `clock` outlives it.
  CallTracker(
      const Most& most, Reports reports, const Clock& clock = Clock::Real(),
      PeerOf peer_of = [](const grpc::CallbackServerContext& call) { return call.peer(); })
      : most_(most), reports_(std::move(reports)), clock_(clock), peer_of_(std::move(peer_of)) {}

  /// A call begins.
  void Add(const grpc::CallbackServerContext& context);
  /// So many bytes of its request, or of a part of that, came whole.
  void AddRequest(const grpc::CallbackServerContext& context, int64_t bytes);
  /// Of all calls by gRPC's name of the peer, since it was asked last to begin anew.
  std::unordered_map<std::string, int64_t> RequestBytes(bool begins_anew);

  /// What its answer, or the part of it that is being sent, keeps. What several answers keep counts
  /// once; of their peers, for each. ResourceExhausted, with kRetryAfter, for what is not `cached`:
  /// that is above the most, and its peer has an eighth of that; or half as much again, whatever
  /// its peer has. Then it keeps nothing.
  absl::Status SetAnswer(const grpc::CallbackServerContext& context, const AnswerMemory& kept);
  /// EndOlderThan leaves it alone.
  void SetLasting(const grpc::CallbackServerContext& context);

  /// Ends the calls that began longer than `limit` ago, whatever they are at: their callers do not
  /// read, or do not write. How many.
  int64_t EndOlderThan(Nanoseconds limit);

  /// Calls that came and are kept, begun or not.
  int64_t live() const {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(made_.size());
  }
  /// Of them, those that have begun.
  int64_t begun() const {
    MutexLock lock(&mutex_);
    return begun_;
  }
  /// What the answers of all of them keep.
  int64_t answer_bytes() const {
    MutexLock lock(&mutex_);
    return answer_bytes_;
  }

  grpc::CallbackServerContext* NewCallbackServerContext() override;
  /// A call has ended, and nothing of it is kept any more. gRPC gives contexts here too that it
  /// made itself, of methods that nobody has, and frees them again afterwards (1.51).
  void Release(grpc::CallbackServerContext* context) override;

 private:
  struct Kept {
    int64_t calls = 0;
    int64_t answer_bytes = 0;
  };
  using Peers = std::map<std::string, Kept>;
  struct Call {
    grpc::CallbackServerContext* context;
    Peers::iterator peer;  // the end until it begins
    Nanoseconds begun{0};
    AnswerMemory answer;
    bool lasting = false;
    bool ended = false;  // by us
  };
  struct Shared {
    int64_t bytes = 0;
    int64_t answers = 0;
  };
  struct Heaviest {
    std::string peer;
    int64_t amount = 0;
  };
  /// Nobody if it was asked a short while before.
  Heaviest FindHeaviest(int64_t Kept::*amount, Nanoseconds* reported)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WasTakenBack(const Call& call) const;
  /// What an answer adds to answer_bytes_ if it is kept.
  int64_t AddedBy(const AnswerMemory& kept) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(const AnswerMemory& kept, Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Most most_;
  const Reports reports_;
  const Clock& clock_;
  const PeerOf peer_of_;
  mutable Mutex mutex_;
  Peers peers_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<const void*, Shared> shared_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, int64_t> request_bytes_ ABSL_GUARDED_BY(mutex_);
  Nanoseconds reported_many_ ABSL_GUARDED_BY(mutex_) = Nanoseconds(0);
  Nanoseconds reported_much_ ABSL_GUARDED_BY(mutex_) = Nanoseconds(0);
  std::map<const grpc::CallbackServerContext*, Call> made_ ABSL_GUARDED_BY(mutex_);  // here
};

}  // namespace fusion
