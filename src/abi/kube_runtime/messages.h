// The messages between guests and the host, and their encoding: bincode 1.3 with its default
// options (little-endian, 64-bit lengths). The published kube-rs fork defines the structures.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::kube_runtime {

using Headers = std::vector<std::pair<std::string, std::string>>;  // Names may repeat.

struct HttpRequest {
  std::string method;
  std::string uri;  // Path and query, sometimes with scheme and host.
  Headers headers;
  std::string body;

  friend bool operator==(const HttpRequest&, const HttpRequest&) = default;
};

struct HttpCall {
  std::uint64_t id = 0;
  bool is_stream = false;  // One wakeup per piece of the body instead of one for the whole body.
  HttpRequest request;
};

struct Delay {
  std::uint64_t id = 0;
  std::chrono::milliseconds duration{};
};

// One call of the guest's export wakeup.
struct Wakeup {
  std::uint64_t id = 0;
  bool finished = false;
  bool is_null = false;   // Has no bytes: the end of a stream or of a delay.
  bool is_event = false;  // Of a stream.
  std::string bytes;
};

// The kinds of requests into a guest, as the guest names them in its call of serve().
enum class Listener : std::uint8_t { Metrics = 0, Webhooks = 1 };

// A guest's answer to a request that the host handed in.
struct InboundAnswer {
  std::uint64_t id = 0;
  int status = 0;
  Headers headers;
  std::string body;

  friend bool operator==(const InboundAnswer&, const InboundAnswer&) = default;
};

// What they take in memory, with the strings of each header: a thousand empty headers are few bytes
// in a message.
[[nodiscard]] std::uint64_t memory_bytes_of(const Headers& headers);
[[nodiscard]] std::uint64_t memory_bytes_of(const HttpRequest& request);
[[nodiscard]] std::uint64_t memory_bytes_of(const InboundAnswer& answer);

// GuestFault for bytes that are not a request. Every length is checked before anything is
// allocated. Method, URI and headers contain nothing that could end a line of HTTP: they are safe
// to send. Header names become lower case. Bytes after the request are ignored, as in the published
// host.
[[nodiscard]] Result<HttpRequest> decode_request(std::string_view bytes);

// The bytes that decode_request reads as `request`; its headers are sorted by their names.
[[nodiscard]] std::string to_bytes(const HttpRequest& request);

// The same for an answer of a guest; its id is not part of the bytes. The status is 200 to 599.
[[nodiscard]] Result<InboundAnswer> decode_inbound_answer(std::string_view bytes);

[[nodiscard]] std::string to_bytes(const InboundAnswer& answer);

// The bytes that wake a listener. Invalid headers are omitted.
[[nodiscard]] std::string encode_inbound_request(std::uint64_t id, const HttpRequest& request);

// bincode of HttpResponseMeta {status_code, headers}. Guests trap on invalid headers (names that
// are not tokens, control characters) and on a status without three digits: so invalid headers are
// omitted, and such a status becomes 502.
[[nodiscard]] std::string encode_response_meta(int status, const Headers& headers);

}  // namespace hangar::abi::kube_runtime
