#include "abi/kube_runtime/pending_calls.h"

#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hangar::abi::kube_runtime {

namespace {

// The HTTP status that replaces an answer that does not fit.
constexpr int kInsufficientStorage = 507;

}  // namespace

Result<std::uint64_t> PendingCalls::add_request(HttpRequest request, bool is_stream) {
  Untaken& waiting = untaken();
  if (waiting.requests.size() >= limits::kGuestRequestsWaitingMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the guest asks for more than {} requests at once",
                            limits::kGuestRequestsWaitingMax));
  }
  const std::uint64_t bytes = memory_bytes_of(request);
  if (waiting.requests_bytes + bytes > limits::kGuestRequestsWaitingBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the guest's requests have more than {} bytes at once",
                            limits::kGuestRequestsWaitingBytesMax));
  }
  waiting.requests_bytes += bytes;
  const std::uint64_t id = next_id_++;
  calls_.push_back({.id = id, .kind = Kind::Waiting});
  waiting.requests.push_back({.id = id, .is_stream = is_stream, .request = std::move(request)});
  return id;
}

Result<std::uint64_t> PendingCalls::add_delay(std::uint64_t milliseconds) {
  if (delays_ >= limits::kGuestDelaysMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("the guest waits for more than {} delays at once", limits::kGuestDelaysMax));
  }
  ++delays_;
  const std::uint64_t id = next_id_++;
  calls_.push_back({.id = id, .kind = Kind::Delay});
  const std::uint64_t most = static_cast<std::uint64_t>(limits::kGuestDelayMax.count());
  untaken().delays.push_back(
      {.id = id, .duration = std::chrono::milliseconds(std::min(milliseconds, most))});
  return id;
}

constexpr PendingCalls::Kind PendingCalls::kind_of(Listener listener) {
  switch (listener) {
    case Listener::Metrics:
      return Kind::MetricsListener;
    case Listener::Webhooks:
      return Kind::WebhooksListener;
  }
  return Kind::Finished;
}

std::uint64_t PendingCalls::listen(Listener listener) {
  if (const std::optional<std::uint64_t> known = find(listener)) return *known;
  const std::uint64_t id = next_id_++;
  calls_.push_back({.id = id, .kind = kind_of(listener)});
  return id;
}

std::optional<std::uint64_t> PendingCalls::find(Listener listener) const {
  const auto found = std::ranges::find(calls_, kind_of(listener), &Call::kind);
  return found == calls_.end() ? std::nullopt : std::optional(found->id);
}

Result<std::uint64_t> PendingCalls::add_inbound() {
  if (std::ranges::count(calls_, Kind::Inbound, &Call::kind) >= limits::kGuestInboundMax) {
    return fail(
        ErrorKind::Unavailable,
        fmt::format("the guest has not answered {} earlier requests", limits::kGuestInboundMax));
  }
  // A guest that waits for nothing else finishes no calls, and may never be suspended, so clean up
  // here.
  if (calls_.size() > 2 * (open_count() + limits::kGuestInboundMax)) forget_finished();
  const std::uint64_t id = next_id_++;
  calls_.push_back({.id = id, .kind = Kind::Inbound});
  return id;
}

void PendingCalls::answer_inbound(InboundAnswer answer) {
  const std::size_t index = index_of(answer.id);
  if (index == calls_.size() || calls_[index].kind != Kind::Inbound) return;
  calls_[index].kind = Kind::Finished;
  Untaken& waiting = untaken();
  if (waiting.answers_bytes + answer.body.size() > limits::kGuestInboundAnswersBytesMax) {
    answer = {.id = answer.id,
              .status = kInsufficientStorage,
              .body = fmt::format("the answers of one turn have more than {} bytes",
                                  limits::kGuestInboundAnswersBytesMax)};
  }
  waiting.answers_bytes += answer.body.size();
  waiting.answers.push_back(std::move(answer));
}

void PendingCalls::forget_inbound(std::uint64_t id) {
  const std::size_t index = index_of(id);
  if (index < calls_.size() && calls_[index].kind == Kind::Inbound) {
    calls_[index].kind = Kind::Finished;
  }
}

