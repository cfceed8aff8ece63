// Passing a request on to the API server, as the guest's identity, and its answer back.
#pragma once

#include "gateway/reply.h"
#include "gateway/request_target.h"
#include "io/task.h"
#include "kube/client.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::gateway {

struct Forward {
  // How the answer comes back: as a whole; as it arrives; as it arrives, a line each.
  enum class Body : std::uint8_t { Whole, Pieces, Lines };
  kube::RawRequest request;
  Body body = Body::Whole;
  bool is_write = false;
};

// Until the reply's end. `client` has the guest's identity. No answer is a 503.
[[nodiscard]] io::Task<void> pass_on(kube::Client client, Forward forward,
                                     std::shared_ptr<Reply> reply);

// Whole lines, each with its end, out of a stream in pieces.
class LineCutter {
 public:
  explicit LineCutter(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  // False when a line is too long; then nothing more is to be fed.
  [[nodiscard]] bool feed(std::string_view piece, const std::function<void(std::string)>& on_line);

 private:
  std::size_t line_bytes_max_;
  std::string partial_;
};

}  // namespace hangar::gateway
