#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fusion {

/// `rest_at` of Wrapped: continuation lines are indented by two cells more than the line itself.
inline constexpr size_t kTwoDeeper = static_cast<size_t>(-1);

/// `text` with lines of more than `columns` cells (CellsOf) broken at spaces. Continuation lines
/// begin at cell `rest_at`, at most columns / 2. Longer words are not broken. 0 columns: returns
/// `text` unchanged.
std::string Wrapped(std::string_view text, size_t columns, size_t rest_at = kTwoDeeper);

}  // namespace fusion
