// One GET whose body is bounded while it arrives.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "io/task.h"

#include <cstdint>
#include <stop_token>

namespace hangar::modules {

// The response with its body, whatever the status; of a body that is not the module itself (any
// status but 200) only the first 64 KiB. Errors: LimitExceeded, before the body is read when
// Content-Length says so; else as http::Client::send(). `client` outlives the task.
[[nodiscard]] io::Task<Result<http::Response>> download(http::Client* client, http::Request request,
                                                        std::uint64_t bytes_max,
                                                        std::stop_token stop);

}  // namespace hangar::modules
