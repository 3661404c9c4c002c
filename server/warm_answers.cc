#include "server/warm_answers.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "core/bundle/tile_search.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

// How often a use is told to the store: eviction does not tell times apart that are closer.
constexpr Nanoseconds kTouchEvery = std::chrono::seconds(1);
// Map, list and pointers of an entry.
constexpr int64_t kEntryBytes = 512;

// Whether an equal request would get the same, as long as the store has what it names.
bool MayBeGivenAgain(const PlanReply& reply) {
  return reply.dumps.empty() && reply.lock == nullptr && !reply.miss.has_value() &&
         !GoesOn(reply.stored->plan.search) &&
         std::all_of(reply.kernels.begin(), reply.kernels.end(), [](const KernelStatus& kernel) {
           return kernel.state == KernelState::kReady;
         });
}

}  // namespace

std::optional<RequestName> NameRequest(std::string_view bytes) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  RequestName name;
  std::string rest;  // bytes around request_id; empty: there is none
  size_t kept = 0;   // bytes that `rest` holds or has left out
  for (;;) {
    const auto begin = static_cast<size_t>(in.CurrentPosition());
    const uint32_t tag = in.ReadTag();
    if (tag == 0) break;
    const bool is_id = tag == WireFormatLite::MakeTag(v1::PlanFusionRequest::kRequestIdFieldNumber,
                                                      WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    if (!is_id) {
      if (!WireFormatLite::SkipField(&in, tag)) return std::nullopt;
      continue;
    }
    uint32_t size = 0;
    if (!in.ReadVarint32(&size)) return std::nullopt;
    const auto value = static_cast<size_t>(in.CurrentPosition());
    if (!in.Skip(static_cast<int>(size))) return std::nullopt;
    name.request_id = std::string(bytes.substr(value, std::min<size_t>(size, kMaxRequestIdBytes)));
    rest += bytes.substr(kept, begin - kept);
    kept = value + size;
  }
  if (!in.ConsumedEntireMessage()) return std::nullopt;
  if (kept == 0) {
    name.digest = Sha256(bytes);
  } else {
    rest += bytes.substr(kept);
    name.digest = Sha256(rest);
  }
  return name;
}

std::shared_ptr<const WarmAnswer> WarmAnswers::Find(const std::string& space,
                                                    const Digest& request) {
  const Key key(space, request);
  const Nanoseconds now = clock_.Now();
  const int64_t removals = store_.removals();
  std::shared_ptr<const WarmAnswer> answer;
  {
    MutexLock lock(&mutex_);
    const Entry* entry = answers_.Find(key);
    if (entry == nullptr) return nullptr;
    answer = entry->answer;
    if (entry->removals == removals && now - entry->asked_at < kTouchEvery) return answer;
  }
  const bool there = store_.Touch(answer->reply.plan->key, answer->kernels);
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

void WarmAnswers::Remember(const std::string& space, const Digest& request,
                           const PlanReply& reply) {
  if (!MayBeGivenAgain(reply)) return;
  PlanReply again = reply;
  again.cache = CacheOutcome::kHitMemory;
  again.stages.clear();
  for (KernelStatus& kernel : again.kernels) kernel.cached = true;
  auto answer = std::make_shared<WarmAnswer>();
  answer->reply = EncodePlanReply(again);
  for (const KernelStatus& kernel : reply.kernels) answer->kernels.push_back(kernel.key);
  // Before the first look at the store: what is removed from now on is noticed.
  Entry entry{.answer = answer, .asked_at = clock_.Now(), .removals = store_.removals()};
  if (!store_.Touch(reply.stored->key, answer->kernels)) return;
  const int64_t bytes =
      kEntryBytes + ChargedBytes(*reply.stored) +
      static_cast<int64_t>(answer->reply.tail.size() + 32 * answer->kernels.size());
  std::vector<std::pair<Key, Entry>> forgotten;  // dies unlocked
  MutexLock lock(&mutex_);
  forgotten = answers_.Insert({space, request}, std::move(entry), bytes);
}

int64_t WarmAnswers::size() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(answers_.size());
}

int64_t WarmAnswers::bytes() const {
  MutexLock lock(&mutex_);
  return answers_.cost();
}

}  // namespace fusion
