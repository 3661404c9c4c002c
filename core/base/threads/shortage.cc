#include "core/base/threads/shortage.h"

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/threads/mutex.h"
#include "core/base/threads/named_thread.h"

namespace fusion {

bool IsShortage(const std::exception_ptr& error) {
  if (error == nullptr) return false;
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const std::length_error&) {
    return true;
  } catch (const std::system_error& failed) {
    return failed.code() == std::errc::resource_unavailable_try_again ||
           failed.code() == std::errc::not_enough_memory;
  } catch (...) {
    return false;
  }
}

absl::Status CheckThreads(int count) {
  Mutex held;  // held by this thread until all have started
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  absl::Status out;
  held.Lock();
  for (int i = 0; i < count && out.ok(); ++i) {
    try {
      threads.push_back(NamedThread("start-check", [&held] {
        held.Lock();
        held.Unlock();
      }));
    } catch (const std::system_error&) {
      out = ResourceExhausted(kShortage);
    }
  }
  held.Unlock();
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace fusion
