// Passing a request on to the API server, as the guest's identity, and its answer back.
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
  // How the answer comes back: as a whole; as it arrives; as it arrives, a line each.
  enum class Body : std::uint8_t { Whole, Pieces, Lines };
  kube::RawRequest request;
  Body body = Body::Whole;
  bool is_write = false;
  // Told of a whole answer before the guest is; of none (status zero), too. Null: nobody.
  std::function<void(int status, std::string_view body)> on_answer;
};

// Until the reply's end. `client` has the guest's identity. No answer is a 503.
[[nodiscard]] io::Task<void> pass_on(kube::Client client, Forward forward,
                                     std::shared_ptr<Reply> reply);

}  // namespace hangar::gateway
