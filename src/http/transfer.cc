#include "http/internal/transfer.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "http/authority.h"
#include "http/client.h"
#include "http/internal/network.h"
#include "http/internal/proxy.h"
#include "http/internal/resolver.h"
#include "http/limits.h"
#include "http/simulated_network.h"
#include "io/loop.h"
#include "io/task.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::http::internal {

namespace {

constexpr std::string_view kNeverSent = " (nothing was sent)";

// The connect time-out of a request that sets none: libcurl's default.
constexpr std::chrono::seconds kConnectMax{300};
// How much of the unused body of a redirect is read.
constexpr std::uint64_t kRedirectBodyBytesMax = 64 * limits::kKiB;

// Without key exchanges in a group that the server makes up: with a prime of 10,000 bits, which
// OpenSSL takes, one handshake computes for almost a second, on the loop. TLS 1.3 has named groups
// only, and clients and servers of TLS 1.2 prefer elliptic curves.
constexpr const char* kCiphers = "DEFAULT:!kDHE:!kDHEPSK";

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlDeleter>;

std::string url_part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

// libcurl takes options through varargs; a failure means out of memory or a bug of ours.
template <class T>
void set(CURL* easy, CURLoption option, T value) {
  const CURLcode code = curl_easy_setopt(easy, option, value);
  HANGAR_ASSERT(code == CURLE_OK, curl_easy_strerror(code));
}

curl_blob to_blob(const std::string& bytes) {
  // Not copied here: libcurl copies it for a connection, which may outlive the request.
  return {.data = const_cast<char*>(bytes.data()), .len = bytes.size(), .flags = CURL_BLOB_NOCOPY};
}

// `host` as curl_url_get() returns it: an IPv6 address is in brackets.
Transfer::Peer to_peer(std::string host, std::string port) {
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  host = to_lower(host);
  const bool is_address = parse_address(host).has_value();
  return {.host = std::move(host), .port = std::move(port), .is_address = is_address};
}

// With these schemes the proxy resolves the server's name, as with Go's clients; with libcurl's
// socks5 and socks4, libcurl would.
std::string resolving_scheme(const std::string& scheme) {
  if (scheme == "socks5") return "socks5h";
  if (scheme == "socks4" || scheme == "socks") return "socks4a";
  return scheme;
}

int refuse_to_resolve(void* /*state*/, void* /*reserved*/, void* /*data*/) {
  return 1;
}

std::string without_secrets(const std::string& url) {
  return url.substr(0, url.find_first_of("?@"));
}

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [kMarks](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.contains(c);
  });
}

bool is_field_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// "HTTP/1.1 200 OK", "HTTP/2 200".
int status_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return 0;
  int status = 0;
  for (const char c : line.substr(space + 1, 3)) {
    if (c < '0' || c > '9') return 0;
    status = status * 10 + (c - '0');
  }
  return status;
}

bool is_read(const Request& request) {
  return request.method == "GET" || request.method == "HEAD";
}

bool is_redirect(const Response& response) {
  switch (response.status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return !find_header(response.headers, "location").value_or("").empty();
    default:
      return false;
  }
}

// A peer that vanished silently must not keep a watch open for hours: the kernel probes idle
// connections and drops those with unacknowledged bytes.
int set_socket_options(void* /*data*/, curl_socket_t socket, curlsocktype /*purpose*/) {
  const int timeout_ms = static_cast<int>(std::chrono::milliseconds(limits::kDeadPeerMax).count());
  // Best effort: it fails on sockets other than TCP, which do not have this problem.
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
  return CURL_SOCKOPT_OK;
}

// Removes the duration that libcurl adds ("after 13 ms"): with it, the same failure would have
// another text each time.
std::string without_time(std::string_view said) {
  constexpr std::string_view kAfter = " after ";
  std::string text(said);
  const std::size_t begin = text.find(kAfter);
  if (begin == std::string::npos) return text;
  const std::size_t number = begin + kAfter.size();
  const std::size_t unit = text.find_first_not_of("0123456789", number);
  if (unit == std::string::npos || unit == number) return text;
  for (const std::string_view name : {" milliseconds", " ms"}) {
    if (std::string_view(text).substr(unit).starts_with(name)) {
      return text.erase(begin, unit + name.size() - begin);
    }
  }
  return text;
}

}  // namespace

