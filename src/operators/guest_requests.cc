#include "operators/guest_requests.h"

#include "base/in_slot.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace hangar::operators {

namespace kube_runtime = abi::kube_runtime;

using kube_runtime::Wakeup;

namespace {

constexpr int kOk = 200;

// What a delay takes with its timer. Few count as nothing, so that guests that sleep with them need
// no inbox.
constexpr std::uint64_t kDelayBytes = 400;
constexpr std::size_t kDelaysUncounted = 128;

std::optional<TokenBucket> request_rate(const OperatorLimits& limits) {
  if (limits.requests_per_second <= 0) return std::nullopt;
  return TokenBucket(
      {.per_second = limits.requests_per_second, .burst = 2 * limits.requests_per_second});
}

// What a request takes in memory until its answer begins.
std::uint32_t bytes_of(const kube_runtime::HttpRequest& request) {
  return static_cast<std::uint32_t>(kube_runtime::memory_bytes_of(request));
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
        has_ended_(false),
        continues_(false),
        is_refused_(false),
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

  // Goes on with the answer to a request of a host before this one.
  void take_over(const kube::Identity& identity, CarriedRequests::Call carried) {
    method_ = KnownMethod::Get;
    status_ = kOk;
    text_ = std::move(carried.bookmark);
    continues_ = true;
    if (!carried.continuation) {
      has_ended_ = true;
      return;
    }
    exchange_ = requests_->parts_.gateway.begin(
        identity,
        {.method = "GET",
         .target = std::move(carried.continuation->target),
         .headers = {{"accept", std::move(carried.continuation->accept)}},
         .body = {}},
        *this);
  }

  // Nothing: its answer is under way, and cannot go on elsewhere.
  [[nodiscard]] std::optional<gateway::Continuation> continuation() const {
    if (has_ended_ || is_refused_) return gateway::Continuation();
    if (!is_stream_ || exchange_ == nullptr) return std::nullopt;
    return exchange_->continuation();
  }

  void on_understood(const gateway::RequestTarget& target,
                     const gateway::Request& request) override {
    // A request that continues another one is not the guest's.
    if (requests_ == nullptr || continues_) return;
    requests_->ledger_.record_request(id_, turn_, target, request);
  }
  void on_bound(const std::string& message) override {
    if (requests_ != nullptr) requests_->owner_.on_bound(message);
  }
  void on_progress(std::uint64_t bytes) override {
    if (requests_ == nullptr) return;
    // Of a watch that is not a stream for the guest, there are earlier lines, too.
    set_under_way(is_stream_ ? bytes : text_.size() + bytes);
  }
  void on_head(int status, http::Headers headers) override {
    if (requests_ == nullptr) return;
    if (continues_) {
      // The guest has had a head. If this one is an error, the guest learns of it when it watches
      // again.
      is_refused_ = status != kOk;
      return;
    }
    release_asked();
    // Another server's answer is not one of the API server's.
    if (!is_outbound_) requests_->ledger_.on_answer(method_, status);
    status_ = static_cast<std::uint16_t>(status);
    requests_->arrive(
        {.id = id_, .what = Mailbox::Head{.status = status, .headers = std::move(headers)}});
  }
  void on_piece(gateway::Piece piece) override {
    if (requests_ == nullptr || is_refused_) return;
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
    has_ended_ = true;
    release_asked();
    set_under_way(0);
    record_answer(status_);
    if (!is_stream_) requests_->arrive({.id = id_, .what = gateway::Piece(std::move(text_))});
    // If the body overflowed the mailbox, this call is detached.
    if (requests_ != nullptr) requests_->arrive({.id = id_, .what = Mailbox::End{}});
  }

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] bool is_stream() const { return is_stream_; }
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  [[nodiscard]] const std::string& bookmark() const { return text_; }
  // The bookmark of a stream; empty when there is none.
  [[nodiscard]] std::string take_bookmark() { return std::exchange(text_, {}); }
  // Requires that it is not detached. Status zero: the guest no longer waits.
  void record_answer(int status) const {
    // Another server's answer says nothing about objects of the cluster.
    const bool has_object = !is_stream_ && !is_outbound_ && status != 0;
    const std::string_view body = has_object ? text_ : std::string_view();
    requests_->ledger_.record_answer(id_, status, body);
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
  bool has_ended_ : 1;
  bool continues_ : 1;   // The answer to a request of a host before this one.
  bool is_refused_ : 1;  // That host's watch cannot be continued.
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
  for (const kube_runtime::Delay& delay : outcome.delays)
    add_delay(delay.id, io::Loop::now() + delay.duration);
  for (kube_runtime::HttpCall& call : outcome.calls) {
    inbox().asked_bytes += bytes_of(call.request);
    inbox().held_back.push_back({.call = std::move(call), .turn = turn});
  }
  if (count_delays() || !outcome.calls.empty()) (void)account();
}

bool GuestRequests::count_delays() {
  const std::uint64_t bytes = delays_.size() > kDelaysUncounted ? kDelayBytes * delays_.size() : 0;
  if (bytes == (inbox_ ? inbox_->delays_bytes : 0)) return false;
  const bool are_more = bytes > std::exchange(inbox().delays_bytes, bytes);
  if (!are_more) recount();
  return are_more;
}

void GuestRequests::add_delay(std::uint64_t id, Instant due) {
  const Duration wait = std::max(Duration::zero(), Duration(due - io::Loop::now()));
  delays_.push_back({.id = id, .due = due, .timer = parts_.loop.after(wait, [this, id] {
                       arrive({.id = id, .what = Mailbox::End{}});
                     })});
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
  inbox().due.cancel();
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
                         .is_event = !is_plain,
                         .bytes = text != nullptr ? std::move(*text) : gateway::text_of(*piece)});
    } else {
      // A plain answer ended with its body.
      if (!is_plain) {
        wakeups.push_back(
            {.id = arrival.id, .finished = true, .is_null = true, .is_event = !is_timer});
      }
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
  (void)count_delays();  // There are no more than before.
  for (const std::unique_ptr<Call>& call : calls_) {
    if (!call->is_stream()) continue;
    if (std::string line = call->take_bookmark(); !line.empty()) {
      wakeups.push_back({.id = call->id(), .is_event = true, .bytes = std::move(line)});
    }
  }
  for (const Wakeup& wakeup : wakeups)
    inbox().delivered_bytes += wakeup.bytes.size();
  recount();
  return arrivals;
}

