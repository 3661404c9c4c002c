#include "server/call_census.h"

#include <algorithm>

namespace fusion {

void CallCensus::Add(const grpc::CallbackServerContext& context) {
  std::string most_of;
  int64_t calls = 0;
  {
    MutexLock lock(&mutex_);
    Peers::iterator peer = calls_.try_emplace(context.peer()).first;
    ++peer->second;
    known_.emplace(&context, peer);
    if (static_cast<int64_t>(known_.size()) <= most_) return;
    peer = std::max_element(calls_.begin(), calls_.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    most_of = peer->first;
    calls = peer->second;
  }
  report_(most_of, calls);
}

grpc::CallbackServerContext* CallCensus::NewCallbackServerContext() {
  return new grpc::CallbackServerContext;
}

void CallCensus::Release(grpc::CallbackServerContext* context) {
  {
    MutexLock lock(&mutex_);
    auto known = known_.find(context);
    if (known != known_.end()) {
      if (--known->second->second == 0) calls_.erase(known->second);
      known_.erase(known);
    }
  }
  delete context;
}

}  // namespace fusion
