#include "gateway/reply.h"

#include "base/metrics.h"
#include "gateway/documents.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "http/client.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::gateway {

std::stop_token Reply::stop_token() {
  if (!stop_.stop_possible()) stop_ = std::stop_source();
  return stop_.get_token();
}

void Reply::understood(const RequestTarget& target, const Request& request) {
  if (is_open()) answer_->on_understood(target, request);
}

void Reply::progress(std::uint64_t bytes) {
  if (is_open()) answer_->on_progress(bytes);
}

void Reply::head(int status, http::Headers headers, Source source) {
  if (!is_open() || std::exchange(has_head_, true)) return;
  metrics_
      .counter("hangar_gateway_requests_total",
               "Requests of guests, by where the answer came from.",
               {{"verb", std::string(name_of(verb_))},
                {"source", source == Source::Cache ? "cache" : "upstream"},
                {"code", std::to_string(status)}})
      .add();
  answer_->on_head(status, std::move(headers));
}

void Reply::head_json(int status, Source source) {
  head(status, {{"content-type", "application/json"}}, source);
}

void Reply::piece(Piece piece) {
  if (is_open()) answer_->on_piece(std::move(piece));
}

void Reply::bookmark(std::string line) {
  if (is_open()) answer_->on_bookmark(std::move(line));
}

void Reply::end() {
  if (!is_open()) return;
  worker_ = nullptr;
  std::exchange(answer_, nullptr)->on_end();
}

void Reply::refuse(const Refusal& refusal, Source source) {
  constexpr int kTooManyRequests = 429;
  const bool is_ours = source == Source::Cache && refusal.code == kTooManyRequests;
  if (is_open() && !has_head_ && is_ours) answer_->on_bound(refusal.message);
  head_json(refusal.code, source);
  piece(status_document(refusal));
  end();
}

std::optional<Continuation> Reply::continuation() const {
  if (!is_open() || !has_head_ || verb_ != Verb::Watch) return std::nullopt;
  return worker_ != nullptr ? worker_->continuation() : Continuation();
}

void Reply::close() {
  answer_ = nullptr;
  // Makes the state first, so that a token requested after this is stopped too.
  (void)stop_token();
  stop_.request_stop();
  if (worker_ != nullptr) std::exchange(worker_, nullptr)->on_close();
}

}  // namespace hangar::gateway