Transfer::Transfer(io::Loop& loop, Request request, std::optional<Client::StreamHandler> handler)
    : request_(std::move(request)),
      handler_(std::move(handler)),
      loop_(loop),
      done_(loop),
      easy_(curl_easy_init()),
      asked_at_(io::Loop::now()),
      created_at_(asked_at_),
      last_arrival_(asked_at_) {
  HANGAR_ASSERT(easy_ != nullptr, "out of memory");
  if (request_.response_bytes_max == 0) {
    request_.response_bytes_max =
        handler_ ? std::numeric_limits<std::uint64_t>::max() : limits::kResponseBytesMax;
  }
}

Result<> Transfer::prepare(const ProxyEnvironment& proxies) {
  CURL* easy = easy_.get();
  set(easy, CURLOPT_ERRORBUFFER, error_text_.data());
  set(easy, CURLOPT_PRIVATE, static_cast<void*>(this));
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
  set(easy, CURLOPT_HTTP09_ALLOWED, 0L);
  set(easy, CURLOPT_PATH_AS_IS, 1L);
  // The smallest size that libcurl takes. The buffer is held until the response has arrived, and
  // most bodies are smaller.
  set(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(easy, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(easy, CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(easy, CURLOPT_PREREQFUNCTION, &Transfer::on_send);
  set(easy, CURLOPT_PREREQDATA, static_cast<void*>(this));
  HANGAR_TRY(set_url());
  HANGAR_TRY(set_method());
  HANGAR_TRY(set_headers());
  HANGAR_TRY(set_proxy(proxies));
  set_transport();
  // Each redirect leads to a name that the host must resolve: see follow().
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  // libcurl would resolve on its own thread, and join that thread on the loop.
  if (!peer_.is_address) set(easy, CURLOPT_RESOLVER_START_FUNCTION, &refuse_to_resolve);
  if (peer_.is_address && !may_connect_to(peer_.host)) return std::unexpected(address_error());
  return {};
}

Duration Transfer::connect_patience() const {
  Duration patience = request_.connect_timeout.count() == 0 ? Duration(kConnectMax)
                                                            : Duration(request_.connect_timeout);
  if (request_.total_timeout.count() != 0) {
    patience = std::min<Duration>(patience, asked_at_ + request_.total_timeout - created_at_);
  }
  return patience;
}

bool Transfer::may_connect_to(const std::string& address) const {
  return is_proxied_ || request_.transport->addresses.allows(address);
}

Error Transfer::address_error() const {
  return unsent({ErrorKind::Denied,
                 fmt::format("the address of {} is not one that may be connected to", peer_.host)});
}

Result<> Transfer::set_addresses(Addresses addresses) {
  if (!is_proxied_) request_.transport->addresses.remove_refused(addresses);
  if (addresses.empty()) return std::unexpected(address_error());
  const std::string entry =
      fmt::format("{}:{}:{}", peer_.host, peer_.port, fmt::join(addresses, ","));
  names_.reset(curl_share_init());
  resolved_.reset(curl_slist_append(nullptr, entry.c_str()));
  HANGAR_ASSERT(names_ != nullptr && resolved_ != nullptr, "out of memory");
  curl_share_setopt(names_.get(), CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
  set(easy(), CURLOPT_SHARE, names_.get());
  set(easy(), CURLOPT_RESOLVE, resolved_.get());
  return {};
}

Result<> Transfer::begin(Instant now) {
  const auto ms_left = [now](Instant since, std::chrono::milliseconds timeout) {
    return static_cast<long>(
        std::chrono::ceil<std::chrono::milliseconds>(since + timeout - now).count());
  };
  const Error too_late(ErrorKind::Unavailable, "timed out");
  // Zero means no limit for the whole request, and libcurl's kConnectMax for connecting.
  if (request_.connect_timeout.count() != 0) {
    const long connect_ms = ms_left(created_at_, request_.connect_timeout);
    if (connect_ms <= 0) return std::unexpected(unsent(too_late));
    set(easy(), CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
  }
  if (request_.total_timeout.count() != 0) {
    const long total_ms = ms_left(asked_at_, request_.total_timeout);
    if (total_ms <= 0) return std::unexpected(unsent(too_late));
    set(easy(), CURLOPT_TIMEOUT_MS, total_ms);
  }
  last_arrival_ = now;
  return {};
}

Error Transfer::unsent(const Error& error) const {
  std::string message = fmt::format("{}: {}", shown_, error.message());
  if (error.kind() == ErrorKind::Unavailable && redirects_ == 0) message += kNeverSent;
  return {error.kind(), std::move(message)};
}

Result<std::shared_ptr<Transfer>> Transfer::follow(const ProxyEnvironment& proxies) {
  if (redirects_ >= request_.redirects_max) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("{}: more than {} redirects", shown_, request_.redirects_max));
  }
  const Url url(curl_url());
  HANGAR_ASSERT(url != nullptr, "out of memory");
  const std::string location(find_header(response_.headers, "location").value_or(""));
  // The redirect may be relative to this URL, which has been parsed before.
  (void)curl_url_set(url.get(), CURLUPART_URL, request_.url.c_str(), CURLU_PATH_AS_IS);
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, location.c_str(), CURLU_URLENCODE);
  const std::string scheme = url_part(url.get(), CURLUPART_SCHEME);
  if (code != CURLUE_OK || (scheme != "https" && (encrypted_ || scheme != "http"))) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{}: the redirect's target is not {} URL", shown_,
                            encrypted_ ? "an https" : "an http or https"));
  }
  const Peer origin = to_peer(url_part(url.get(), CURLUPART_HOST, CURLU_PUNYCODE),
                              url_part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
  Request request = std::move(request_);
  request.url = url_part(url.get(), CURLUPART_URL);
  if (scheme != scheme_ || origin != origin_) {
    std::erase_if(request.headers, [](const auto& header) {
      return equals_ignoring_case(header.first, "authorization") ||
             equals_ignoring_case(header.first, "cookie") ||
             equals_ignoring_case(header.first, "host");
    });
  }
  auto next = std::make_shared<Transfer>(loop_, std::move(request), std::move(handler_));
  next->asked_at_ = asked_at_;
  next->redirects_ = redirects_ + 1;
  HANGAR_TRY(next->prepare(proxies));
  return next;
}

