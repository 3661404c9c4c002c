#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// `text` as a quoted string of the DOT language of graphviz. Characters that a viewer would act on
/// are escaped.
std::string DotString(std::string_view text);

}  // namespace fusion
