#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {

/// A report of a file, and the line where it begins.
struct PostedReport {
  v1::ReportLatencyRequest report;
  int64_t line = 1;
};

/// Longest file of --post.
inline constexpr int64_t kMaxPostBytes = int64_t{64} << 20;
/// Deepest nesting of one report.
inline constexpr int kMaxPostDepth = 32;

/// The reports in a JSON text: objects one after the other (JSON lines), or an array of them. Each
/// is the protobuf JSON mapping of v1::ReportLatencyRequest; its digests and its id may also be 64
/// hex digits. Errors are bad input: "FILE:LINE: ..." with the field.
absl::StatusOr<std::vector<PostedReport>> ParseReports(std::string_view text,
                                                       std::string_view file);

/// ParseReports of a file; "-" is standard input, until its end. InvalidArgument if it is longer
/// than kMaxPostBytes; other errors as ReadFile, with "--post: " before them.
absl::StatusOr<std::vector<PostedReport>> ReadReports(const std::string& path);

}  // namespace fusion
