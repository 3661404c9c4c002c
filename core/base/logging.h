#pragma once

#include <atomic>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/status.h"

namespace fusion {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };

/// Parses "debug", "info", "warning", "error" or "off". InvalidArgument for any other word.
absl::StatusOr<LogLevel> ParseLogLevel(std::string_view name);

/// A name and a value of a log line. Does not own its text: use it only as an argument of
/// Logger::Log.
class LogField {
 public:
  LogField(std::string_view name, std::string_view value) : name_(name), value_(value) {}
  LogField(std::string_view name, const char* value) : LogField(name, std::string_view(value)) {}
  LogField(std::string_view name, const std::string& value)
      : LogField(name, std::string_view(value)) {}
  LogField(std::string_view name, bool value) : name_(name), value_(value) {}
  LogField(std::string_view name, std::integral auto value)
      : name_(name), value_(static_cast<int64_t>(value)) {}
  LogField(std::string_view name, std::floating_point auto value)
      : name_(name), value_(static_cast<double>(value)) {}

  std::string_view name() const { return name_; }
  /// The value as JSON text; bytes that are not UTF-8 are replaced.
  std::string ValueJson() const;

 private:
  std::string_view name_;
  std::variant<std::string_view, bool, int64_t, double> value_;
};

/// Sink of events. Each is one line of JSON: what happened (`event`, a fixed word) and its fields.
/// The line also has the trace id of the calling thread (ScopedTrace), if there is one.
///
///   logger.Warning("cache_entry_dropped", {{"kind", "plan"}, {"key", hex}, {"reason", why}});
///   -> {"time":"2026-11-21T17:00:00.123Z","level":"warning","event":"cache_entry_dropped",...}
///
/// Objects that log hold a reference; the logger must outlive them. Thread-safe.
class Logger {
 public:
  explicit Logger(LogLevel minimum) : minimum_(minimum) {}
  virtual ~Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool Enabled(LogLevel level) const { return level >= minimum_.load(std::memory_order_relaxed); }
  void SetMinimum(LogLevel minimum) { minimum_.store(minimum, std::memory_order_relaxed); }

  void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
    if (Enabled(level)) WriteLine(level, event, fields);
  }
  void Debug(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Log(LogLevel::kDebug, event, fields);
  }
  void Info(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Log(LogLevel::kInfo, event, fields);
  }
  void Warning(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Log(LogLevel::kWarning, event, fields);
  }
  void Error(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Log(LogLevel::kError, event, fields);
  }

  /// Logs who did what to whose data. Written whatever the minimum level is. The line has level
  /// "warning".
  void Audit(std::string_view event, std::initializer_list<LogField> fields) {
    WriteLine(LogLevel::kWarning, event, fields);
  }

  /// A logger that drops everything. Never destroyed.
  static Logger& Silent();

 protected:
  /// `members`: the members of the JSON object after time and level: "event":"x","key":"12ab".
  /// Called by any thread, at once by several.
  virtual void Write(LogLevel level, const std::string& members) = 0;

 private:
  void WriteLine(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

  std::atomic<LogLevel> minimum_;
};

/// Writes to stderr, one line per event, with UTC time.
std::unique_ptr<Logger> MakeStderrLogger(LogLevel minimum);

}  // namespace fusion
