#include "core/base/logging.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/text/utf8.h"
#include "core/base/trace.h"

namespace fusion {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"debug", "info", "warning", "error",
                                                         "off"};

// True if the text needs no escapes in JSON, as most of our text. This saves the call of the
// library, about a microsecond.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

std::string JsonString(std::string_view text) {
  if (IsPlain(text)) return StrCat("\"", text, "\"");
  return ShownJson(nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                             nlohmann::json::error_handler_t::replace));
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

class SilentLogger final : public Logger {
 public:
  SilentLogger() : Logger(LogLevel::kOff) {}

 protected:
  void Write(LogLevel /*level*/, const std::string& /*members*/) override {}
};

class StderrLogger final : public Logger {
 public:
  explicit StderrLogger(LogLevel minimum)
      : Logger(minimum), out_("fusion", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    out_.set_level(spdlog::level::trace);
    out_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})", spdlog::pattern_time_type::utc));
  }

 protected:
  void Write(LogLevel level, const std::string& members) override {
    out_.log(SpdlogLevel(level), spdlog::string_view_t(members));
  }

 private:
  spdlog::logger out_;
};

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  return InvalidArgument("log level ", Quote(name), "; expected one of ",
                         StrJoin(kLevelNames, ", "));
}

std::string LogField::ValueJson() const {
  if (const auto* text = std::get_if<std::string_view>(&value_)) return JsonString(*text);
  if (const auto* flag = std::get_if<bool>(&value_)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value_)) return StrCat(*number);
  return nlohmann::json(std::get<double>(value_)).dump();
}

void Logger::WriteLine(LogLevel level, std::string_view event,
                       std::initializer_list<LogField> fields) {
  std::string members = StrCat("\"event\":", JsonString(event));
  members.reserve(1024);
  bool traced = ScopedTrace::Current().empty();
  for (const LogField& field : fields) {
    traced = traced || field.name() == "trace_id";
    StrAppend(&members, ',');
    StrAppend(&members, JsonString(field.name()));
    StrAppend(&members, ':');
    StrAppend(&members, field.ValueJson());
  }
  if (!traced) members += StrCat(",\"trace_id\":", JsonString(ScopedTrace::Current()));
  Write(level, members);
}

Logger& Logger::Silent() {
  static SilentLogger logger;
  return logger;
}

std::unique_ptr<Logger> MakeStderrLogger(LogLevel minimum) {
  return std::make_unique<StderrLogger>(minimum);
}

}  // namespace fusion
