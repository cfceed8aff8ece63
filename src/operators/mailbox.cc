#include "operators/mailbox.h"

#include "abi/kube_runtime/messages.h"
#include "base/assert.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hangar::operators {

namespace {

std::size_t size_of(const Mailbox::Arrival& arrival) {
  // A server that a tenant names may send as many headers as the host takes.
  if (const auto* const head = std::get_if<Mailbox::Head>(&arrival.what)) {
    return abi::kube_runtime::memory_bytes_of(head->headers);
  }
  const auto* const piece = std::get_if<gateway::Piece>(&arrival.what);
  if (piece == nullptr) return 0;
  if (const auto* const text = std::get_if<std::string>(piece)) return text->size();
  return std::get<gateway::WatchLine>(*piece).object->text_size();
}

}  // namespace

Mailbox::Room Mailbox::put(Arrival arrival, Instant now, Haste haste) {
  if (is_closed_) return Room::Closed;
  arrivals_bytes_ += size_of(arrival);
  if (const Room room = check(); room != Room::Enough) return room;
  if (!first_arrival_) first_arrival_ = now;
  if (haste != Haste::None) {
    const Instant due = haste == Haste::Full ? now : now + limits::kOperatorEventHold;
    due_ = std::min(due_.value_or(due), due);
  }
  arrivals_.push_back(std::move(arrival));
  return Room::Enough;
}

Mailbox::Room Mailbox::set_under_way(std::uint64_t before_bytes, std::uint64_t now_bytes) {
  if (is_closed_) return Room::Closed;
  HANGAR_ASSERT(under_way_bytes_ >= before_bytes, "each answer is counted once");
  under_way_bytes_ += now_bytes;
  under_way_bytes_ -= before_bytes;
  return check();
}

std::vector<Mailbox::Arrival> Mailbox::take() {
  arrivals_bytes_ = 0;
  first_arrival_.reset();
  due_.reset();
  return std::exchange(arrivals_, {});
}

void Mailbox::drop(std::span<const std::uint64_t> ids) {
  std::erase_if(arrivals_, [&](const Arrival& arrival) {
    if (!std::ranges::binary_search(ids, arrival.id)) return false;
    arrivals_bytes_ -= size_of(arrival);
    return true;
  });
  if (!arrivals_.empty()) return;
  first_arrival_.reset();
  due_.reset();
}

void Mailbox::clear() {
  static_cast<void>(take());
  under_way_bytes_ = 0;
}

void Mailbox::close() {
  clear();
  is_closed_ = true;
}

Mailbox::Room Mailbox::check() {
  if (bytes() <= bytes_max_) return Room::Enough;
  close();
  return Room::Overflow;
}

}  // namespace hangar::operators