Result<CarriedRequests> GuestRequests::carry() const {
  const bool is_waiting = inbox_ && (!inbox_->held_back.empty() || inbox_->mailbox.is_closed());
  if (is_waiting) return fail(ErrorKind::Unavailable, "some of its requests had not been sent yet");
  CarriedRequests carried;
  std::vector<std::uint64_t> ends;
  for (const std::unique_ptr<Call>& call : calls_) {
    std::optional<gateway::Continuation> continuation = call->continuation();
    if (!continuation) {
      return fail(ErrorKind::Unavailable, call->is_stream()
                                              ? "a stream that it reads cannot be continued"
                                              : "one of its requests was in progress");
    }
    if (continuation->target.empty()) {
      if (!call->has_ended()) ends.push_back(call->id());
      continuation.reset();
    }
    carried.calls.push_back({.id = call->id(),
                             .is_stream = call->is_stream(),
                             .continuation = std::move(continuation),
                             .bookmark = call->is_stream() ? call->bookmark() : std::string()});
  }
  std::set<std::uint64_t> arrived;
  std::size_t bytes = 0;
  if (inbox_) {
    for (const Mailbox::Arrival& arrival : inbox_->mailbox.arrivals()) {
      arrived.insert(arrival.id);
      CarriedRequests::Arrival& copy = carried.arrivals.emplace_back();
      copy.id = arrival.id;
      if (const auto* const head = std::get_if<Mailbox::Head>(&arrival.what)) {
        copy.what = CarriedRequests::Head{.status = head->status, .headers = head->headers};
      } else if (const auto* const piece = std::get_if<gateway::Piece>(&arrival.what)) {
        std::string text = gateway::text_of(*piece);
        bytes += text.size();
        copy.what = std::move(text);
      } else {
        copy.what = CarriedRequests::End();
      }
      if (bytes > kCarriedArrivalsBytesMax) {
        return fail(ErrorKind::Unavailable, "too many answers waited for it");
      }
    }
  }
  for (const std::uint64_t id : ends)
    carried.arrivals.push_back({.id = id, .what = CarriedRequests::End()});
  for (const Delay& delay : delays_) {
    if (!arrived.contains(delay.id)) carried.delays.push_back({.id = delay.id, .due = delay.due});
  }
  return carried;
}

