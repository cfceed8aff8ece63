#include "abi/kube_runtime/known_calls.h"

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace hangar::abi::kube_runtime {

namespace {

std::unexpected<Error> impossible(std::string_view what) {
  return fail(ErrorKind::GuestFault, fmt::format("its turn has {}", what));
}

}  // namespace

// Cancelled calls make room for new ones, as in PendingCalls.
Result<> KnownCalls::take(const TurnOutcome& outcome, const Ids& ids) {
  if (ids.next < next_id_) return impossible("ids that were used before");
  next_id_ = ids.next;
  inbound_count_ = 0;
  HANGAR_TRY(cancel(outcome.cancelled));
  HANGAR_TRY(answer(outcome.answers));
  forget_finished();
  metrics_ = ids.metrics;
  webhooks_ = ids.webhooks;
  for (const HttpCall& call : outcome.calls)
    HANGAR_TRY(add(call.id, Kind::Request, last_request_));
  for (const Delay& delay : outcome.delays)
    HANGAR_TRY(add(delay.id, Kind::Delay, last_delay_));
  if (count(Kind::Request) > limits::kGuestRequestsMax) {
    return impossible("more requests in flight than a guest may have");
  }
  if (count(Kind::Delay) > limits::kGuestDelaysMax) {
    return impossible("more delays than a guest may have");
  }
  for (const std::optional<std::uint64_t>& listener : {metrics_, webhooks_}) {
    if (listener && (*listener >= next_id_ || find(*listener) != nullptr)) {
      return impossible("a listener with the id of something else");
    }
  }
  if (metrics_ && metrics_ == webhooks_) return impossible("two listeners with one id");
  return {};
}

bool KnownCalls::has(std::uint64_t id) const {
  if (metrics_ == id || webhooks_ == id) return true;
  const Call* const call = find(id);
  return call != nullptr && call->kind != Kind::Inbound;
}

void KnownCalls::finish(std::uint64_t id) {
  Call* const call = find(id);
  if (call == nullptr || call->kind == Kind::Inbound) return;
  finish(*call);
  if (calls_.size() > 2 * (calls_.size() - finished_)) forget_finished();
}

bool KnownCalls::listens(Listener listener) const {
  return find(listener).has_value();
}

std::optional<std::uint64_t> KnownCalls::find(Listener listener) const {
  switch (listener) {
    case Listener::Metrics:
      return metrics_;
    case Listener::Webhooks:
      return webhooks_;
  }
  return std::nullopt;
}

Result<Guest::Inbound> KnownCalls::hand_in(Listener listener, const HttpRequest& request) {
  const std::optional<std::uint64_t> to = find(listener);
  if (!to) return fail(ErrorKind::NotFound, "the guest has no listener for these requests");
  if (count(Kind::Inbound) >= limits::kGuestInboundMax) {
    return fail(
        ErrorKind::Unavailable,
        fmt::format("the guest has not answered {} earlier requests", limits::kGuestInboundMax));
  }
  const std::uint64_t id = next_id_++;
  calls_.push_back({.id = id, .kind = Kind::Inbound});
  ++inbound_count_;
  return Guest::Inbound{.id = id,
                        .wakeup = {.id = *to, .bytes = encode_inbound_request(id, request)}};
}

std::uint32_t KnownCalls::take_inbound_count() {
  return std::exchange(inbound_count_, 0);
}

void KnownCalls::forget(std::uint64_t id) {
  Call* const call = find(id);
  if (call == nullptr || call->kind != Kind::Inbound) return;
  finish(*call);
  forgotten_.push_back(id);
}

std::vector<std::uint64_t> KnownCalls::take_forgotten() {
  return std::exchange(forgotten_, {});
}

const KnownCalls::Call* KnownCalls::find(std::uint64_t id) const {
  const auto at = std::ranges::lower_bound(calls_, id, {}, &Call::id);
  const bool is_there = at != calls_.end() && at->id == id && at->kind != Kind::Finished;
  return is_there ? &*at : nullptr;
}

std::uint64_t KnownCalls::count(Kind kind) const {
  return static_cast<std::uint64_t>(std::ranges::count(calls_, kind, &Call::kind));
}

Result<> KnownCalls::cancel(std::span<const std::uint64_t> ids) {
  for (const std::uint64_t id : ids) {
    Call* const call = find(id);
    if (call == nullptr || call->kind == Kind::Inbound) {
      return impossible("cancelled a call that was not under way");
    }
    finish(*call);
  }
  return {};
}

Result<> KnownCalls::answer(std::span<const InboundAnswer> answers) {
  for (const InboundAnswer& one : answers) {
    Call* const call = find(one.id);
    if (call == nullptr || call->kind != Kind::Inbound) {
      return impossible("an answer that nobody waits for");
    }
    finish(*call);
  }
  return {};
}

// Ids of each kind ascend from turn to turn, because calls of a kind are taken in the order in
// which they were made. A request may have waited while later delays were taken.
Result<> KnownCalls::add(std::uint64_t id, Kind kind, std::optional<std::uint64_t>& last) {
  if (id >= next_id_ || (last && id <= *last)) return impossible("a call without an id of its own");
  const auto at = std::ranges::lower_bound(calls_, id, {}, &Call::id);
  if (at != calls_.end() && at->id == id) return impossible("two calls with one id");
  calls_.insert(at, {.id = id, .kind = kind});
  last = id;
  return {};
}

void KnownCalls::finish(Call& call) {
  call.kind = Kind::Finished;
  ++finished_;
}

void KnownCalls::forget_finished() {
  std::erase_if(calls_, [](const Call& call) { return call.kind == Kind::Finished; });
  finished_ = 0;
}

CarriedCalls KnownCalls::carry() const {
  CarriedCalls carried{.calls = {},
                       .metrics = metrics_,
                       .webhooks = webhooks_,
                       .last_request = last_request_,
                       .last_delay = last_delay_,
                       .next_id = next_id_,
                       .forgotten = forgotten_};
  for (const Call& call : calls_) {
    if (call.kind == Kind::Inbound) carried.forgotten.push_back(call.id);
    if (call.kind != Kind::Request && call.kind != Kind::Delay) continue;
    carried.calls.push_back({.id = call.id, .is_delay = call.kind == Kind::Delay});
  }
  return carried;
}

KnownCalls KnownCalls::restored(CarriedCalls carried) {
  KnownCalls known;
  for (const CarriedCalls::Call& call : carried.calls)
    known.calls_.push_back({.id = call.id, .kind = call.is_delay ? Kind::Delay : Kind::Request});
  known.metrics_ = carried.metrics;
  known.webhooks_ = carried.webhooks;
  known.last_request_ = carried.last_request;
  known.last_delay_ = carried.last_delay;
  known.next_id_ = carried.next_id;
  known.forgotten_ = std::move(carried.forgotten);
  return known;
}

void KnownCalls::shrink() {
  forget_finished();
  calls_.shrink_to_fit();
}

}  // namespace hangar::abi::kube_runtime
