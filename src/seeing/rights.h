// What a caller may see: what the API server lets the same user get. It is asked each time, and its
// answers are believed for some seconds (gateway/authorizer.h).
//
// A record is its operator's: who may `get` that sees it. A Secret is named to who may `get` it.
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
  // `client` asks as the host.
  explicit Rights(const kube::Client& client) : authorizer_(client) {}

  // Denied: the message names the right that is missing. Errors else: Unavailable, Cancelled.
  [[nodiscard]] io::Task<Result<>> require(kube::Identity identity, std::string verb,
                                           kube::Resource resource, kube::ObjectKey key,
                                           std::stop_token stop);
  [[nodiscard]] io::Task<Result<bool>> allows(kube::Identity identity, std::string verb,
                                              kube::Resource resource, kube::ObjectKey key,
                                              std::stop_token stop);
  // Those of `keys` that it may get. After kReviewsPerAnswerMax questions the rest is left out.
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
