// Decides when each TenantUsage is written or deleted. No I/O: the caller reports the usage, and
// carries out the due writes.
//
// Guarantees: an object is written only if its content has changed by much, if amounts in it have
// since kUsageAmountInterval, or by little since kUsageRefresh, and at most every kUsageInterval.
// One look() returns at most kUsageWritesMax
// writes; those that had to wait come first in the next one. After a failure, an object is not
// written for kUsageRetry. An object is deleted when its namespace has had no consumer for
// kUsageGone: a host that has just started may not know all of them yet.
#pragma once

#include "base/time.h"
#include "json/value.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hangar::tenants {

inline constexpr std::chrono::seconds kUsageInterval{15};
inline constexpr std::chrono::seconds kUsageAmountInterval{30};
inline constexpr std::size_t kUsageWritesMax = 20;
inline constexpr std::chrono::minutes kUsageRetry{2};
inline constexpr std::chrono::minutes kUsageRefresh{5};
inline constexpr std::chrono::seconds kUsageGone{20};

enum class UsageChange : std::uint8_t { None, Little, Some, Much };
// Compares two documents of one TenantUsage. Little: amounts differ by at most a tenth of the
// larger one, or of the limit; Some: by more, as they do whenever a guest wakes. Every change of a
// limit, a policy or a number of objects is much.
[[nodiscard]] UsageChange usage_change(const json::Value& before, const json::Value& after);

class UsagePlan {
 public:
  // An earlier host has left an object in this namespace.
  void found(const std::string& namespace_name) { objects_.try_emplace(namespace_name); }

  struct Due {
    std::string namespace_name;
    json::Value document;  // Null: delete the object.
  };
  // `documents`: those of all namespaces that have a consumer. Call done() or failed() for each
  // returned write.
  [[nodiscard]] std::vector<Due> look(std::map<std::string, json::Value> documents, Instant now);

  void done(const Due& due, Instant now);
  void failed(const Due& due, Instant now);

 private:
  struct Object {
    // As it was written; empty: this process has not written it. As text, which takes a quarter of
    // the memory that values take.
    std::string document;
    Instant written;
    Instant not_before;
    Instant gone_since;  // When its namespace lost its last consumer; the epoch: it has consumers.
    Instant due_since;   // When it became due; the epoch: it is not due.
  };

  [[nodiscard]] static bool is_due(const Object& object, const json::Value* wanted, Instant now);

  std::map<std::string, Object> objects_;
};

}  // namespace hangar::tenants