void PendingCalls::cancel(std::uint64_t id) {
  const std::size_t index = index_of(id);
  if (index == calls_.size()) return;
  if (calls_[index].kind == Kind::MetricsListener || calls_[index].kind == Kind::WebhooksListener) {
    // Erased at once: nothing bounds how often a guest registers a listener and cancels it.
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  if (calls_[index].kind == Kind::Finished || calls_[index].kind == Kind::Inbound) return;
  const auto has_id = [id](const auto& call) { return call.id == id; };
  bool is_taken = true;
  if (calls_[index].kind == Kind::Waiting) {
    const auto waiting = std::ranges::find_if(untaken_->requests, has_id);
    untaken_->requests_bytes -= memory_bytes_of(waiting->request);
    untaken_->requests.erase(waiting);
    // Counted as in flight, so that it finishes like the others.
    calls_[index].kind = Kind::Request;
    ++requests_;
    is_taken = false;
  } else if (untaken_ != nullptr) {
    is_taken = std::erase_if(untaken_->delays, has_id) == 0;
  }
  if (is_taken && !calls_[index].is_finishing) untaken().cancelled.push_back(id);
  finish(id);
}

std::vector<HttpCall> PendingCalls::take_calls() {
  std::vector<HttpCall> taken;
  if (untaken_ == nullptr) return taken;
  std::list<HttpCall>& waiting = untaken_->requests;
  while (!waiting.empty() && requests_ < limits::kGuestRequestsMax) {
    HttpCall& call = waiting.front();
    untaken_->requests_bytes -= memory_bytes_of(call.request);
    calls_[index_of(call.id)].kind = Kind::Request;
    ++requests_;
    taken.push_back(std::move(call));
    waiting.pop_front();
  }
  forget_untaken();
  return taken;
}

std::vector<Delay> PendingCalls::take_delays() {
  if (untaken_ == nullptr) return {};
  std::vector<kube_runtime::Delay> taken = std::exchange(untaken_->delays, {});
  forget_untaken();
  return taken;
}

std::vector<std::uint64_t> PendingCalls::take_cancelled() {
  if (untaken_ == nullptr) return {};
  std::vector<std::uint64_t> taken = std::exchange(untaken_->cancelled, {});
  forget_untaken();
  return taken;
}

std::vector<InboundAnswer> PendingCalls::take_answers() {
  if (untaken_ == nullptr) return {};
  std::vector<InboundAnswer> taken = std::exchange(untaken_->answers, {});
  untaken_->answers_bytes = 0;
  forget_untaken();
  return taken;
}

bool PendingCalls::has(std::uint64_t id) const {
  const std::size_t index = index_of(id);
  return index < calls_.size() && calls_[index].kind != Kind::Finished &&
         calls_[index].kind != Kind::Inbound;
}

void PendingCalls::finish(std::uint64_t id) {
  const std::size_t index = index_of(id);
  if (index == calls_.size()) return;
  Kind& kind = calls_[index].kind;
  // A call that has not started cannot finish.
  if (kind != Kind::Request && kind != Kind::Delay) return;
  --(kind == Kind::Request ? requests_ : delays_);
  kind = Kind::Finished;
  if (calls_.size() > 2 * open_count()) forget_finished();
}

void PendingCalls::expect_finish(std::uint64_t id) {
  if (const std::size_t index = index_of(id); index < calls_.size()) {
    calls_[index].is_finishing = true;
  }
}

void PendingCalls::pack(Packer& into) const {
  into(next_id_);
  into.each(calls_, [&into](const Call& call) { into(call.id, call.kind); });
  static const std::list<HttpCall> none;
  into.each(untaken_ == nullptr ? none : untaken_->requests, [&into](const HttpCall& call) {
    into(call.id, call.is_stream, call.request.method, call.request.uri, call.request.body);
    into.each(call.request.headers,
              [&into](const auto& header) { into(header.first, header.second); });
  });
}

void PendingCalls::unpack(Unpacker& from) {
  from(next_id_);
  from.each(calls_, [&from](Call& call) { from(call.id, call.kind); });
  requests_ = static_cast<std::uint32_t>(std::ranges::count(calls_, Kind::Request, &Call::kind));
  delays_ = static_cast<std::uint32_t>(std::ranges::count(calls_, Kind::Delay, &Call::kind));
  Untaken& waiting = untaken();
  from.each(waiting.requests, [&](HttpCall& call) {
    from(call.id, call.is_stream, call.request.method, call.request.uri, call.request.body);
    from.each(call.request.headers, [&from](auto& header) { from(header.first, header.second); });
    waiting.requests_bytes += memory_bytes_of(call.request);
  });
  forget_untaken();
}

void PendingCalls::shrink() {
  forget_finished();
  calls_.shrink_to_fit();
}

std::size_t PendingCalls::open_count() const {
  return requests_ + delays_ + (untaken_ == nullptr ? 0 : untaken_->requests.size());
}

// Returns calls_.size() when there is no such call.
std::size_t PendingCalls::index_of(std::uint64_t id) const {
  const auto at = std::ranges::lower_bound(calls_, id, {}, &Call::id);
  if (at == calls_.end() || at->id != id) return calls_.size();
  return static_cast<std::size_t>(at - calls_.begin());
}

PendingCalls::Untaken& PendingCalls::untaken() {
  if (untaken_ == nullptr) untaken_ = std::make_unique<Untaken>();
  return *untaken_;
}

void PendingCalls::forget_finished() {
  std::erase_if(calls_, [](const Call& call) { return call.kind == Kind::Finished; });
}

void PendingCalls::forget_untaken() {
  if (untaken_->requests.empty() && untaken_->delays.empty() && untaken_->cancelled.empty() &&
      untaken_->answers.empty()) {
    untaken_.reset();
  }
}

}  // namespace hangar::abi::kube_runtime
