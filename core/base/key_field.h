#pragma once

#include <optional>
#include <string_view>

namespace fusion {

/// A field of a full key, as a FieldHasher framed it. Refers to the key.
struct FramedField {
  std::string_view label;
  std::string_view value;
};

/// Takes the first field off the front of `bytes`; nullopt at their end, or if they are none of
/// this form.
std::optional<FramedField> NextFramedField(std::string_view* bytes);

/// The tenant that a full key is of, where tenants are kept apart; empty: of everybody. Copies
/// nothing. Pure.
std::string_view TenantOfKey(std::string_view full_key);

}  // namespace fusion
