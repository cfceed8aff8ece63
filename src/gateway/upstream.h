// Forwards a request to the API server with the guest's identity, and its answer to the guest.
#pragma once

#include "gateway/reply.h"
#include "gateway/request_target.h"
#include "io/task.h"
#include "kube/client.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace hangar::gateway {

struct Forward {
  // How the answer is delivered: as a whole; in pieces as they arrive; or line by line as
  // they arrive.
  enum class Body : std::uint8_t { Whole, Pieces, Lines };
  kube::RawRequest request;
  Body body = Body::Whole;
  bool is_write = false;
  // Called with a whole answer before the guest gets it; with status zero if there was none. Null:
  // not called.
  std::function<void(int status, std::string_view body)> on_answer;
};

// Runs until the end of the reply. `client` has the guest's identity. If no answer comes, the guest
// gets a 503.
[[nodiscard]] io::Task<void> pass_on(kube::Client client, Forward forward,
                                     std::shared_ptr<Reply> reply);

}  // namespace hangar::gateway
