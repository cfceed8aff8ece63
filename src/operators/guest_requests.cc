#include "operators/guest_requests.h"

#include "base/in_slot.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>

namespace hangar::operators {

namespace kube_runtime = abi::kube_runtime;

using kube_runtime::Wakeup;

namespace {

std::optional<TokenBucket> request_rate(const OperatorLimits& limits) {
  if (limits.requests_per_second <= 0) return std::nullopt;
  return TokenBucket(
      {.per_second = limits.requests_per_second, .burst = 2 * limits.requests_per_second});
}

// What a request takes in memory until its answer begins.
std::uint32_t bytes_of(const kube_runtime::HttpRequest& request) {
  std::size_t bytes = request.uri.size() + request.body.size();
  for (const auto& [name, value] : request.headers)
    bytes += name.size() + value.size();
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace

// One request of the guest, and the receiver of its answer.
class GuestRequests::Call final : public gateway::Answer, public slots::InSlot {
 public:
  Call(GuestRequests& requests, std::uint64_t id, bool is_stream, std::uint64_t turn)
      : requests_(&requests),
        id_(id),
        is_stream_(is_stream),
        is_outbound_(false),
        turn_(static_cast<std::uint32_t>(turn)) {}

  // The guest no longer needs the answer, and the owner drops all calls.
  void detach() { requests_ = nullptr; }
  // The guest no longer needs this answer; other calls continue.
  void give_up() {
    release_asked();
    set_under_way(0);
    record_answer(/*status=*/0);
    detach();
  }

  void begin(const kube::Identity& identity, kube_runtime::HttpRequest request) {
    method_ = known_method(request.method);
    is_outbound_ = is_outbound(request.uri);
    asked_bytes_ = bytes_of(request);
    gateway::Request asked{.method = std::move(request.method),
                           .target = std::move(request.uri),
                           .headers = std::move(request.headers),
                           .body = std::move(request.body),
                           .traceparent = requests_->ledger_.traceparent(id_, turn_)};
    const Parts& parts = requests_->parts_;
    exchange_ = is_outbound_
                    ? parts.outbound.begin(requests_->owner_.consumer(), std::move(asked), *this)
                    : parts.gateway.begin(identity, std::move(asked), *this);
  }

  void on_understood(const gateway::RequestTarget& target,
                     const gateway::Request& request) override {
    if (requests_ == nullptr) return;
    requests_->ledger_.record_request(id_, turn_, target, request);
  }
  void on_bound(const std::string& message) override {
    if (requests_ != nullptr) requests_->owner_.on_bound(message);
  }
  void on_progress(std::uint64_t bytes) override {
    if (requests_ == nullptr) return;
    set_under_way(bytes);
  }
  void on_head(int status, http::Headers headers) override {
    if (requests_ == nullptr) return;
    release_asked();
    // Another server's answer is not one of the API server's.
    if (!is_outbound_) requests_->ledger_.on_answer(method_, status);
    status_ = static_cast<std::uint16_t>(status);
    requests_->arrive(
        {.id = id_, .what = Mailbox::Head{.status = status, .headers = std::move(headers)}});
  }
  void on_piece(gateway::Piece piece) override {
    if (requests_ == nullptr) return;
    if (is_stream_) {
      // A bookmark holds for all pieces before it; after a later piece it means nothing.
      static_cast<void>(take_bookmark());
      set_under_way(0);
      requests_->arrive({.id = id_, .what = std::move(piece)});
      return;
    }
    if (auto* const text = std::get_if<std::string>(&piece); text != nullptr && text_.empty()) {
      text_ = std::move(*text);  // Usually the whole answer, and large.
    } else {
      text_ += gateway::text_of(piece);
    }
    set_under_way(text_.size());
  }
  void on_bookmark(std::string line) override {
    if (requests_ == nullptr || !is_stream_) return;
    text_ = std::move(line);
    if (requests_->owner_.is_resident()) {
      requests_->arrive({.id = id_, .what = gateway::Piece(take_bookmark())});
    }
  }
  void on_end() override {
    if (requests_ == nullptr) return;
    release_asked();
    set_under_way(0);
    record_answer(status_);
    if (!is_stream_) requests_->arrive({.id = id_, .what = gateway::Piece(std::move(text_))});
    // If the body overflowed the mailbox, this call is detached.
    if (requests_ != nullptr) requests_->arrive({.id = id_, .what = Mailbox::End{}});
  }

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] bool is_stream() const { return is_stream_; }
  // The bookmark of a stream; empty when there is none.
  [[nodiscard]] std::string take_bookmark() { return std::exchange(text_, {}); }
  // Requires that it is not detached. Status zero: the guest no longer waits.
  void record_answer(int status) const {
    // Another server's answer says nothing about objects of the cluster.
    const bool has_object = !is_stream_ && !is_outbound_ && status != 0;
    const std::string_view body = has_object ? text_ : std::string_view();
    requests_->ledger_.record_answer(id_, method_, status, body);
  }

 private:
  // The request is no longer in memory. Requires that it is not detached.
  void release_asked() {
    if (asked_bytes_ == 0) return;
    requests_->inbox().asked_bytes -= std::exchange(asked_bytes_, 0);
    requests_->recount();
  }
  // Requires that it is not detached.
  void set_under_way(std::uint64_t bytes) {
    if (bytes == under_way_) return;
    const std::uint64_t before = std::exchange(under_way_, bytes);
    const Mailbox::Room room = requests_->inbox().mailbox.set_under_way(before, bytes);
    if (room == Mailbox::Room::Overflow) {
      requests_->overflow({});
    } else if (room == Mailbox::Room::Enough) {
      (void)requests_->account();  // After an overflow, this call is detached.
    }
  }

  GuestRequests* requests_;  // Null: detached.
  const std::uint64_t id_;
  // In one byte: thousands of these sleep.
  const bool is_stream_ : 1;
  bool is_outbound_ : 1;
  KnownMethod method_ = KnownMethod::Other;
  // Fits the padding before the next member: thousands of these sleep.
  std::uint16_t status_ = 0;
  const std::uint32_t turn_;
  std::uint32_t asked_bytes_ = 0;  // Counted in Inbox::asked_bytes for this call.
  std::uint64_t under_way_ = 0;    // The bytes that the mailbox counts as under way for this call.
  // A stream: the bookmark held back while the guest sleeps. Otherwise: the body so far.
  std::string text_;
  std::unique_ptr<gateway::Exchange> exchange_;
};

GuestRequests::GuestRequests(const Parts& parts, Owner& owner, OperatorLedger& ledger,
                             const OperatorLimits& limits)
    : parts_(parts), owner_(owner), ledger_(ledger), rate_(request_rate(limits)) {}

GuestRequests::~GuestRequests() = default;

void GuestRequests::take_up(kube_runtime::TurnOutcome& outcome, std::uint64_t turn) {
  cancel(outcome.cancelled);
  for (const kube_runtime::Delay& delay : outcome.delays) {
    delays_.push_back(
        {.id = delay.id, .timer = parts_.loop.after(delay.duration, [this, id = delay.id] {
           arrive({.id = id, .what = Mailbox::End{}});
         })});
  }
  if (outcome.calls.empty()) return;
  for (kube_runtime::HttpCall& call : outcome.calls) {
    inbox().asked_bytes += bytes_of(call.request);
    inbox().held_back.push_back({.call = std::move(call), .turn = turn});
  }
  (void)account();
}

void GuestRequests::begin_due() {
  if (!inbox_) return;
  std::vector<Inbox::HeldBack>& held_back = inbox_->held_back;
  inbox_->next.cancel();
  if (held_back.empty()) return;
  const kube::Identity identity = owner_.identity();
  auto next = held_back.begin();
  for (; next != held_back.end(); ++next) {
    if (rate_ && !rate_->try_take(io::Loop::now())) break;
    kube_runtime::HttpCall& asked = next->call;
    Call& call =
        *calls_.emplace_back(std::make_unique<Call>(*this, asked.id, asked.is_stream, next->turn));
    if (!asked.is_stream) ++plain_calls_;
    ledger_.on_request();
    call.begin(identity, std::move(asked.request));
  }
  held_back.erase(held_back.begin(), next);
  if (held_back.empty()) return;
  const std::chrono::duration<double> one_more(1 / rate_->options().per_second);
  inbox_->next =
      parts_.loop.after(std::chrono::duration_cast<Duration>(one_more), [this] { begin_due(); });
}

GuestRequests::Arrivals GuestRequests::take_arrivals(Woken& woken) {
  Arrivals arrivals;
  std::vector<Wakeup>& wakeups = arrivals.wakeups;
  wakeups.reserve(waiting_count());
  if (ledger_.is_recording()) woken.reserve(waiting_count());
  std::vector<std::uint64_t> ended_delays;
  for (Mailbox::Arrival& arrival : inbox().mailbox.take()) {
    const auto call = find_call(arrival.id);
    const bool is_timer = call == calls_.end();
    const bool is_plain = !is_timer && !(*call)->is_stream();
    (is_timer ? arrivals.has_timer : arrivals.has_stream) |= !is_plain;
    if (ledger_.is_recording()) {
      woken.add(arrival, is_timer   ? Woken::Source::Timer
                         : is_plain ? Woken::Source::Plain
                                    : Woken::Source::Stream);
    }
    if (auto* const head = std::get_if<Mailbox::Head>(&arrival.what)) {
      wakeups.push_back({.id = arrival.id,
                         .bytes = kube_runtime::encode_response_meta(head->status, head->headers)});
    } else if (auto* const piece = std::get_if<gateway::Piece>(&arrival.what)) {
      auto* const text = std::get_if<std::string>(piece);
      wakeups.push_back({.id = arrival.id,
                         .finished = is_plain,
                         .bytes = text != nullptr ? std::move(*text) : gateway::text_of(*piece)});
    } else {
      // A plain answer ended with its body.
      if (!is_plain) wakeups.push_back({.id = arrival.id, .finished = true, .is_null = true});
      if (is_plain) --plain_calls_;
      if (is_timer) {
        ended_delays.push_back(arrival.id);
      } else {
        calls_.erase(call);
      }
    }
  }
  // All in one pass: a guest may have thousands of delays.
  std::ranges::sort(ended_delays);
  std::erase_if(delays_, [&](const Delay& delay) {
    return std::ranges::binary_search(ended_delays, delay.id);
  });
  for (const std::unique_ptr<Call>& call : calls_) {
    if (!call->is_stream()) continue;
    if (std::string line = call->take_bookmark(); !line.empty()) {
      wakeups.push_back({.id = call->id(), .bytes = std::move(line)});
    }
  }
  for (const Wakeup& wakeup : wakeups)
    inbox().delivered_bytes += wakeup.bytes.size();
  recount();
  return arrivals;
}

void GuestRequests::on_turn_ended() {
  if (!inbox_) return;
  inbox_->delivered_bytes = 0;
  recount();
}

void GuestRequests::clear() {
  if (inbox_) {
    inbox_->next.cancel();
    inbox_->held_back.clear();
    inbox_->asked_bytes = 0;
    inbox_->mailbox.clear();
    recount();
  }
  delays_.clear();
  plain_calls_ = 0;
  for (const std::unique_ptr<Call>& call : calls_) {
    if (!call->is_stream()) call->record_answer(/*status=*/0);
    call->detach();
  }
  // Destroyed later: this function may be running inside one of them.
  if (!calls_.empty()) parts_.loop.post([calls = std::exchange(calls_, {})] {});
}

void GuestRequests::reopen() {
  if (inbox_) inbox_->mailbox.reopen();
}

void GuestRequests::rest() {
  calls_.shrink_to_fit();
  delays_.shrink_to_fit();
  if (inbox_ && inbox_->mailbox.is_idle() && inbox_->asked_bytes == 0) inbox_.reset();
}

bool GuestRequests::is_empty() const {
  const bool expects_nothing = calls_.empty() && delays_.empty();
  if (!inbox_) return expects_nothing;
  // A closed mailbox has dropped what the guest may have waited for: the guest starts anew.
  return expects_nothing && inbox_->held_back.empty() && inbox_->mailbox.is_empty() &&
         !inbox_->mailbox.is_closed();
}

// The guest no longer waits for these.
void GuestRequests::cancel(std::span<const std::uint64_t> ids) {
  for (const std::uint64_t id : ids) {
    if (const auto call = find_call(id); call != calls_.end()) {
      if (!(*call)->is_stream()) --plain_calls_;
      (*call)->give_up();
      // Destroyed later: the gateway may be working on it.
      parts_.loop.post([ended = std::move(*call)] {});
      calls_.erase(call);
    }
  }
  // All in one pass each: a guest may have thousands of delays, and cancel all of them.
  std::vector<std::uint64_t> gone(ids.begin(), ids.end());
  std::ranges::sort(gone);
  const auto is_gone = [&gone](std::uint64_t id) { return std::ranges::binary_search(gone, id); };
  std::erase_if(delays_, [&](const Delay& delay) { return is_gone(delay.id); });
  if (!inbox_ || ids.empty()) return;
  std::erase_if(inbox_->held_back, [&](const Inbox::HeldBack& waiting) {
    if (!is_gone(waiting.call.id)) return false;
    inbox_->asked_bytes -= bytes_of(waiting.call.request);
    return true;
  });
  inbox_->mailbox.drop(gone);
  recount();
}

GuestRequests::Calls::iterator GuestRequests::find_call(std::uint64_t id) {
  const auto found = std::ranges::lower_bound(calls_, id, {}, &Call::id);
  return found != calls_.end() && (*found)->id() == id ? found : calls_.end();
}

bool GuestRequests::account() {
  const auto shortage = inbox_->memory.set(inbox_->bytes());
  if (!shortage) return true;
  const bool is_of_requests = inbox_->asked_bytes > inbox_->answers_bytes();
  inbox_->mailbox.close();
  overflow({.shortage = shortage, .is_of_requests = is_of_requests});
  return false;
}

void GuestRequests::recount() {
  // As text, what was counted as objects may take a step more: the earlier count stays then.
  (void)inbox_->memory.set(inbox_->bytes());
}

void GuestRequests::overflow(const Owner::Overflow& what) {
  // Immediately: if the guest is in a turn, that may be long.
  clear();
  owner_.on_overflow(what);
}

void GuestRequests::arrive(Mailbox::Arrival arrival) {
  const std::uint64_t id = arrival.id;
  const bool is_head_only = std::holds_alternative<Mailbox::Head>(arrival.what);
  const Mailbox::Room room = inbox().mailbox.put(std::move(arrival), io::Loop::now());
  if (room == Mailbox::Room::Overflow) overflow({});
  if (room != Mailbox::Room::Enough || !account()) return;
  // The guest cannot use the head of a plain answer alone.
  const auto call = find_call(id);
  if (is_head_only && call != calls_.end() && !(*call)->is_stream()) return;
  owner_.on_arrival();
}

}  // namespace hangar::operators
