// One request on its way through libcurl: its options, and what its callbacks collect.
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
  // `handler` null: the body is collected.
  Transfer(io::Loop& loop, Request request, std::optional<Client::StreamHandler> handler);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets every option. InvalidInput when the request is not one, Denied when it is for an address
  // that its policy refuses.
  [[nodiscard]] Result<> prepare(const ProxyEnvironment& proxies);

  // The server that libcurl connects to: a proxy, or the URL's host.
  struct Peer {
    std::string host;  // In lower case, without brackets.
    std::string port;
    bool is_address = false;  // Else a name.
    bool operator==(const Peer&) const = default;
  };
  [[nodiscard]] const Peer& peer() const { return peer_; }
  // How long its name and the connection may take together.
  [[nodiscard]] Duration connect_patience() const;
  // Where libcurl finds a peer that is a name; without a call the transfer fails, for libcurl never
  // resolves a name itself. Denied when the policy allows none of them; those that it refuses are
  // left out.
  [[nodiscard]] Result<> set_addresses(Addresses addresses);
  // Sets what is left of the time-outs. Unavailable when nothing is.
  [[nodiscard]] Result<> begin(Instant now);
  // `error` happened before anything of this transfer was sent.
  [[nodiscard]] Error unsent(const Error& error) const;

  // The answer is a redirect that shall be followed.
  [[nodiscard]] bool is_redirected() const { return is_redirected_; }
  // The transfer that follows it; this one is over. LimitExceeded after redirects_max,
  // Unavailable when the answer leads to where no redirect may lead.
  [[nodiscard]] Result<std::shared_ptr<Transfer>> follow(const ProxyEnvironment& proxies);

  [[nodiscard]] CURL* easy() const { return easy_.get(); }
  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] const io::OneShot<Result<Response>>& done() const { return done_; }

  // Whether it may share a connection with others, and whether it has one.
  [[nodiscard]] bool may_use_http2() const { return encrypted_ && request_.transport->allow_http2; }
  [[nodiscard]] bool has_begun() const;
  // Called when a server that might have spoken HTTP/2 does not; inside of libcurl.
  std::function<void()> on_http1;

  // From here on no callback reaches the caller, and the next byte ends the transfer.
  void fail_with(Error error);
  [[nodiscard]] bool has_failed() const { return failure_.has_value(); }

  // True when the request must go again, over HTTP/1.1: then it is set up for that, and may be
  // added to libcurl anew.
  [[nodiscard]] bool set_up_again(CURLcode code);

  // libcurl is done with it, or it was taken out of libcurl's hands: sets done().
  void complete(CURLcode code);

  // When the idle time-out is due, if nothing arrives until then.
  [[nodiscard]] std::optional<Instant> idle_deadline() const;
  [[nodiscard]] Error idle_error() const;
  io::Loop::Timer idle_timer;

  // Called at the end of each window: whether the answer came fast enough in it.
  [[nodiscard]] bool keeps_pace();
  [[nodiscard]] Error pace_error() const;
  io::Loop::Timer pace_timer;

 private:
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count,
                               void* self) noexcept;
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self) noexcept;
  [[nodiscard]] std::uint64_t body_size() const;
  // Of a request that is asked whether it may be sent, or whose body comes from elsewhere.
  static int on_send(void* self, char* peer_address, char* own_address, int peer_port,
                     int own_port) noexcept;
  static std::size_t on_upload(char* buffer, std::size_t size, std::size_t count,
                               void* self) noexcept;
  static int on_rewind(void* self, curl_off_t offset, int origin) noexcept;
  // False: the transfer ends.
  [[nodiscard]] bool may_send() noexcept;
  // How many bytes of the body were copied; nothing: the transfer ends.
  [[nodiscard]] std::optional<std::size_t> upload(std::span<char> into) noexcept;
  using Take = bool (Transfer::*)(std::string_view bytes);
  [[nodiscard]] std::size_t take(Take part, std::string_view bytes) noexcept;
  // False: the transfer ends.
  bool take_header(std::string_view line);
  bool take_headers_end();
  bool take_body(std::string_view bytes);

  // The answer says how long it is, and all of that is there.
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

  // What libcurl may know of names: this transfer's own, of which `easy_` is the only user.
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
  std::string shown_;        // "GET https://host/path": what messages begin with.
  std::string host_header_;  // Set when the URL that libcurl sees names another host.

  // Handed to libcurl; of a request with may_send or body_source.
  std::uint64_t uploaded_bytes_ = 0;

  Response response_;
  std::size_t header_bytes_ = 0;
  Instant asked_at_;  // The first of a row of redirects.
  Instant created_at_;
  int redirects_ = 0;  // Followed until here.
  bool is_redirected_ = false;
  bool headers_ended_ = false;  // Of the final response.
  std::uint64_t body_bytes_ = 0;
  Instant last_arrival_;
  std::uint64_t arrived_bytes_ = 0;  // Headers and body.
  // Of those, before the window that is under way; nothing: the answer had not begun.
  std::optional<std::uint64_t> arrived_before_;
  std::optional<Error> failure_;
};

}  // namespace hangar::http::internal
