#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// Whether a plan or kernel with this full key was made for `tenant` alone: then nobody else is
/// shown that it is there.
bool IsOfTenant(std::string_view full_key, std::string_view tenant);

}  // namespace fusion
