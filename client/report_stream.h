#pragma once

#include <vector>

#include "client/client.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {

/// Sends reports as they are, with as many calls of ReportLatencies as they need
/// (kMaxStreamedReports), and adds up the answers; indices are positions in `reports`. Each call
/// has the deadline of the client's options. Errors are those of a call, with the number of reports
/// that earlier calls have stored; a refused report is no error. Unimplemented if the service lacks
/// this call.
absl::StatusOr<v1::ReportLatenciesResponse> SendReports(
    const Client& client, const std::vector<v1::ReportLatencyRequest>& reports);

}  // namespace fusion
