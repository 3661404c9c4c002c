#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "fusion/v1/fusion_admin.pb.h"

namespace fusion {

/// What `fusionctl top` shows: the state of a server now and, for rates, an earlier one.
struct TopView {
  std::string address;
  v1::GetServerStatusResponse now;
  /// Rates are per second since then. Unset, or of another process: since the server started.
  std::optional<v1::GetServerStatusResponse> before;
  /// Why the last call failed; `now` is then the last answer. Empty: it did not.
  std::string lost;
  double lost_seconds = 0;  // since the last answer
};

/// The view as text: calls by code and method, cache, queue, workers, store, top plans.
std::string TopText(const TopView& view);
nlohmann::ordered_json TopJson(const TopView& view);

}  // namespace fusion
