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

/// What a serialised PlanFusionRequest says, without reading it: equal names, equal answers. Two
/// that differ may still mean the same; who needs to know must decode them.
struct RequestName {
  /// SecretHash of the bytes, without the field that is for logs only.
  Digest digest;
  /// That field: PlanFusionRequest.request_id, at most 128 bytes of it.
  std::string request_id;
};
/// Of the bytes that the pieces are behind each other; nullopt if they are no message. Looks at the
/// fields of the outermost message only and copies nothing, so it costs one hash. Pure, any thread.
std::optional<RequestName> NameRequest(const std::vector<std::string_view>& pieces);

/// An answer to give again.
struct CachedResponse {
  EncodedReply reply;      // but for the time of its stages
  int64_t plan_bytes = 0;  // ChargedBytes of its plan
  // What the reply says of kernels, in the order of the plan; of its plan `reply.plan` says it.
  std::vector<Digest> kernels;
  std::vector<Digest> contents;  // SHA-256 of each
};

/// Answers to recent requests by the bytes of these: the first level of the cache, in front of the
/// one whose keys are canonical graphs. A request that was answered before costs a hash and a look
/// here; nothing of it is decoded.
///
///   if (auto warm = answers.Find(tenant, name.digest)) return Send(*warm);
///   ... answers.Remember(tenant, name.digest, reply);
///
/// An answer is given again only while the store has the plan and all the kernels that it names,
/// with the very contents that it names, and counts as a use of them; one that says that it is not
/// stored, only while that is so. Thread-safe; store and clock outlive it.
class ResponseCache {
 public:
  ResponseCache(Store& store, int64_t budget_bytes, const Clock& clock = Clock::Real())
      : store_(store), clock_(clock), answers_(budget_bytes, LargestEntryBytes(budget_bytes)) {}

  /// Null: none. `space`: whose answers; empty where tenants share them.
  std::shared_ptr<const CachedResponse> Find(const std::string& space, const Digest& request);

  /// Keeps a reply for equal requests to come, if it would be theirs as well: its kernels are
  /// there, no search for tiles is pending, no texts were asked for.
  /// `signature`: the service's own over it, if it signs.
  void Remember(const std::string& space, const Digest& request, const PlanReply& reply,
                const std::optional<Signature>& signature = std::nullopt);

  int64_t size() const;
  int64_t bytes() const;

 private:
  // When the store was last asked about it, and what it had removed by then.
  struct Entry {
    std::shared_ptr<const CachedResponse> answer;
    Nanoseconds asked_at{0};
    int64_t removals = 0;
    bool says_unwritten = false;
  };
  using Key = std::pair<std::string, Digest>;

  bool IsTrue(const CachedResponse& answer) const;

  Store& store_;
  const Clock& clock_;
  mutable Mutex mutex_;
  LruMap<Key, Entry> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
