#include "core/base/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include "core/base/text/text.h"

namespace fusion {
namespace {

thread_local std::string current;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string TraceIdOf(std::string_view traceparent) {
  // version "-" 32 hex digits "-" 16 hex digits "-" flags; later versions may be longer.
  constexpr size_t kLeast = 55;
  const bool framed = traceparent.size() >= kLeast && traceparent[2] == '-' &&
                      traceparent[35] == '-' && traceparent[52] == '-';
  if (!framed || !IsHex(traceparent.substr(0, 2)) || traceparent.starts_with("ff")) return "";
  if (traceparent.starts_with("00") && traceparent.size() != kLeast) return "";
  std::string_view id = traceparent.substr(3, 32);
  if (!IsHex(id) || id.find_first_not_of('0') == std::string_view::npos) return "";
  return std::string(id);
}

std::string TraceparentOrNew(std::string_view traceparent) {
  if (!TraceIdOf(traceparent).empty()) return std::string(traceparent);
  thread_local std::mt19937_64 random{std::random_device{}()};
  // An id of zeros only is invalid.
  auto half = [] { return std::uniform_int_distribution<uint64_t>(1)(random); };
  return fmt::format("00-{:016x}{:016x}-{:016x}-01", half(), half(), half());
}

ScopedTrace::ScopedTrace(std::string trace_id)
    : before_(std::exchange(current, std::move(trace_id))) {}

ScopedTrace::~ScopedTrace() { current = std::move(before_); }

const std::string& ScopedTrace::Current() { return current; }

}  // namespace fusion
