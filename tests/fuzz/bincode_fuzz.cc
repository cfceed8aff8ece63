// Bytes that a long-running guest passes as an HTTP request, or as an answer to one.

#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/test_bincode.h"
#include "base/assert.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kube_runtime = hangar::abi::kube_runtime;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto answer = kube_runtime::decode_inbound_answer(bytes)) {
    HANGAR_ASSERT(answer->status >= 200 && answer->status < 600, "a final status");
    HANGAR_ASSERT(answer->body.size() <= size, "nothing is made up");
    for (const auto& [name, value] : answer->headers)
      HANGAR_ASSERT((name + value).find_first_of("\r\n") == std::string_view::npos, "one line");
  }
  const auto request = kube_runtime::decode_request(bytes);
  if (!request) {
    HANGAR_ASSERT(!request.error().message().empty(), "a refusal has a reason");
    return 0;
  }
  std::size_t header_bytes = 0;
  for (const auto& [name, value] : request->headers) {
    header_bytes += name.size() + value.size();
    HANGAR_ASSERT((name + value).find_first_of("\r\n") == std::string_view::npos, "one line each");
  }
  HANGAR_ASSERT(header_bytes <= hangar::limits::kGuestRequestHeaderBytesMax, "bounded");
  HANGAR_ASSERT(request->method.size() + request->uri.size() + request->body.size() <= size,
                "nothing is made up");

  // The guest's form groups values of one name, so the order is stable after one round.
  const auto again = kube_runtime::decode_request(kube_runtime::encode_request(*request));
  HANGAR_ASSERT(again && again->method == request->method && again->uri == request->uri &&
                    again->body == request->body &&
                    again->headers.size() == request->headers.size(),
                "what was read can be written");
  HANGAR_ASSERT(*kube_runtime::decode_request(kube_runtime::encode_request(*again)) == *again,
                "and read again");

  const auto meta =
      kube_runtime::decode_response_meta(kube_runtime::encode_response_meta(200, again->headers));
  HANGAR_ASSERT(meta && meta->headers == again->headers, "headers survive the way back");
  return 0;
}
