#include "core/base/threads/named_thread.h"

#include <pthread.h>

namespace fusion {

void NameThread(std::string_view name) {
  constexpr size_t kMostBytes = 15;
  // Fails for longer names only.
  pthread_setname_np(pthread_self(), std::string(name.substr(0, kMostBytes)).c_str());
}

}  // namespace fusion
