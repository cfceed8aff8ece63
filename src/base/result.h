// The one way in which a function of this process reports that it failed.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace hangar {

// Named after the caller's possible reaction, not after the place of the failure. Add a kind only
// when some caller branches on it; put everything else into the message.
enum class ErrorKind : std::uint8_t {
  InvalidInput,   // The object is wrong. Do not retry until its spec changes.
  NotFound,       // Absent. Often the desired state.
  Conflict,       // Someone wrote first. Read again, then retry at once.
  Expired,        // The watch window is gone (HTTP 410). List again.
  Denied,         // RBAC. Put it in the status; retry slowly.
  Unavailable,    // Network, 5xx, 429. Retry with backoff.
  Cancelled,      // We are stopping. Return; log nothing.
  GuestFault,     // The guest trapped or broke its ABI. Drop the instance, keep the host.
  LimitExceeded,  // Memory, fuel, time or size. Terminal for this run.
  Corrupt,        // Bytes on disk failed their checksum. Delete them and rebuild.
};

class Error {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  [[nodiscard]] ErrorKind kind() const { return kind_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  // The remote system's name for the error, where code branches on it: "AlreadyExists".
  // Often empty.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] Error with_reason(std::string reason) && {
    reason_ = std::move(reason);
    return std::move(*this);
  }

  // Prefixes the operation of this layer: "airway backends.example.com: compile: bad magic".
  [[nodiscard]] Error in(std::string_view doing) && {
    message_.insert(0, std::string(doing) + ": ");
    return std::move(*this);
  }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string reason_;
};

// A class, not an alias, so that the compiler warns about a result that is dropped.
template <class T = void>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

// The name of a kind in logs, metrics and tests: "InvalidInput".
[[nodiscard]] std::string_view name_of(ErrorKind kind);

[[nodiscard]] inline std::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return std::unexpected(Error(kind, std::move(message)));
}

}  // namespace hangar

// HANGAR_TRY(expr) is the value of `expr`, or returns its error from the enclosing function.
// One per statement: two in one expression would shadow each other.
#define HANGAR_TRY(...)                                          \
  __extension__({                                                \
    auto&& hangar_result_ = (__VA_ARGS__);                       \
    if (!hangar_result_) [[unlikely]]                            \
      return std::unexpected(std::move(hangar_result_).error()); \
    *std::move(hangar_result_);                                  \
  })

// The same inside a coroutine: HANGAR_CO_TRY(co_await client.get(...)).
#define HANGAR_CO_TRY(...)                                          \
  __extension__({                                                   \
    auto&& hangar_result_ = (__VA_ARGS__);                          \
    if (!hangar_result_) [[unlikely]]                               \
      co_return std::unexpected(std::move(hangar_result_).error()); \
    *std::move(hangar_result_);                                     \
  })
