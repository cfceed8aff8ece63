// Decides how much each tenant may claim when all tenants together need more bytes than there are.
#pragma once

#include "budget/consumer.h"

#include <cstdint>
#include <map>

namespace hangar::budget {

// The shared bytes, and how many of them each tenant holds and wants.
struct Contest {
  std::uint64_t all_bytes = 0;
  std::map<Tenant, std::uint64_t> held = {};
  // The most that one waiter of a tenant lacks.
  std::map<Tenant, std::uint64_t> claims = {};
};

// Each tenant that holds or claims bytes has an equal part of those that the host leaves. The host
// keeps the bytes that it holds, and may claim an eighth of all bytes for its own work.
class EqualParts {
 public:
  explicit EqualParts(const Contest& contest);

  // The part of one tenant.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Whether others have to make room for `claim` more bytes of this tenant.
  [[nodiscard]] bool allow(const Tenant& tenant, std::uint64_t claim) const;

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t hosts_bytes_max_;
  std::map<Tenant, std::uint64_t> held_;  // Zero: the tenant only claims bytes.
};

}  // namespace hangar::budget
