#pragma once

#include <optional>
#include <string_view>

namespace fusion {

/// One field of a full key that a FieldHasher framed. The views point into the key.
struct FramedField {
  std::string_view label;
  std::string_view value;
};

/// Removes the first field from the front of `bytes` and returns it; nullopt, with `bytes`
/// unchanged, if they are empty or have another form.
std::optional<FramedField> NextFramedField(std::string_view* bytes);

/// The tenant of a full key, its field "tenant", if keys are separated by tenant; else empty: the
/// key is shared by all tenants. Does not copy: the view points into `full_key`.
std::string_view TenantOfKey(std::string_view full_key);

}  // namespace fusion
