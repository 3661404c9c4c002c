#include "server/tenant_namespace.h"

#include "core/base/hash.h"

namespace fusion {

bool IsOfTenant(std::string_view full_key, std::string_view tenant) {
  const auto fields = FieldHasher::Fields(full_key);
  if (!fields.has_value()) return false;
  for (const auto& [name, value] : *fields) {
    if (name == "tenant") return value == tenant;
  }
  return false;
}

}  // namespace fusion
