// Authenticates callers in the same way as the API server of the cluster.
//
// A caller presents a client certificate, which has been verified with the cluster's authorities
// for clients (http/server.h). Its common name is the user and its organizations are the groups, as
// in the API server. Or it presents a bearer token, which the API server reviews (TokenReview).
// Nothing is cached: each request authenticates anew.
//
// Loop thread only.
#pragma once

#include "base/result.h"
#include "http/server.h"
#include "io/event.h"
#include "io/task.h"
#include "kube/client.h"
#include "seeing/limits.h"

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::seeing {

// The name under which limits per user count a user. The ServiceAccounts of one namespace count as
// one, since a user that may create one may create a thousand. Any other user counts by its name.
[[nodiscard]] std::string sharer_of(std::string_view user);

class Callers {
 public:
  // `client` sends reviews with the host's rights.
  explicit Callers(const kube::Client& client) : client_(client) {}

  // Never returns an identity without a user. Denied: the cluster does not know the caller; the
  // message says what to present. LimitExceeded: too many tokens are under review. Unavailable;
  // Cancelled.
  [[nodiscard]] io::Task<Result<kube::Identity>> identify(const http::ServerRequest& request,
                                                          std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<kube::Identity>> review(std::string token, std::stop_token stop);

  const kube::Client client_;
  io::Semaphore reviews_{client_.loop(), kTokenReviewsMax};
  std::size_t waiting_ = 0;
};

}  // namespace hangar::seeing
