#include "core/base/key_field.h"

#include <charconv>

namespace fusion {

std::optional<FramedField> NextFramedField(std::string_view* bytes) {
  const size_t colon = bytes->find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  size_t size = 0;
  const char* const end = bytes->data() + bytes->size();
  const auto number = std::from_chars(bytes->data() + colon + 1, end, size);
  const auto at = static_cast<size_t>(number.ptr - bytes->data());
  const bool sound = number.ec == std::errc() && at < bytes->size() && (*bytes)[at] == '=' &&
                     size < bytes->size() - at - 1 && (*bytes)[at + 1 + size] == '\n';
  if (!sound) return std::nullopt;
  const FramedField field{bytes->substr(0, colon), bytes->substr(at + 1, size)};
  bytes->remove_prefix(at + size + 2);
  return field;
}

std::string_view TenantOfKey(std::string_view full_key) {
  while (const std::optional<FramedField> field = NextFramedField(&full_key)) {
    if (field->label == "tenant") return field->value;
  }
  return "";
}

}  // namespace fusion
