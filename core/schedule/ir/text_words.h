#pragma once

#include <string_view>

namespace fusion {

/// Words for params in the text of a schedule, by ParamKind.
inline constexpr std::string_view kParamKindNames[] = {"input", "weight", "output"};

}  // namespace fusion
