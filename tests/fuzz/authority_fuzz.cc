// The host and port of a URL from anywhere. What is understood has one form, and libcurl, which
// connects to the server, reads the same server from that form and from the text itself.
#include "base/assert.h"
#include "base/text.h"
#include "http/authority.h"

#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace {

using hangar::http::Authority;
using hangar::http::parse_authority;

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, 0) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

// The server that libcurl reads, if it reads one. A zone of an IPv6 address and a user are no part
// of what may follow "//".
std::optional<std::string> read_by_libcurl(std::string_view authority) {
  const std::unique_ptr<CURLU, UrlDeleter> url(curl_url());
  const std::string text = "https://" + std::string(authority) + "/x";
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_PATH_AS_IS) != CURLUE_OK) {
    return std::nullopt;
  }
  HANGAR_ASSERT(part(url.get(), CURLUPART_PATH) == "/x", "a part of the path");
  HANGAR_ASSERT(part(url.get(), CURLUPART_USER).empty(), "a user");
  HANGAR_ASSERT(part(url.get(), CURLUPART_ZONEID).empty(), "a zone");
  const std::string port = part(url.get(), CURLUPART_PORT);
  return hangar::to_lower(part(url.get(), CURLUPART_HOST)) + (port.empty() ? "" : ":" + port);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto authority = parse_authority(text);
  if (!authority) return 0;
  const std::string form = authority->to_string();
  const auto again = parse_authority(form);
  HANGAR_ASSERT(again && *again == *authority && again->to_string() == form,
                "a form that is read differently");
  // libcurl has another form for some IPv6 addresses.
  const auto fetched = read_by_libcurl(form);
  HANGAR_ASSERT(fetched && parse_authority(*fetched).value() == *authority,
                "libcurl reads another server");
  const auto as_written = read_by_libcurl(text);
  HANGAR_ASSERT(!as_written || parse_authority(*as_written).value() == *authority,
                "libcurl reads another server in the text");
  return 0;
}
