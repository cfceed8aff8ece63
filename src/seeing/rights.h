// Decides whether a caller may see an object: if the API server lets the same user `get` it. The
// API server's decisions are cached for some seconds (gateway/authorizer.h).
//
// Users who may `get` a guest see its records. Users who may `get` a Secret see its name.
//
// Loop thread only.
#pragma once

#include "base/result.h"
#include "gateway/authorizer.h"
#include "gateway/read_scope.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"

#include <set>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::seeing {

class Rights {
 public:
  // `client` sends reviews with the host's rights.
  explicit Rights(const kube::Client& client) : authorizer_(client) {}

  // Denied: the message names the missing right. Other errors: Unavailable, Cancelled.
  [[nodiscard]] io::Task<Result<>> require(kube::Identity identity, std::string verb,
                                           kube::Resource resource, kube::ObjectKey key,
                                           std::stop_token stop);
  [[nodiscard]] io::Task<Result<bool>> allows(kube::Identity identity, std::string verb,
                                              kube::Resource resource, kube::ObjectKey key,
                                              std::stop_token stop);
  // The keys that the identity may get. At most kReviewsPerAnswerMax reviews; keys beyond that are
  // left out.
  [[nodiscard]] io::Task<Result<std::set<kube::ObjectKey>>> may_get(kube::Identity identity,
                                                                    kube::Resource resource,
                                                                    std::set<kube::ObjectKey> keys,
                                                                    std::stop_token stop);

 private:
  gateway::Authorizer authorizer_;
};

// `user "jane" may not get operators.hangar.dev "mirror" in namespace "team"`
[[nodiscard]] std::string missing_right(std::string_view user, std::string_view verb,
                                        const kube::Resource& resource, const kube::ObjectKey& key);

}  // namespace hangar::seeing
