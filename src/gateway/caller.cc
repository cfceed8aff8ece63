#include "gateway/caller.h"

#include "kube/client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

Caller::Caller(const kube::Identity& identity) : user_(identity.user) {
  if (kube::service_account_of(identity.user) == identity) return;
  groups_ = std::make_unique<const std::vector<std::string>>(identity.groups);
}

kube::Identity Caller::identity() const {
  std::string user(user_);
  if (!groups_) return kube::service_account_of(user).value();
  return {.user = std::move(user), .groups = *groups_};
}

}  // namespace hangar::gateway
