#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace fusion {

/// The ids of the newest reports, by tenant (ReportOrigin::id). Holds at most `most` ids: beyond
/// that the tenant with most ids loses its oldest, so a tenant with few keeps them whatever others
/// send. Takes about 200 bytes an id. Not thread-safe.
class RecentReports {
 public:
  static constexpr int64_t kMost = 1 << 16;

  explicit RecentReports(int64_t most = kMost) : most_(most) {}

  bool Has(std::string_view tenant, std::string_view id) const;
  /// Remembers an id; no effect if it is there already.
  void Add(std::string_view tenant, std::string_view id);
  int64_t ids() const { return ids_; }

 private:
  struct Ids {
    std::deque<std::string> by_age;  // the oldest first
    std::set<std::string, std::less<>> all;
  };
  void ForgetOne();

  const int64_t most_;
  int64_t ids_ = 0;
  std::map<std::string, Ids, std::less<>> tenants_;
};

}  // namespace fusion
