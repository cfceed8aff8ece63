// Who may claim how much where the bytes of all tenants do not suffice.
#pragma once

#include "budget/consumer.h"

#include <cstdint>
#include <map>

namespace hangar::budget {

// Who holds and wants how much of the bytes that all share.
struct Contest {
  std::uint64_t all_bytes = 0;
  std::map<Tenant, std::uint64_t> held = {};
  // The most that one waiter of a tenant lacks.
  std::map<Tenant, std::uint64_t> claims = {};
};

// Each tenant that holds or claims bytes has an equal part of those that the host leaves. The host
// has what it holds, and may claim an eighth of all for work of its own.
class EqualParts {
 public:
  explicit EqualParts(const Contest& contest);

  // Of one tenant.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Whether others have to make room so that it gets `claim` bytes more.
  [[nodiscard]] bool allow(const Tenant& tenant, std::uint64_t claim) const;

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t hosts_bytes_max_;
  std::map<Tenant, std::uint64_t> held_;  // Zero: it only claims some.
};

}  // namespace hangar::budget