void Transfer::fail_with(Error error) {
  if (!failure_) failure_ = std::move(error);
}

bool Transfer::set_up_again(CURLcode code) {
  // A server that refuses a request over HTTP/2 before it has read its body (no permission, too
  // large, overloaded) answers and resets the stream. libcurl 7.88 fails at sending the rest and
  // loses the answer; over HTTP/1.1 it does not. The server has not seen the whole body, so it
  // cannot have acted on the request.
  curl_off_t uploaded = 0;
  curl_easy_getinfo(easy(), CURLINFO_SIZE_UPLOAD_T, &uploaded);
  if (code != CURLE_HTTP2_STREAM || goes_again_ || failure_ || headers_ended_ ||
      std::cmp_greater_equal(uploaded, body_size())) {
    return false;
  }
  goes_again_ = true;
  set(easy(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy(), CURLOPT_FRESH_CONNECT, 1L);
  set(easy(), CURLOPT_FORBID_REUSE, 1L);
  response_ = {};
  uploaded_bytes_ = 0;
  return true;
}

void Transfer::complete(CURLcode code) {
  idle_timer.cancel();
  pace_timer.cancel();
  // libcurl takes a response that ends within its headers for one without a body, and drops a
  // response that arrives before the whole request was sent (an API server that refuses a large
  // body at once).
  if (code == CURLE_OK && !headers_ended_) code = CURLE_PARTIAL_FILE;
  if (code != CURLE_OK && is_whole()) code = CURLE_OK;
  // The body of a redirect may be cut, or longer than we read.
  if (is_redirected_) code = CURLE_OK;
  if (failure_) {
    done_.set(std::unexpected(*std::move(failure_)));
  } else if (code != CURLE_OK) {
    done_.set(std::unexpected(to_error(code)));
  } else {
    done_.set(is_redirected_ ? Response{} : std::move(response_));  // follow() needs it.
  }
}

std::optional<Instant> Transfer::idle_deadline() const {
  if (request_.idle_timeout.count() == 0) return std::nullopt;
  return last_arrival_ + request_.idle_timeout;
}

Error Transfer::idle_error() const {
  return {ErrorKind::Unavailable,
          fmt::format("{}: nothing arrived for {}", shown_, to_go_duration(request_.idle_timeout))};
}

bool Transfer::keeps_pace() {
  const bool keeps =
      !arrived_before_ || arrived_bytes_ - *arrived_before_ >= request_.pace_bytes_min;
  if (arrived_bytes_ > 0) arrived_before_ = arrived_bytes_;
  return keeps;
}

Error Transfer::pace_error() const {
  return {ErrorKind::Unavailable,
          fmt::format("{}: too slow, fewer than {} bytes in {}", shown_, request_.pace_bytes_min,
                      to_go_duration(request_.pace_window))};
}

std::size_t Transfer::on_header(char* bytes, std::size_t size, std::size_t count,
                                void* self) noexcept {
  return static_cast<Transfer*>(self)->take(&Transfer::take_header, {bytes, size * count});
}

std::size_t Transfer::on_body(char* bytes, std::size_t size, std::size_t count,
                              void* self) noexcept {
  return static_cast<Transfer*>(self)->take(&Transfer::take_body, {bytes, size * count});
}

// libcurl does not handle exceptions: an exception becomes the error of the request.
std::size_t Transfer::take(Take part, std::string_view bytes) noexcept {
  try {
    if ((this->*part)(bytes)) return bytes.size();
  } catch (...) {
    fail_with(io::error_of_exception());
  }
  return 0;  // Fewer bytes than given: libcurl ends the transfer with CURLE_WRITE_ERROR.
}

int Transfer::on_send(void* self, char* /*peer_address*/, char* /*own_address*/, int /*peer_port*/,
                      int /*own_port*/) noexcept {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.request_.may_send && !transfer.may_send()) return CURL_PREREQFUNC_ABORT;
  transfer.has_begun_ = true;
  return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::on_upload(char* buffer, std::size_t size, std::size_t count,
                                void* self) noexcept {
  return static_cast<Transfer*>(self)
      ->upload({buffer, size * count})
      .value_or(std::size_t{CURL_READFUNC_ABORT});
}

std::optional<std::size_t> Transfer::upload(std::span<char> into) noexcept {
  try {
    if (request_.may_send && !may_send()) return std::nullopt;
    const std::uint64_t left = body_size() - uploaded_bytes_;
    if (left < into.size()) into = into.first(static_cast<std::size_t>(left));
    if (into.empty()) return 0;
    if (!request_.body_source) {
      (void)request_.body.copy(into.data(), into.size(), static_cast<std::size_t>(uploaded_bytes_));
      uploaded_bytes_ += into.size();
      return into.size();
    }
    const Result<std::size_t> count = request_.body_source->read(uploaded_bytes_, into);
    if (count) {
      HANGAR_ASSERT(*count > 0 && *count <= into.size(), "a source fills what it is given");
      uploaded_bytes_ += *count;
      return *count;
    }
    fail_with(Error(count.error()).in(shown_));
  } catch (...) {
    fail_with(io::error_of_exception());
  }
  return std::nullopt;
}

std::uint64_t Transfer::body_size() const {
  return request_.body_source ? request_.body_source->size_bytes : request_.body.size();
}

int Transfer::on_rewind(void* self, curl_off_t offset, int origin) noexcept {
  auto& transfer = *static_cast<Transfer*>(self);
  if (origin != SEEK_SET || offset < 0 || std::cmp_greater(offset, transfer.body_size())) {
    return CURL_SEEKFUNC_CANTSEEK;
  }
  transfer.uploaded_bytes_ = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

bool Transfer::may_send() noexcept {
  try {
    if (request_.may_send()) return true;
    const bool is_begun = uploaded_bytes_ > 0 || goes_again_ || redirects_ > 0;
    fail_with(
        Error(ErrorKind::Unavailable, fmt::format("{}: held back: it may not be sent any more{}",
                                                  shown_, is_begun ? "" : kNeverSent)));
  } catch (...) {
    fail_with(io::error_of_exception());
  }
  return false;
}

bool Transfer::take_header(std::string_view line) {
  last_arrival_ = io::Loop::now();
  arrived_bytes_ += line.size();
  if (failure_) return false;
  if (headers_ended_) return true;  // Trailers.
  if (line.starts_with("HTTP/")) {
    response_.status = status_of(line);
    response_.headers.clear();
    if (line.starts_with("HTTP/1") && may_use_http2() && !goes_again_ && on_http1) on_http1();
    return true;
  }
  header_bytes_ += line.size();
  if (header_bytes_ > limits::kHeaderBytesMax) {
    fail_with(Error(ErrorKind::LimitExceeded, fmt::format("{}: headers of more than {} bytes",
                                                          shown_, limits::kHeaderBytesMax)));
    return false;
  }
  if (trim(line).empty()) return take_headers_end();
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    response_.headers.emplace_back(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
  }
  return true;
}

bool Transfer::take_headers_end() {
  if (response_.status < 200) return true;  // An interim response: the final one follows.
  headers_ended_ = true;
  is_redirected_ = request_.redirects_max > 0 && is_read(request_) && is_redirect(response_);
  if (is_redirected_) return true;
  if (!handler_) return true;
  if (auto result = handler_->on_headers(response_.status, response_.headers); !result) {
    fail_with(std::move(result).error());
  }
  return !failure_;
}

bool Transfer::take_body(std::string_view bytes) {
  last_arrival_ = io::Loop::now();
  arrived_bytes_ += bytes.size();
  if (failure_) return false;
  body_bytes_ += bytes.size();
  if (is_redirected_) return body_bytes_ <= kRedirectBodyBytesMax;
  if (body_bytes_ > request_.response_bytes_max) {
    fail_with(Error(ErrorKind::LimitExceeded, fmt::format("{}: a body of more than {} bytes",
                                                          shown_, request_.response_bytes_max)));
    return false;
  }
  if (!handler_) {
    response_.body += bytes;
    if (request_.on_progress) request_.on_progress(body_bytes_);
    return !failure_;
  }
  if (auto result = handler_->on_bytes(bytes); !result) fail_with(std::move(result).error());
  return !failure_;
}

bool Transfer::is_whole() const {
  const auto length = find_header(response_.headers, "content-length");
  return headers_ended_ && length && *length == std::to_string(body_bytes_);
}

Result<> Transfer::set_url() {
  const Url url(curl_url());
  HANGAR_ASSERT(url != nullptr, "out of memory");
  const CURLUcode code =
      curl_url_set(url.get(), CURLUPART_URL, request_.url.c_str(), CURLU_PATH_AS_IS);
  const std::string scheme = url_part(url.get(), CURLUPART_SCHEME);
  if (code != CURLUE_OK || (scheme != "http" && scheme != "https") || request_.url.contains('\0')) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not an http or https URL", without_secrets(request_.url)));
  }
  // The host in the form that libcurl uses in its cache of names.
  const std::string host = url_part(url.get(), CURLUPART_HOST, CURLU_PUNYCODE);
  // libcurl reads the URL once more when it connects. Only a host without escapes is certain to be
  // the same then as the one whose address is checked.
  if (!parse_authority(host)) {
    return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" has a host that is not a valid name",
                                                     without_secrets(request_.url)));
  }
  const std::string port = url_part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const std::string shown_port = url_part(url.get(), CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  const std::string authority = shown_port.empty() ? host : host + ":" + shown_port;
  shown_ = fmt::format("{} {}://{}{}", request_.method, scheme, authority,
                       url_part(url.get(), CURLUPART_PATH));

  scheme_ = scheme;
  encrypted_ = scheme == "https";
  origin_ = to_peer(host, port);
  const std::string& server_name = request_.transport->server_name;
  if (encrypted_ && !server_name.empty() && server_name != host) {
    // libcurl takes the name for SNI and verification from the URL. So the URL names the server,
    // the connection goes where the URL pointed before, and the Host header is set to what it would
    // have been.
    if (curl_url_set(url.get(), CURLUPART_HOST, server_name.c_str(), 0) != CURLUE_OK) {
      return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not a server name", server_name));
    }
    host_header_ = authority;
    const std::string detour = fmt::format("{}:{}:{}:{}", server_name, port, host, port);
    connect_to_.reset(curl_slist_append(nullptr, detour.c_str()));
    set(easy(), CURLOPT_CONNECT_TO, connect_to_.get());
  }
  set(easy(), CURLOPT_URL, url_part(url.get(), CURLUPART_URL).c_str());
  set(easy(), CURLOPT_PROTOCOLS_STR, "http,https");
  return {};
}

