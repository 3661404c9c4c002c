#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"
#include "core/cache/memory/lru_map.h"
#include "server/rpc/request_codec.h"

namespace fusion {

/// Identifies a serialised PlanFusionRequest without decoding it. Requests with equal digests have
/// equal answers. Different digests may still mean equal requests.
struct RequestName {
  /// SecretHash of the bytes without the field request_id.
  Digest digest;
  /// PlanFusionRequest.request_id, at most kMaxRequestIdBytes of it.
  std::string request_id;
};
/// The name of the request whose bytes are the concatenated `pieces`; nullopt if they are not a
/// message. Scans only the fields of the outermost message and copies nothing: costs one hash.
/// Pure, any thread.
std::optional<RequestName> NameRequest(const std::vector<std::string_view>& pieces);

/// A cached answer.
struct CachedResponse {
  EncodedReply reply;            // without stages: append EncodeFurtherStage
  int64_t plan_bytes = 0;        // ChargedBytes of reply.plan
  std::vector<Digest> kernels;   // keys of its kernels, in the order of the plan
  std::vector<Digest> contents;  // SHA-256 of the bytes of each
};

/// Answers to recent requests, by the bytes of the requests. This is the first level of the cache;
/// the next one has canonical graphs as keys. A repeated request costs a hash and a lookup, and is
/// not decoded.
///
///   if (auto warm = answers.Find(tenant, name.digest)) return Send(*warm);
///   ... answers.Remember(tenant, name.digest, reply);
///
/// An answer is reused only while the store has its plan and all its kernels with exactly the
/// contents that the answer names. Each reuse counts as a use of these entries for eviction. An
/// answer with the warning "not stored" is reused only while the plan is still not stored.
/// Thread-safe. Store and clock must outlive it.
class ResponseCache {
 public:
  ResponseCache(Store& store, int64_t budget_bytes, const Clock& clock = Clock::Real())
      : store_(store), clock_(clock), answers_(budget_bytes, LargestEntryBytes(budget_bytes)) {}

  /// The answer, or null. `space`: the tenant whose answers are searched; empty: tenants share
  /// them.
  std::shared_ptr<const CachedResponse> Find(const std::string& space, const Digest& request);

  /// Caches `reply` for later equal requests. Does nothing if their answer could differ: a kernel
  /// is not ready, a search for tiles is pending, or texts, a lock or a miss explanation were
  /// requested. Does nothing if the store lacks the plan or one of its kernels. `signature`: that
  /// of `reply`, if the service signs.
  void Remember(const std::string& space, const Digest& request, const PlanReply& reply,
                const std::optional<Signature>& signature = std::nullopt);

  /// Number and memory of the cached answers.
  int64_t size() const;
  int64_t bytes() const;

  /// Forgets the least recently used answers; a quarter of the budget stays.
  void MakeRoom();

 private:
  struct Entry {
    std::shared_ptr<const CachedResponse> answer;
    Nanoseconds asked_at{0};      // when it was last compared with the store
    int64_t removals = 0;         // Store::removals() at that time
    bool says_unwritten = false;  // has the warning "not stored"
  };
  using Key = std::pair<std::string, Digest>;

  bool IsTrue(const CachedResponse& answer) const;

  Store& store_;
  const Clock& clock_;
  mutable Mutex mutex_;
  LruMap<Key, Entry> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
