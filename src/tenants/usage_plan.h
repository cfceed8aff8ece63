// When which TenantUsage is written or deleted. No I/O: told what is used, it says what is due.
//
// Guarantees: an object is written only if what it says has changed, no more often than every
// kUsageInterval; a look has at most kUsageWritesMax writes, and those that had to wait come first
// at the next one; what failed is left alone for kUsageRetry.
#pragma once

#include "base/time.h"
#include "json/value.h"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace hangar::tenants {

inline constexpr std::chrono::seconds kUsageInterval{15};
inline constexpr std::size_t kUsageWritesMax = 20;
inline constexpr std::chrono::minutes kUsageRetry{2};

class UsagePlan {
 public:
  // There is an object of an earlier host in this namespace.
  void found(const std::string& namespace_name) { objects_.try_emplace(namespace_name); }

  struct Due {
    std::string namespace_name;
    json::Value document;  // Null: to be deleted.
  };
  // `documents`: of all namespaces that have a consumer. What is due counts as begun: done() or
  // failed() follows.
  [[nodiscard]] std::vector<Due> look(std::map<std::string, json::Value> documents, Instant now);

  void done(const Due& due, Instant now);
  void failed(const Due& due, Instant now);

 private:
  struct Object {
    std::string text;  // As it was written; empty: not by us.
    Instant not_before;
    Instant due_since;  // Since when it waits for its turn; the epoch: it does not.
  };

  std::map<std::string, Object> objects_;
};

}  // namespace hangar::tenants
