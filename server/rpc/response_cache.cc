#include "server/rpc/response_cache.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <climits>

#include "core/base/files/secret_hash.h"
#include "core/bundle/tile_search.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

// How often the store is told of a use; eviction does not need finer times.
constexpr Nanoseconds kTouchEvery = std::chrono::seconds(1);
// Memory of map, list and pointers per entry.
constexpr int64_t kEntryBytes = 512;

/// The concatenated pieces as a stream.
class PieceStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PieceStream(const std::vector<std::string_view>& pieces) : pieces_(pieces) {}
  bool Next(const void** data, int* size) override {
    while (next_ < pieces_.size() && at_ == pieces_[next_].size()) {
      ++next_;
      at_ = 0;
    }
    if (next_ == pieces_.size()) return false;
    const std::string_view rest = pieces_[next_].substr(at_);
    *data = rest.data();
    *size = static_cast<int>(rest.size());
    at_ += rest.size();
    read_ += *size;
    return true;
  }
  void BackUp(int count) override {
    at_ -= static_cast<size_t>(count);
    read_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    int size = 0;
    while (count > 0 && Next(&data, &size)) {
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return count == 0;
  }
  int64_t ByteCount() const override { return read_; }

 private:
  const std::vector<std::string_view>& pieces_;
  size_t next_ = 0;
  size_t at_ = 0;  // in that piece
  int64_t read_ = 0;
};

// Appends the bytes [begin, end) of the concatenated pieces, as pieces, to `out`.
void AppendRange(const std::vector<std::string_view>& pieces, size_t begin, size_t end,
                 std::vector<std::string_view>* out) {
  size_t first = 0;  // byte of the piece
  for (std::string_view piece : pieces) {
    const size_t from = std::clamp(begin, first, first + piece.size()) - first;
    const size_t to = std::clamp(end, first, first + piece.size()) - first;
    if (to > from) out->push_back(piece.substr(from, to - from));
    first += piece.size();
  }
}

// Whether an equal request would get the same answer while the store keeps its entries.
bool MayBeGivenAgain(const PlanReply& reply) {
  return reply.dumps.empty() && reply.lock == nullptr && !reply.miss.has_value() &&
         !GoesOn(reply.stored->plan.search) &&
         std::all_of(reply.kernels.begin(), reply.kernels.end(), [](const KernelStatus& kernel) {
           return kernel.state == KernelState::kReady;
         });
}

}  // namespace

std::optional<RequestName> NameRequest(const std::vector<std::string_view>& pieces) {
  using google::protobuf::internal::WireFormatLite;
  constexpr uint32_t kIdTag = WireFormatLite::MakeTag(v1::PlanFusionRequest::kRequestIdFieldNumber,
                                                      WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  PieceStream stream(pieces);
  google::protobuf::io::CodedInputStream in(&stream);
  in.SetTotalBytesLimit(INT_MAX);
  RequestName name;
  std::vector<std::string_view> hashed;
  size_t done = 0;  // bytes that are hashed or left out
  for (;;) {
    const auto begin = static_cast<size_t>(in.CurrentPosition());
    const uint32_t tag = in.ReadTag();
    if (tag == 0) break;
    if (tag != kIdTag) {
      if (!WireFormatLite::SkipField(&in, tag)) return std::nullopt;
      continue;
    }
    uint32_t size = 0;
    std::string id;
    if (!in.ReadVarint32(&size)) return std::nullopt;
    const auto kept = std::min<uint32_t>(size, kMaxRequestIdBytes);
    if (!in.ReadString(&id, static_cast<int>(kept))) return std::nullopt;
    if (!in.Skip(static_cast<int>(size - kept))) return std::nullopt;
    name.request_id = std::move(id);
    AppendRange(pieces, done, begin, &hashed);
    done = static_cast<size_t>(in.CurrentPosition());
  }
  if (!in.ConsumedEntireMessage()) return std::nullopt;
  AppendRange(pieces, done, SIZE_MAX, &hashed);
  name.digest = SecretHash(hashed);
  return name;
}

std::shared_ptr<const CachedResponse> ResponseCache::Find(const std::string& space,
                                                          const Digest& request) {
  const Key key(space, request);
  const Nanoseconds now = clock_.Now();
  const int64_t removals = store_.removals();
  std::shared_ptr<const CachedResponse> answer;
  {
    MutexLock lock(&mutex_);
    const Entry* entry = answers_.Find(key);
    if (entry == nullptr) return nullptr;
    answer = entry->answer;
    if (entry->says_unwritten && store_.WhyUnwritten(answer->reply.plan->key).empty()) {
      answers_.Erase(key);
      return nullptr;
    }
    if (entry->removals == removals && now - entry->asked_at < kTouchEvery) return answer;
  }
  const bool there = IsTrue(*answer) && store_.Touch(answer->reply.plan->key, answer->kernels);
  MutexLock lock(&mutex_);
  Entry* entry = answers_.Find(key);
  if (entry == nullptr || entry->answer != answer) return there ? answer : nullptr;
  if (!there) {
    answers_.Erase(key);
    return nullptr;
  }
  entry->asked_at = now;
  entry->removals = removals;
  return answer;
}

// Whether the store has plan and kernels with the contents that the answer names.
bool ResponseCache::IsTrue(const CachedResponse& answer) const {
  const StoredPlan& plan = *answer.reply.plan;
  if (store_.ContentOf(EntryKind::kPlan, plan.key) != plan.content) return false;
  for (size_t k = 0; k < answer.kernels.size(); ++k) {
    if (store_.ContentOf(EntryKind::kKernel, answer.kernels[k]) != answer.contents[k]) return false;
  }
  return true;
}

void ResponseCache::Remember(const std::string& space, const Digest& request,
                             const PlanReply& reply, const std::optional<Signature>& signature) {
  if (!MayBeGivenAgain(reply)) return;
  PlanReply again = reply;
  again.cache = CacheOutcome::kHitMemory;
  again.stages.clear();
  for (KernelStatus& kernel : again.kernels) kernel.cached = true;
  auto answer = std::make_shared<CachedResponse>();
  answer->reply = EncodePlanReply(again, signature);
  answer->plan_bytes = ChargedBytes(*reply.stored);
  for (const KernelStatus& kernel : reply.kernels) {
    answer->kernels.push_back(kernel.key);
    answer->contents.push_back(kernel.content);
  }
  // removals() is read before the store is, so that later removals are noticed.
  Entry entry{.answer = answer,
              .asked_at = clock_.Now(),
              .removals = store_.removals(),
              .says_unwritten = std::any_of(
                  reply.warnings.begin(), reply.warnings.end(),
                  [](const std::string& warning) { return warning.starts_with(kNotStored); })};
  if (!IsTrue(*answer) || !store_.Touch(reply.stored->key, answer->kernels)) return;
  const int64_t bytes =
      kEntryBytes + answer->plan_bytes +
      static_cast<int64_t>(answer->reply.tail.size() + 64 * answer->kernels.size());
  std::vector<std::pair<Key, Entry>> forgotten;  // dies unlocked
  MutexLock lock(&mutex_);
  forgotten = answers_.Insert({space, request}, std::move(entry), bytes);
}

int64_t ResponseCache::size() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(answers_.size());
}

int64_t ResponseCache::bytes() const {
  MutexLock lock(&mutex_);
  return answers_.cost();
}

void ResponseCache::MakeRoom() {
  std::vector<std::pair<Key, Entry>> forgotten;
  MutexLock lock(&mutex_);
  forgotten = answers_.MakeRoom();
}

}  // namespace fusion
