#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dim.h"

namespace fusion {

/// `text` with the symbols of a graph under the names that its model has for them: "f32[s0,64]"
/// becomes "f32[N,64]". Quoted parts, which are names already, stay; names that are no identifier
/// come out quoted.
std::string WithSymbolNames(std::string_view text, const std::vector<SymbolDecl>& symbols);

/// The same of a message.
absl::Status WithSymbolNames(const absl::Status& status, const std::vector<SymbolDecl>& symbols);

}  // namespace fusion
