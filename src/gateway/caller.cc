#include "gateway/caller.h"

#include "kube/client.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

namespace {

// Who has that name, and no groups but those that it brings.
kube::Identity implied_by(const std::string& user) {
  return kube::service_account_of(user).value_or(kube::Identity{.user = user});
}

}  // namespace

std::string tenant_of(const kube::Identity& identity) {
  constexpr std::string_view kServiceAccount = "system:serviceaccount:";
  if (!identity.user.starts_with(kServiceAccount)) return identity.user;
  const std::string_view rest = std::string_view(identity.user).substr(kServiceAccount.size());
  return std::string(rest.substr(0, rest.find(':')));
}

Caller::Caller(const kube::Identity& identity) : user_(identity.user) {
  if (implied_by(identity.user) == identity) return;
  groups_ = std::make_unique<const std::vector<std::string>>(identity.groups);
}

kube::Identity Caller::identity() const {
  std::string user(user_);
  if (!groups_) return implied_by(user);
  return {.user = std::move(user), .groups = *groups_};
}

}  // namespace hangar::gateway
