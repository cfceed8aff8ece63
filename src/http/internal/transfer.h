// One request on its way through libcurl: its options, and what its callbacks collect.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::http::internal {

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct SlistDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

class Transfer {
 public:
  // `handler` null: the body is collected.
  Transfer(io::Loop& loop, Request request, std::optional<Client::StreamHandler> handler);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets every option. InvalidInput when the request is not one.
  [[nodiscard]] Result<> prepare();

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

 private:
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self);
  // False: the transfer ends.
  bool take_header(std::string_view line);
  bool take_headers_end();
  bool take_body(std::string_view bytes);

  // The answer says how long it is, and all of that is there.
  [[nodiscard]] bool is_whole() const;

  [[nodiscard]] Result<> set_url();
  [[nodiscard]] Result<> set_method();
  [[nodiscard]] Result<> set_headers();
  void set_transport();
  void set_limits();

  [[nodiscard]] Error to_error(CURLcode code) const;

  Request request_;
  std::optional<Client::StreamHandler> handler_;
  io::OneShot<Result<Response>> done_;

  std::unique_ptr<CURL, EasyDeleter> easy_;
  std::unique_ptr<curl_slist, SlistDeleter> header_list_;
  std::unique_ptr<curl_slist, SlistDeleter> connect_to_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  bool encrypted_ = false;
  bool goes_again_ = false;
  std::string shown_;        // "GET https://host/path": what messages begin with.
  std::string host_header_;  // Set when the URL that libcurl sees names another host.

  Response response_;
  std::size_t header_bytes_ = 0;
  int redirects_ = 0;
  bool headers_ended_ = false;  // Of the final response.
  std::uint64_t body_bytes_ = 0;
  Instant last_arrival_;
  std::optional<Error> failure_;
};

}  // namespace hangar::http::internal
