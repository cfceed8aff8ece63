// One GET request whose body is bounded while it arrives.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "io/task.h"

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

namespace hangar::modules {

// The reason in errors that come from a connection, a name or an address, not from a response.
inline constexpr std::string_view kNotReached = "NotReached";

// How many bytes of the module have arrived, and the total; a total of zero: unknown.
using OnBytes = std::function<void(std::uint64_t received, std::uint64_t total)>;

// Called before `bytes` are held in memory. An error stops the download, which returns it.
using MayHold = std::function<Result<>(std::uint64_t bytes)>;

// Returns the response with its body, whatever the status; of a body that is not the module (any
// status but 200) only the first 64 KiB. Errors: LimitExceeded, before the body is read if
// Content-Length says so; otherwise those of http::Client::send(), with the reason kNotReached when
// no whole response arrived. `client` outlives the task.
[[nodiscard]] io::Task<Result<http::Response>> download(http::Client* client, http::Request request,
                                                        std::uint64_t bytes_max, OnBytes on_bytes,
                                                        MayHold may_hold, std::stop_token stop);

}  // namespace hangar::modules
