// Who asks: as the API server of the cluster would say it of the same login.
//
// A caller shows a client certificate, which was verified with the authorities of the cluster's
// clients (http/server.h): common name and organizations are user and groups, as the API server
// has it. Or a bearer token, which the API server is asked about (TokenReview). It is not kept:
// each question proves anew who asks it.
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

// Who shares what everybody has a share of: the ServiceAccounts of one namespace are one, since
// whoever may make one may make a thousand. Everybody else is one by name.
[[nodiscard]] std::string sharer_of(std::string_view user);

class Callers {
 public:
  // `client` asks as the host.
  explicit Callers(const kube::Client& client) : client_(client) {}

  // Never an identity without a name. Denied: nobody that the cluster knows, with words that say
  // what to show. LimitExceeded when too many tokens are being asked about. Unavailable; Cancelled.
  [[nodiscard]] io::Task<Result<kube::Identity>> identify(const http::ServerRequest& request,
                                                          std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<kube::Identity>> review(std::string token, std::stop_token stop);

  const kube::Client client_;
  io::Semaphore reviews_{client_.loop(), kTokenReviewsMax};
  std::size_t waiting_ = 0;
};

}  // namespace hangar::seeing
