#include "gateway/caller.h"

#include "budget/consumer.h"
#include "kube/client.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::gateway {

namespace {

// The identity of that user name, with only the groups that the name implies.
kube::Identity implied_by(const std::string& user) {
  return kube::service_account_of(user).value_or(kube::Identity{.user = user});
}

}  // namespace

std::string tenant_of(const kube::Identity& identity) {
  if (!identity.user.starts_with(kube::kServiceAccountPrefix)) return identity.user;
  const std::string_view rest =
      std::string_view(identity.user).substr(kube::kServiceAccountPrefix.size());
  return std::string(rest.substr(0, rest.find(':')));
}

budget::Consumer consumer_of(const kube::Identity& identity) {
  budget::Tenant tenant = identity.user.empty() ? budget::Tenant::host()
                                                : budget::Tenant::of_namespace(tenant_of(identity));
  return {.tenant = std::move(tenant), .name = identity.user};
}

Caller::Caller(const kube::Identity& identity) : user_(identity.user) {
  if (implied_by(identity.user) == identity) return;
  whole_ = std::make_unique<const kube::Identity>(identity);
}

kube::Identity Caller::identity() const {
  return whole_ ? *whole_ : implied_by(std::string(user_));
}

}  // namespace hangar::gateway