Result<> Transfer::set_method() {
  const std::string& method = request_.method;
  if (!is_token(method)) {
    return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not a method", method));
  }
  if (method == "HEAD") {
    set(easy(), CURLOPT_NOBODY, 1L);
    return {};
  }
  if (body_size() > 0 || method == "POST" || method == "PUT" || method == "PATCH") {
    set(easy(), CURLOPT_POST, 1L);
    set_body();
    if (method != "POST") set(easy(), CURLOPT_CUSTOMREQUEST, method.c_str());
    return {};
  }
  set(easy(), CURLOPT_HTTPGET, 1L);
  if (method != "GET") set(easy(), CURLOPT_CUSTOMREQUEST, method.c_str());
  return {};
}

void Transfer::set_body() {
  set(easy(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_size()));
  if (!request_.may_send && !request_.body_source) {
    set(easy(), CURLOPT_POSTFIELDS, request_.body.data());
    return;
  }
  set(easy(), CURLOPT_READFUNCTION, &Transfer::on_upload);
  set(easy(), CURLOPT_READDATA, static_cast<void*>(this));
  // libcurl replaces a connection that turns out to be closed, and sends the body again from
  // its start.
  set(easy(), CURLOPT_SEEKFUNCTION, &Transfer::on_rewind);
  set(easy(), CURLOPT_SEEKDATA, static_cast<void*>(this));
}

