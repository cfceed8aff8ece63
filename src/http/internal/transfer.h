// One request on its way through libcurl: its options, and the response that its callbacks collect.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "http/internal/proxy.h"
#include "http/internal/resolver.h"
#include "io/event.h"
#include "io/loop.h"

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hangar::http::internal {

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct SlistDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct ShareDeleter {
  void operator()(CURLSH* share) const { curl_share_cleanup(share); }
};

class Transfer {
 public:
  // Without a `handler` the body is collected.
  Transfer(io::Loop& loop, Request request, std::optional<Client::StreamHandler> handler);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets every option. InvalidInput for a request that is not valid, Denied for an address that its
  // policy refuses.
  [[nodiscard]] Result<> prepare(const ProxyEnvironment& proxies);

  // The server that libcurl connects to: a proxy, or the URL's host.
  struct Peer {
    std::string host;  // In lower case, without brackets.
    std::string port;
    bool is_address = false;  // Else a name.
    bool operator==(const Peer&) const = default;
  };
  [[nodiscard]] const Peer& peer() const { return peer_; }
  // How long the lookup of its name and the connection may take together.
  [[nodiscard]] Duration connect_patience() const;
  // Gives libcurl the addresses of a peer that is a name. Without this call the transfer fails,
  // because libcurl never resolves a name itself. Addresses that the policy refuses are left out;
  // Denied when none is left.
  [[nodiscard]] Result<> set_addresses(Addresses addresses);
  // Sets the time-outs to the remaining time. Unavailable when none remains.
  [[nodiscard]] Result<> begin(Instant now);
  // Marks `error` as one that happened before any byte of this transfer was sent.
  [[nodiscard]] Error unsent(const Error& error) const;

  // True when the response is a redirect to be followed.
  [[nodiscard]] bool is_redirected() const { return is_redirected_; }
  // The transfer that follows the redirect; this one is over. LimitExceeded after redirects_max,
  // Unavailable when the redirect's target is not allowed.
  [[nodiscard]] Result<std::shared_ptr<Transfer>> follow(const ProxyEnvironment& proxies);

  [[nodiscard]] CURL* easy() const { return easy_.get(); }
  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] const io::OneShot<Result<Response>>& done() const { return done_; }

  // True when it may share a connection with other transfers.
  [[nodiscard]] bool may_use_http2() const { return encrypted_ && request_.transport->allow_http2; }
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  // Called inside libcurl when a server that might have spoken HTTP/2 does not.
  std::function<void()> on_http1;

  // From here on no callback is called, and the next byte ends the transfer.
  void fail_with(Error error);
  [[nodiscard]] bool has_failed() const { return failure_.has_value(); }

  // True when the request must be sent again, over HTTP/1.1: it is then set up for that, and may be
  // added to libcurl again.
  [[nodiscard]] bool set_up_again(CURLcode code);

  // Sets done(): libcurl has finished the transfer, or it was removed from libcurl.
  void complete(CURLcode code);

  // When the idle time-out expires if no byte arrives before.
  [[nodiscard]] std::optional<Instant> idle_deadline() const;
  [[nodiscard]] Error idle_error() const;
  io::Loop::Timer idle_timer;

  // Called at the end of each window: true when the response arrived fast enough in it.
  [[nodiscard]] bool keeps_pace();
  [[nodiscard]] Error pace_error() const;
  io::Loop::Timer pace_timer;

 private:
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count,
                               void* self) noexcept;
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self) noexcept;
  [[nodiscard]] std::uint64_t body_size() const;
  // Before the first byte of the request is sent.
  static int on_send(void* self, char* peer_address, char* own_address, int peer_port,
                     int own_port) noexcept;
  // Called for requests with may_send or body_source.
  static std::size_t on_upload(char* buffer, std::size_t size, std::size_t count,
                               void* self) noexcept;
  static int on_rewind(void* self, curl_off_t offset, int origin) noexcept;
  // False ends the transfer.
  [[nodiscard]] bool may_send() noexcept;
  // How many bytes of the body were copied; std::nullopt ends the transfer.
  [[nodiscard]] std::optional<std::size_t> upload(std::span<char> into) noexcept;
  using Take = bool (Transfer::*)(std::string_view bytes);
  [[nodiscard]] std::size_t take(Take part, std::string_view bytes) noexcept;
  // False ends the transfer.
  bool take_header(std::string_view line);
  bool take_headers_end();
  bool take_body(std::string_view bytes);

  // True when the response states its length and all of it has arrived.
  [[nodiscard]] bool is_whole() const;

  [[nodiscard]] Result<> set_url();
  [[nodiscard]] Result<> set_method();
  [[nodiscard]] Result<> set_headers();
  void set_body();
  [[nodiscard]] Result<> set_proxy(const ProxyEnvironment& proxies);
  void set_transport();
  [[nodiscard]] bool may_connect_to(const std::string& address) const;
  [[nodiscard]] Error address_error() const;

  [[nodiscard]] Error to_error(CURLcode code) const;

  Request request_;
  std::optional<Client::StreamHandler> handler_;
  io::Loop& loop_;
  io::OneShot<Result<Response>> done_;

  // The names that libcurl may use: they belong to this transfer, and `easy_` is their only user.
  std::unique_ptr<CURLSH, ShareDeleter> names_;
  std::unique_ptr<CURL, EasyDeleter> easy_;
  std::unique_ptr<curl_slist, SlistDeleter> resolved_;
  std::unique_ptr<curl_slist, SlistDeleter> header_list_;
  std::unique_ptr<curl_slist, SlistDeleter> connect_to_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  std::string scheme_;
  Peer origin_;  // The URL's host.
  Peer peer_;
  bool is_proxied_ = false;
  bool encrypted_ = false;
  bool goes_again_ = false;
  // Not from libcurl's own times: newer versions also set those of a transfer that has failed
  // before.
  bool has_begun_ = false;
  std::string shown_;        // "GET https://host/path": what messages begin with.
  std::string host_header_;  // Set if the URL for libcurl names another host.

  // How much of the body libcurl has taken, for a request with may_send or body_source.
  std::uint64_t uploaded_bytes_ = 0;

  Response response_;
  std::size_t header_bytes_ = 0;
  Instant asked_at_;  // When the first request of a chain of redirects was made.
  Instant created_at_;
  int redirects_ = 0;  // How many were followed so far.
  bool is_redirected_ = false;
  bool headers_ended_ = false;  // Of the final response.
  std::uint64_t body_bytes_ = 0;
  Instant last_arrival_;
  std::uint64_t arrived_bytes_ = 0;  // Headers and body.
  // The bytes before the current window; std::nullopt when the response had not begun.
  std::optional<std::uint64_t> arrived_before_;
  std::optional<Error> failure_;
};

}  // namespace hangar::http::internal
