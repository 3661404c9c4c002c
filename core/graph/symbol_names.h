#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dim.h"

namespace fusion {

/// Replaces the symbols of a graph in `text` by the model's names: "f32[s0,64]" becomes
/// "f32[N,64]". Quoted parts stay. Names that are no identifiers are quoted.
std::string WithSymbolNames(std::string_view text, const std::vector<SymbolDecl>& symbols);

/// The same for the message of a status.
absl::Status WithSymbolNames(const absl::Status& status, const std::vector<SymbolDecl>& symbols);

}  // namespace fusion
