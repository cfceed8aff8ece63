// One GET whose body is bounded while it arrives.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "io/task.h"

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

namespace hangar::modules {

// The reason of an error that a connection, a name or an address ended in, rather than an answer.
inline constexpr std::string_view kNotReached = "NotReached";

// How much of the module has come, of how much; zero: nobody said.
using OnBytes = std::function<void(std::uint64_t received, std::uint64_t total)>;

// Asked before so many bytes are held in memory. An error ends the download, which returns it.
using MayHold = std::function<Result<>(std::uint64_t bytes)>;

// The response with its body, whatever the status; of a body that is not the module itself (any
// status but 200) only the first 64 KiB. Errors: LimitExceeded, before the body is read when
// Content-Length says so; else as http::Client::send(), with the reason
// kNotReached where there was no whole answer. `client` outlives the task.
[[nodiscard]] io::Task<Result<http::Response>> download(http::Client* client, http::Request request,
                                                        std::uint64_t bytes_max, OnBytes on_bytes,
                                                        MayHold may_hold, std::stop_token stop);

}  // namespace hangar::modules