Result<> Transfer::set_headers() {
  curl_slist* last = nullptr;
  const auto add = [this, &last](const std::string& line) {
    // libcurl walks from the element that it is given to the end: from the first one, thousands of
    // headers of a guest would take the loop a tenth of a second.
    curl_slist* const list = curl_slist_append(last, line.c_str());
    HANGAR_ASSERT(list != nullptr, "out of memory");
    if (!header_list_) header_list_.reset(list);
    last = last == nullptr ? list : list->next;
  };
  for (const auto& [name, value] : request_.headers) {
    if (!is_token(name) || !is_field_value(value)) {
      return fail(ErrorKind::InvalidInput, fmt::format("{}: a header named \"{}\" cannot be sent",
                                                       shown_, is_token(name) ? name : "?"));
    }
    // libcurl's syntax for sending a header with an empty value and with a value.
    add(trim(value).empty() ? name + ";" : fmt::format("{}: {}", name, value));
  }
  if (!host_header_.empty() && !find_header(request_.headers, "host")) {
    add("Host: " + host_header_);
  }
  // Suppresses what libcurl would add by itself: a wait for "100 Continue", and the type of a form.
  if (!find_header(request_.headers, "expect")) add("Expect:");
  if (!find_header(request_.headers, "content-type")) add("Content-Type:");
  set(easy(), CURLOPT_HTTPHEADER, header_list_.get());
  return {};
}

