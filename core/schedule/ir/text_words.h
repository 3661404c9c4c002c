#pragma once

#include <string_view>

namespace fusion {

/// What the text of a schedule calls a param, by ParamKind.
inline constexpr std::string_view kParamKindNames[] = {"input", "weight", "output"};

}  // namespace fusion
