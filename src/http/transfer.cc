#include "http/internal/transfer.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "io/loop.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::http::internal {

namespace {

constexpr std::string_view kNeverSent = " (nothing was sent)";

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
  // A connection, which outlives its request, makes copies of its own.
  return {.data = const_cast<char*>(bytes.data()), .len = bytes.size(), .flags = CURL_BLOB_NOCOPY};
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

// A peer that vanished without a word must not hold a watch for hours: the kernel probes idle
// connections and gives up on unacknowledged bytes.
int set_socket_options(void* /*data*/, curl_socket_t socket, curlsocktype /*purpose*/) {
  const int timeout_ms = static_cast<int>(std::chrono::milliseconds(limits::kDeadPeerMax).count());
  // Best effort: it fails on sockets that are no TCP sockets, which have no such problem.
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
  return CURL_SOCKOPT_OK;
}

// libcurl says how long it tried ("after 13 ms"): the same failure would be another text each time.
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
      done_(loop),
      easy_(curl_easy_init()),
      last_arrival_(io::Loop::now()) {
  HANGAR_ASSERT(easy_ != nullptr, "out of memory");
  if (request_.response_bytes_max == 0) {
    request_.response_bytes_max =
        handler_ ? std::numeric_limits<std::uint64_t>::max() : limits::kResponseBytesMax;
  }
}

Result<> Transfer::prepare() {
  CURL* easy = easy_.get();
  set(easy, CURLOPT_ERRORBUFFER, error_text_.data());
  set(easy, CURLOPT_PRIVATE, static_cast<void*>(this));
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
  set(easy, CURLOPT_HTTP09_ALLOWED, 0L);
  set(easy, CURLOPT_PATH_AS_IS, 1L);
  // The least that libcurl takes. It is held until the answer is there; most bodies are smaller.
  set(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(easy, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(easy, CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
  HANGAR_TRY(set_url());
  HANGAR_TRY(set_method());
  HANGAR_TRY(set_headers());
  set_transport();
  set_limits();
  return {};
}

bool Transfer::has_begun() const {
  curl_off_t sending_at_us = 0;
  curl_easy_getinfo(easy(), CURLINFO_PRETRANSFER_TIME_T, &sending_at_us);
  return sending_at_us > 0;
}

void Transfer::fail_with(Error error) {
  if (!failure_) failure_ = std::move(error);
}

bool Transfer::set_up_again(CURLcode code) {
  // A server that refuses a request over HTTP/2 before it has read its body (no permission, too
  // large, overloaded) answers and resets the stream. libcurl 7.88 fails at sending the rest and
  // loses the answer; over HTTP/1.1 it does not. The server has not seen all of the body, so it
  // cannot have acted on the request.
  curl_off_t uploaded = 0;
  curl_easy_getinfo(easy(), CURLINFO_SIZE_UPLOAD_T, &uploaded);
  if (code != CURLE_HTTP2_STREAM || goes_again_ || failure_ || headers_ended_ ||
      std::cmp_greater_equal(uploaded, request_.body.size())) {
    return false;
  }
  goes_again_ = true;
  set(easy(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy(), CURLOPT_FRESH_CONNECT, 1L);
  set(easy(), CURLOPT_FORBID_REUSE, 1L);
  response_ = {};
  return true;
}

void Transfer::complete(CURLcode code) {
  idle_timer.cancel();
  // libcurl takes an answer that ends within its headers for one without a body, and drops one that
  // comes before the whole request was taken (an API server that refuses a large body at once).
  if (code == CURLE_OK && !headers_ended_) code = CURLE_PARTIAL_FILE;
  if (code != CURLE_OK && is_whole()) code = CURLE_OK;
  if (failure_) {
    done_.set(std::unexpected(*std::move(failure_)));
  } else if (code != CURLE_OK) {
    done_.set(std::unexpected(to_error(code)));
  } else {
    done_.set(std::move(response_));
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

std::size_t Transfer::on_header(char* bytes, std::size_t size, std::size_t count, void* self) {
  // Fewer than given: libcurl ends the transfer with CURLE_WRITE_ERROR.
  return static_cast<Transfer*>(self)->take_header({bytes, size * count}) ? size * count : 0;
}

std::size_t Transfer::on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->take_body({bytes, size * count}) ? size * count : 0;
}

bool Transfer::take_header(std::string_view line) {
  last_arrival_ = io::Loop::now();
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
  if (response_.status < 200) return true;  // Interim: the real one follows.
  if (is_redirect(response_) && request_.redirects_max > 0) {
    ++redirects_;
    return true;  // libcurl follows it, or fails with CURLE_TOO_MANY_REDIRECTS.
  }
  headers_ended_ = true;
  if (!handler_) return true;
  if (auto result = handler_->on_headers(response_.status, response_.headers); !result) {
    fail_with(std::move(result).error());
  }
  return !failure_;
}

bool Transfer::take_body(std::string_view bytes) {
  last_arrival_ = io::Loop::now();
  if (failure_) return false;
  body_bytes_ += bytes.size();
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
                fmt::format("\"{}\" is no http or https URL",
                            request_.url.substr(0, request_.url.find_first_of("?@"))));
  }
  const std::string host = url_part(url.get(), CURLUPART_HOST);
  const std::string port = url_part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const std::string shown_port = url_part(url.get(), CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  const std::string authority = shown_port.empty() ? host : host + ":" + shown_port;
  shown_ = fmt::format("{} {}://{}{}", request_.method, scheme, authority,
                       url_part(url.get(), CURLUPART_PATH));

  encrypted_ = scheme == "https";
  const std::string& server_name = request_.transport->server_name;
  if (encrypted_ && !server_name.empty() && server_name != host) {
    // libcurl takes the name for SNI and verification from the URL: it is put there, the connection
    // goes to where the URL pointed before, and the Host header says what it would have said.
    if (curl_url_set(url.get(), CURLUPART_HOST, server_name.c_str(), 0) != CURLUE_OK) {
      return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is no server name", server_name));
    }
    host_header_ = authority;
    const std::string detour = fmt::format("{}:{}:{}:{}", server_name, port, host, port);
    connect_to_.reset(curl_slist_append(nullptr, detour.c_str()));
    set(easy(), CURLOPT_CONNECT_TO, connect_to_.get());
  }
  set(easy(), CURLOPT_URL, url_part(url.get(), CURLUPART_URL).c_str());
  set(easy(), CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy(), CURLOPT_REDIR_PROTOCOLS_STR, encrypted_ ? "https" : "http,https");
  return {};
}

Result<> Transfer::set_method() {
  const std::string& method = request_.method;
  if (!is_token(method)) {
    return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is no method", method));
  }
  if (method == "HEAD") {
    set(easy(), CURLOPT_NOBODY, 1L);
    return {};
  }
  if (!request_.body.empty() || method == "POST" || method == "PUT" || method == "PATCH") {
    set(easy(), CURLOPT_POST, 1L);
    set(easy(), CURLOPT_POSTFIELDS, request_.body.data());
    set(easy(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    if (method != "POST") set(easy(), CURLOPT_CUSTOMREQUEST, method.c_str());
    return {};
  }
  set(easy(), CURLOPT_HTTPGET, 1L);
  if (method != "GET") set(easy(), CURLOPT_CUSTOMREQUEST, method.c_str());
  return {};
}

Result<> Transfer::set_headers() {
  const auto add = [this](const std::string& line) {
    curl_slist* head = curl_slist_append(header_list_.get(), line.c_str());
    HANGAR_ASSERT(head != nullptr, "out of memory");
    if (!header_list_) header_list_.reset(head);
  };
  for (const auto& [name, value] : request_.headers) {
    if (!is_token(name) || !is_field_value(value)) {
      return fail(ErrorKind::InvalidInput, fmt::format("{}: a header named \"{}\" cannot be sent",
                                                       shown_, is_token(name) ? name : "?"));
    }
    // libcurl's ways to say "send it empty" and "send it".
    add(trim(value).empty() ? name + ";" : name + ": " + value);
  }
  if (!host_header_.empty() && !find_header(request_.headers, "host")) {
    add("Host: " + host_header_);
  }
  // What libcurl would add by itself: a wait for "100 Continue", and a form's type.
  if (!find_header(request_.headers, "expect")) add("Expect:");
  if (!find_header(request_.headers, "content-type")) add("Content-Type:");
  set(easy(), CURLOPT_HTTPHEADER, header_list_.get());
  return {};
}

void Transfer::set_transport() {
  const Transport& transport = *request_.transport;
  if (may_use_http2()) {
    set(easy(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    // Rather wait for the first connection than open one each: it will carry all of them.
    set(easy(), CURLOPT_PIPEWAIT, 1L);
  } else {
    set(easy(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  }
  if (transport.direct) {
    set(easy(), CURLOPT_PROXY, "");
  } else if (!transport.proxy_url.empty()) {
    set(easy(), CURLOPT_PROXY, transport.proxy_url.c_str());
    set(easy(), CURLOPT_NOPROXY, "");  // Chosen for this server: the environment has no say.
  }
  if (transport.skip_verify) {
    set(easy(), CURLOPT_SSL_VERIFYPEER, 0L);
    set(easy(), CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!transport.ca_pem.empty()) {
    const curl_blob blob = to_blob(transport.ca_pem);
    set(easy(), CURLOPT_CAINFO_BLOB, &blob);
    // Both default to the system's, whose authorities would be trusted too.
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

void Transfer::set_limits() {
  // Zero means no limit for the whole, and libcurl's default of 300 s for connecting.
  set(easy(), CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.connect_timeout.count()));
  set(easy(), CURLOPT_TIMEOUT_MS, static_cast<long>(request_.total_timeout.count()));
  set(easy(), CURLOPT_FOLLOWLOCATION, request_.redirects_max > 0 ? 1L : 0L);
  set(easy(), CURLOPT_MAXREDIRS, static_cast<long>(request_.redirects_max));
  set(easy(), CURLOPT_UNRESTRICTED_AUTH, 0L);
}

Error Transfer::to_error(CURLcode code) const {
  const std::string_view said(error_text_.data());
  std::string message =
      fmt::format("{}: {}", shown_, without_time(said.empty() ? curl_easy_strerror(code) : said));
  if (code == CURLE_TOO_MANY_REDIRECTS) return {ErrorKind::LimitExceeded, std::move(message)};
  if (!has_begun() && redirects_ == 0) message += kNeverSent;
  return {ErrorKind::Unavailable, std::move(message)};
}

}  // namespace hangar::http::internal

namespace hangar::http {

bool was_never_sent(const Error& error) {
  return error.kind() == ErrorKind::Unavailable && error.message().ends_with(internal::kNeverSent);
}

}  // namespace hangar::http