void GuestRequests::take_over(CarriedRequests carried) {
  const kube::Identity identity = owner_.identity();
  for (CarriedRequests::Call& call : carried.calls) {
    calls_.push_back(std::make_unique<Call>(*this, call.id, call.is_stream, ledger_.turn_number()));
    if (!call.is_stream) ++plain_calls_;
    calls_.back()->take_over(identity, std::move(call));
  }
  for (const CarriedRequests::Delay& delay : carried.delays)
    add_delay(delay.id, delay.due);
  for (CarriedRequests::Arrival& arrival : carried.arrivals) {
    if (auto* const head = std::get_if<CarriedRequests::Head>(&arrival.what)) {
      arrive({.id = arrival.id,
              .what = Mailbox::Head{.status = head->status, .headers = std::move(head->headers)}});
    } else if (auto* const text = std::get_if<std::string>(&arrival.what)) {
      arrive({.id = arrival.id, .what = gateway::Piece(std::move(*text))});
    } else {
      arrive({.id = arrival.id, .what = Mailbox::End{}});
    }
  }
  if (count_delays()) (void)account();
}

void GuestRequests::on_turn_ended() {
  if (!inbox_) return;
  inbox_->delivered_bytes = 0;
  recount();
}

void GuestRequests::clear() {
  if (inbox_) {
    inbox_->next.cancel();
    inbox_->due.cancel();
    inbox_->held_back.clear();
    inbox_->asked_bytes = 0;
    inbox_->delays_bytes = 0;
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
  const bool counts_something = inbox_ && inbox_->asked_bytes + inbox_->delays_bytes > 0;
  if (inbox_ && inbox_->mailbox.is_idle() && !counts_something) inbox_.reset();
}

bool GuestRequests::is_empty() const {
  const bool expects_nothing = calls_.empty() && delays_.empty();
  if (!inbox_) return expects_nothing;
  // A closed mailbox has dropped what the guest may have waited for: the guest starts anew.
  return expects_nothing && inbox_->held_back.empty() && inbox_->mailbox.is_empty() &&
         !inbox_->mailbox.is_closed();
}

bool GuestRequests::is_answer_under_way() const {
  const bool is_held_back = inbox_ && !inbox_->held_back.empty();
  return is_held_back || std::ranges::any_of(calls_, [](const std::unique_ptr<Call>& call) {
           return !call->is_stream() && !call->has_ended();
         });
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
  const bool is_of_requests = inbox_->asked_bytes + inbox_->delays_bytes > inbox_->answers_bytes();
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
  const auto call = find_call(id);
  const bool is_timer = call == calls_.end();
  const bool is_event = !is_timer && (*call)->is_stream();
  const bool is_useless_alone = is_head_only && !is_timer && !is_event;
  const Mailbox::Haste haste = is_useless_alone              ? Mailbox::Haste::None
                               : is_event && awaits_answer() ? Mailbox::Haste::Little
                                                             : Mailbox::Haste::Full;
  const Mailbox::Room room = inbox().mailbox.put(std::move(arrival), io::Loop::now(), haste);
  if (room == Mailbox::Room::Overflow) overflow({});
  if (room != Mailbox::Room::Enough || !account()) return;
  if (!is_useless_alone) announce();
}

void GuestRequests::announce() {
  const std::optional<Instant> due = inbox_->mailbox.due();
  if (!due) return;
  const Duration wait = *due - io::Loop::now();
  if (wait > Duration::zero()) {
    inbox_->due = parts_.loop.after(wait, [this] { announce(); });
    return;
  }
  inbox_->due.cancel();
  owner_.on_arrival();
}

}  // namespace hangar::operators
