#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// `text` as it may stand between tags and in quoted attributes of HTML and of XML. What is no
/// UTF-8 and control characters come out as '?'.
std::string EscapeHtml(std::string_view text);

/// EscapeHtml in an element that keeps the direction of foreign text to itself.
std::string ForeignText(std::string_view text);

}  // namespace fusion
