#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// The trace id (32 hex digits) of a W3C Trace Context `traceparent`; empty for what is none: the
/// standard has such ones ignored.
std::string TraceIdOf(std::string_view traceparent);

/// `traceparent`, or for what is none that of a new trace, of random ids. Thread-safe.
std::string TraceparentOrNew(std::string_view traceparent);

/// While it lives, what this thread logs has this `trace_id`, if it is not empty. ThreadPool and
/// WorkerPool hand it on to the threads that do what they are given.
class ScopedTrace {
 public:
  explicit ScopedTrace(std::string trace_id);
  ~ScopedTrace();
  ScopedTrace(const ScopedTrace&) = delete;
  ScopedTrace& operator=(const ScopedTrace&) = delete;

  /// This thread's; empty: none.
  static const std::string& Current();

 private:
  std::string before_;
};

}  // namespace fusion