// Set also when there is no proxy: libcurl would otherwise read the environment itself.
Result<> Transfer::set_proxy(const ProxyEnvironment& proxies) {
  const Transport& transport = *request_.transport;
  peer_ = origin_;
  std::string chosen;
  if (!transport.direct) {
    chosen = transport.proxy_url.empty() ? proxies.proxy_for(scheme_, origin_.host)
                                         : transport.proxy_url;
  }
  set(easy(), CURLOPT_NOPROXY, "");
  if (chosen.empty()) {
    set(easy(), CURLOPT_PROXY, "");
    return {};
  }
  if (!chosen.contains("://")) chosen.insert(0, "http://");
  const Url url(curl_url());
  HANGAR_ASSERT(url != nullptr, "out of memory");
  const CURLUcode code =
      curl_url_set(url.get(), CURLUPART_URL, chosen.c_str(), CURLU_NON_SUPPORT_SCHEME);
  const std::string scheme = resolving_scheme(url_part(url.get(), CURLUPART_SCHEME));
  const std::string host = url_part(url.get(), CURLUPART_HOST, CURLU_PUNYCODE);
  if (code != CURLUE_OK || host.empty()) {
    return fail(ErrorKind::InvalidInput, fmt::format("{}: the proxy to use is not a URL", shown_));
  }
  std::string port = url_part(url.get(), CURLUPART_PORT);
  if (port.empty()) port = scheme == "https" ? "443" : "1080";  // libcurl's defaults.
  curl_url_set(url.get(), CURLUPART_SCHEME, scheme.c_str(), CURLU_NON_SUPPORT_SCHEME);
  curl_url_set(url.get(), CURLUPART_PORT, port.c_str(), 0);
  set(easy(), CURLOPT_PROXY, url_part(url.get(), CURLUPART_URL).c_str());
  peer_ = to_peer(host, std::move(port));
  is_proxied_ = true;
  return {};
}

