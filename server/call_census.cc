#include "server/call_census.h"

#include <algorithm>

namespace fusion {

void CallCensus::Add(const grpc::CallbackServerContext& context) {
  std::string most_of;
  int64_t calls = 0;
  {
    MutexLock lock(&mutex_);
    auto peer = calls_.try_emplace(context.peer()).first;
    ++peer->second;
    made_[&context] = peer;
    if (++begun_ <= most_) return;
    peer = std::max_element(calls_.begin(), calls_.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    most_of = peer->first;
    calls = peer->second;
  }
  report_(most_of, calls);
}

grpc::CallbackServerContext* CallCensus::NewCallbackServerContext() {
  auto* context = new grpc::CallbackServerContext;
  MutexLock lock(&mutex_);
  made_.emplace(context, calls_.end());
  return context;
}

void CallCensus::Release(grpc::CallbackServerContext* context) {
  {
    MutexLock lock(&mutex_);
    auto made = made_.find(context);
    if (made == made_.end()) return;
    if (const Peers::iterator peer = made->second; peer != calls_.end()) {
      --begun_;
      if (--peer->second == 0) calls_.erase(peer);
    }
    made_.erase(made);
  }
  delete context;
}

}  // namespace fusion
