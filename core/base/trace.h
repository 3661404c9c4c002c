#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// The trace id (32 hex digits) of a W3C Trace Context `traceparent`. Empty if it is malformed; the
/// standard says to ignore it then.
std::string TraceIdOf(std::string_view traceparent);

/// `traceparent` if it is well-formed, else a new one with random ids. Thread-safe.
std::string TraceparentOrNew(std::string_view traceparent);

/// While an object of this class lives, log lines of this thread have this `trace_id`, unless it is
/// empty. The destructor restores the previous one. ThreadPool and WorkerPool pass the id on to the
/// threads that run submitted work.
class ScopedTrace {
 public:
  explicit ScopedTrace(std::string trace_id);
  ~ScopedTrace();
  ScopedTrace(const ScopedTrace&) = delete;
  ScopedTrace& operator=(const ScopedTrace&) = delete;

  /// The trace id of this thread; empty: none.
  static const std::string& Current();

 private:
  std::string before_;
};

}  // namespace fusion