void Transfer::set_transport() {
  const Transport& transport = *request_.transport;
  set(easy(), CURLOPT_SSL_CIPHER_LIST, kCiphers);
  if (may_use_http2()) {
    set(easy(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    // Waits for the first connection instead of opening one for each request: it will carry all
    // of them.
    set(easy(), CURLOPT_PIPEWAIT, 1L);
  } else {
    set(easy(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  }
  if (transport.skip_verify) {
    set(easy(), CURLOPT_SSL_VERIFYPEER, 0L);
    set(easy(), CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!transport.ca_pem.empty()) {
    const curl_blob blob = to_blob(transport.ca_pem);
    set(easy(), CURLOPT_CAINFO_BLOB, &blob);
    // Both default to the system's authorities, which would be trusted, too.
    set(easy(), CURLOPT_CAINFO, static_cast<const char*>(nullptr));
    set(easy(), CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!transport.certificate_pem.empty()) {
    const curl_blob certificate = to_blob(transport.certificate_pem);
    const curl_blob key = to_blob(transport.key_pem);
    set(easy(), CURLOPT_SSLCERTTYPE, "PEM");
    set(easy(), CURLOPT_SSLCERT_BLOB, &certificate);
    set(easy(), CURLOPT_SSLKEYTYPE, "PEM");
    set(easy(), CURLOPT_SSLKEY_BLOB, &key);
  }
  set(easy(), CURLOPT_SOCKOPTFUNCTION, &set_socket_options);
  set(easy(), CURLOPT_TCP_KEEPALIVE, 1L);
  constexpr long kProbeSeconds = 10;
  const auto idle_seconds = limits::kDeadPeerMax.count() - 2 * kProbeSeconds;
  set(easy(), CURLOPT_TCP_KEEPIDLE, static_cast<long>(idle_seconds));
  set(easy(), CURLOPT_TCP_KEEPINTVL, kProbeSeconds);
}

Error Transfer::to_error(CURLcode code) const {
  const std::string_view said(error_text_.data());
  std::string message =
      fmt::format("{}: {}", shown_, without_time(said.empty() ? curl_easy_strerror(code) : said));
  if (!has_begun() && redirects_ == 0) message += kNeverSent;
  return {ErrorKind::Unavailable, std::move(message)};
}

}  // namespace hangar::http::internal

namespace hangar::http {

bool was_never_sent(const Error& error) {
  return error.kind() == ErrorKind::Unavailable && error.message().ends_with(internal::kNeverSent);
}

std::string never_sent(std::string message) {
  return std::move(message) + std::string(internal::kNeverSent);
}

}  // namespace hangar::http
