#include "core/learn/recent_reports.h"

#include <algorithm>

namespace fusion {

bool RecentReports::Has(std::string_view tenant, std::string_view id) const {
  const auto of = tenants_.find(tenant);
  return of != tenants_.end() && of->second.all.contains(id);
}

void RecentReports::Add(std::string_view tenant, std::string_view id) {
  if (Has(tenant, id)) return;
  Ids& of = tenants_[std::string(tenant)];
  of.by_age.emplace_back(id);
  of.all.emplace(id);
  if (++ids_ > most_) ForgetOne();
}

void RecentReports::ForgetOne() {
  const auto most = std::max_element(
      tenants_.begin(), tenants_.end(),
      [](const auto& a, const auto& b) { return a.second.all.size() < b.second.all.size(); });
  Ids& of = most->second;
  of.all.erase(of.by_age.front());
  of.by_age.pop_front();
  --ids_;
  if (of.all.empty()) tenants_.erase(most);
}

}  // namespace fusion
