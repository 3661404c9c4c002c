#include "client/fusionctl/commands/report_post.h"

#include <nlohmann/json.hpp>

#include "client/fusionctl/input/report_file.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"
#include "client/report_stream.h"

namespace fusion {
namespace {

using Answer = v1::ReportLatenciesResponse;

// Where a refused report is in the file; 0: the service names none that was sent.
int64_t LineOf(const v1::RefusedReport& refused, const std::vector<int64_t>& lines) {
  const bool known = refused.index() >= 0 && refused.index() < static_cast<int64_t>(lines.size());
  return known ? lines[static_cast<size_t>(refused.index())] : 0;
}

std::string CodeName(const v1::RefusedReport& refused) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(refused.code()));
}

Json PostJson(const Answer& answer, const std::vector<int64_t>& lines) {
  Json refused = Json::array();
  for (const v1::RefusedReport& report : answer.refused()) {
    refused.push_back({{"index", report.index()},
                       {"line", LineOf(report, lines)},
                       {"code", CodeName(report)},
                       {"message", report.message()}});
  }
  return {{"reports", lines.size()},
          {"accepted_reports", answer.accepted_reports()},
          {"accepted_samples", answer.accepted_samples()},
          {"duplicates", answer.duplicates()},
          {"refused_reports", answer.refused_reports()},
          {"refused", refused}};
}

std::string PostText(const Answer& answer, const std::string& file,
                     const std::vector<int64_t>& lines) {
  std::string out =
      StrCat(Count(static_cast<int64_t>(lines.size()), "report"), ": ", answer.accepted_reports(),
             " stored with ", Count(answer.accepted_samples(), "sample"), ", ", answer.duplicates(),
             " known already, ", answer.refused_reports(), " refused\n");
  for (const v1::RefusedReport& report : answer.refused()) {
    StrAppend(&out, StrCat(file, ":", LineOf(report, lines), ": ", CodeName(report), ": ",
                           report.message(), "\n"));
  }
  const int64_t more = answer.refused_reports() - answer.refused_size();
  if (more > 0) StrAppend(&out, StrCat("and ", more, " more refused\n"));
  return out;
}

}  // namespace

absl::StatusOr<ExitCode> PostReports(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(std::vector<PostedReport> posted, ReadReports(arguments.post));
  std::vector<v1::ReportLatencyRequest> reports;
  std::vector<int64_t> lines;
  for (PostedReport& report : posted) {
    reports.push_back(std::move(report.report));
    lines.push_back(report.line);
  }
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(Answer answer, SendReports(client, reports));
    progress->Clear();
    if (arguments.json) {
      PrintJson(PostJson(answer, lines));
    } else {
      const std::string file = arguments.post == "-" ? "standard input" : arguments.post;
      Print(PostText(answer, file, lines));
    }
    return answer.refused_reports() > 0 ? kExitBadInput : kExitOk;
  });
}

}  // namespace fusion
