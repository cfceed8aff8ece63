#include "tracing/exporter.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "tracing/limits.h"
#include "tracing/otlp.h"
#include "tracing/span.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::tracing {

namespace {

constexpr std::chrono::seconds kLastMax{1};

}  // namespace

Exporter::Exporter(io::Loop& loop, http::Client& http, Options options, Metrics& metrics, Log log)
    : loop_(loop),
      http_(http),
      options_(std::move(options)),
      transport_(std::make_shared<const http::Transport>()),
      sent_(metrics.counter("hangar_traces_spans_total", "Spans that the collector has taken.")),
      lost_(metrics.counter("hangar_traces_lost_total",
                            "Spans that the collector did not take, or not in time.")),
      log_(std::move(log)),
      sent_one_(loop) {}

Exporter::~Exporter() = default;

void Exporter::add(Span span) {
  if (queue_.size() >= kQueueMax || is_ending_) return lose(1);
  queue_.push_back(std::move(span));
  if (!is_waiting_ && !is_sending_) send_later(options_.batch_every);
}

void Exporter::lose(std::uint64_t count) {
  lost_.add(static_cast<double>(count));
}

void Exporter::send_later(Duration after) {
  is_waiting_ = true;
  timer_ = loop_.after(after, [this] {
    is_waiting_ = false;
    is_sending_ = true;
    loop_.spawn(send());
  });
}

io::Task<Result<>> Exporter::post(std::string body, std::chrono::milliseconds limit) {
  const http::Response response =
      HANGAR_CO_TRY(co_await http_.send({.method = "POST",
                                         .url = options_.url + std::string(kTracesPath),
                                         .headers = {{"Content-Type", std::string(kOtlpType)}},
                                         .body = std::move(body),
                                         .transport = transport_,
                                         .connect_timeout = limit,
                                         .total_timeout = limit,
                                         .response_bytes_max = kAnswerBytesMax},
                                        stop_.get_token()));
  constexpr int kSuccess = 200;
  constexpr int kNoSuccess = 300;
  if (response.status >= kSuccess && response.status < kNoSuccess) co_return Result<>();
  co_return fail(ErrorKind::Unavailable, fmt::format("HTTP status {}", response.status));
}

io::Task<void> Exporter::send() {
  const std::size_t count = std::min(queue_.size(), kBatchMax);
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Span> batch(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  const std::chrono::milliseconds limit =
      is_ending_ ? std::chrono::milliseconds(kLastMax) : options_.send_max;
  const Result<> sent = co_await post(otlp_of(batch, options_.origin), limit);
  if (sent) {
    sent_.add(static_cast<double>(batch.size()));
    if (std::exchange(is_failing_, false)) log_.info("traces are sent again");
  } else {
    lose(batch.size());
    if (!std::exchange(is_failing_, true) && !is_ending_) {
      log_.warning("traces are lost", {{"error", sent.error().message()}});
    }
  }
  is_sending_ = false;
  sent_one_.notify_all();
  if (is_ending_ || queue_.empty()) co_return;
  send_later(!sent                        ? options_.again
             : queue_.size() >= kBatchMax ? Duration::zero()
                                          : options_.batch_every);
}

io::Task<void> Exporter::stop() {
  is_ending_ = true;
  timer_.cancel();
  // Does not wait for a request that hangs.
  const io::Loop::Timer limit = loop_.after(kLastMax, [this] { stop_.request_stop(); });
  while (is_sending_)
    (void)co_await sent_one_.wait({});
  if (!queue_.empty() && !stop_.stop_requested() && !is_failing_) {
    is_sending_ = true;
    co_await send();
  }
  lose(queue_.size());
  queue_.clear();
}

}  // namespace hangar::tracing
