#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/bundle/measured/epoch.h"

namespace fusion {

/// The newest `most` epochs with their evidence, constants, history and plans, and the newest
/// `most` decisions about plans.
std::string EpochsText(const EpochList& list, size_t most);
/// The same as an object with "epochs" and "decisions".
nlohmann::ordered_json EpochsJson(const EpochList& list, size_t most);

}  // namespace fusion
