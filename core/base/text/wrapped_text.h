#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fusion {

/// For Wrapped: what follows a break begins two cells further right than its line.
inline constexpr size_t kTwoDeeper = static_cast<size_t>(-1);

/// Lines of more than `columns` cells broken at spaces; what follows a break begins at cell
/// `rest_at`. Words that are longer stay whole. Cells are those of CellsOf. 0 columns: as it is.
std::string Wrapped(std::string_view text, size_t columns, size_t rest_at = kTwoDeeper);

}  // namespace fusion
