// Decides when each TenantUsage is written or deleted. No I/O: the caller reports what is used, and
// carries out what is due.
//
// Guarantees: an object is written only if its content has changed, and at most every
// kUsageInterval. One look has at most kUsageWritesMax writes, and those that had to wait come
// first at the next one. After a failure, an object is left alone for kUsageRetry.
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
  // An earlier host has left an object in this namespace.
  void found(const std::string& namespace_name) { objects_.try_emplace(namespace_name); }

  struct Due {
    std::string namespace_name;
    json::Value document;  // Null: delete the object.
  };
  // `documents`: of all namespaces that have a consumer. What is due counts as begun: call done()
  // or failed() for it.
  [[nodiscard]] std::vector<Due> look(std::map<std::string, json::Value> documents, Instant now);

  void done(const Due& due, Instant now);
  void failed(const Due& due, Instant now);

 private:
  struct Object {
    std::string text;  // As it was written; empty: not by this process.
    Instant not_before;
    Instant due_since;  // When it became due; the epoch: it is not due.
  };

  std::map<std::string, Object> objects_;
};

}  // namespace hangar::tenants
