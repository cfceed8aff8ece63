// Who has a watch, in little room: thousands of these lie in one host.
#pragma once

#include "base/slots.h"
#include "kube/client.h"

#include <memory>
#include <string>

namespace hangar::gateway {

// Whom an identity's work is counted for: its namespace; for what is not a service account, itself.
[[nodiscard]] std::string tenant_of(const kube::Identity& identity);

class Caller {
 public:
  explicit Caller(const kube::Identity& identity);

  [[nodiscard]] kube::Identity identity() const;

 private:
  std::basic_string<char, std::char_traits<char>, slots::Allocator<char>> user_;
  // Null: what the API server gives the service account that this is, or nothing. As mostly.
  std::unique_ptr<const kube::Identity> whole_;
};

}  // namespace hangar::gateway
