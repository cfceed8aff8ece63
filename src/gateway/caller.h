// The identity that a watch belongs to, in little memory: one host holds thousands of these.
#pragma once

#include "base/slots.h"
#include "budget/consumer.h"
#include "kube/client.h"

#include <memory>
#include <string>

namespace hangar::gateway {

// The tenant that an identity's work is counted for: the namespace of a service account; for any
// other identity, its user name.
[[nodiscard]] std::string tenant_of(const kube::Identity& identity);

// The same as a consumer of a fair queue. An empty user is the host itself.
[[nodiscard]] budget::Consumer consumer_of(const kube::Identity& identity);

class Caller {
 public:
  explicit Caller(const kube::Identity& identity);

  [[nodiscard]] kube::Identity identity() const;

 private:
  std::basic_string<char, std::char_traits<char>, slots::Allocator<char>> user_;
  // Null when the identity has only what the API server implies by its user name, as almost all do.
  std::unique_ptr<const kube::Identity> whole_;
};

}  // namespace hangar::gateway
