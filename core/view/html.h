#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// Escapes `text` for use between tags and in quoted attributes of HTML and XML. Invalid UTF-8 and
/// control characters become '?'.
std::string EscapeHtml(std::string_view text);

/// EscapeHtml inside an element that isolates the text's writing direction. For text from
/// elsewhere.
std::string ForeignText(std::string_view text);

}  // namespace fusion
