#include "operators/carried_operator.h"

#include "abi/kube_runtime/carried_guest.h"
#include "abi/kube_runtime/limits.h"
#include "base/dns_name.h"
#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/varint.h"
#include "gateway/gateway.h"
#include "gateway/limits.h"
#include "http/client.h"
#include "io/descriptor.h"
#include "kube/object.h"
#include "operators/limits.h"
#include "wasm/digest.h"
#include "wasm/limits.h"
#include "wasm/snapshot/page_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::operators {

namespace {

using abi::kube_runtime::CarriedCalls;
using abi::kube_runtime::CarriedGuest;

constexpr std::string_view kMagic = "hangarca";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kDigestBytes = 32;

constexpr std::size_t kUidBytesMax = 128;
constexpr std::size_t kAcceptBytesMax = 256;
constexpr std::size_t kHeadersMax = 128;
constexpr std::size_t kHeaderBytesMax = 16 * limits::kKiB;
constexpr std::size_t kCallsMax = limits::kGuestRequestsMax + limits::kGuestDelaysMax;
// A guest gets several arrivals for one call.
constexpr std::size_t kArrivalsMax = std::size_t{1} << 20U;
constexpr std::size_t kLayerPiecesMax = 32;
constexpr int kStatusMax = 999;

enum class ArrivalKind : std::uint8_t { Head, Text, End };

std::string_view text_of(const wasm::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), digest.bytes().size()};
}

std::string bounded_line(std::string_view reason) {
  std::string line(utf8_beginning(reason, kCarriedReasonBytesMax));
  std::ranges::replace_if(line, [](char one) { return has_control_character({&one, 1}); }, ' ');
  return line;
}

class Writer {
 public:
  void number(std::uint64_t value) { append_varint(bytes_, value); }
  void flag(bool value) { number(value ? 1 : 0); }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  void time(Instant value) {
    number(static_cast<std::uint64_t>(value.time_since_epoch() / std::chrono::nanoseconds(1)));
  }
  void optional(const std::optional<std::uint64_t>& value) {
    flag(value.has_value());
    if (value) number(*value);
  }
  template <class List, class Visit>
  void list(const List& values, Visit visit) {
    number(values.size());
    for (const auto& value : values)
      visit(value);
  }

  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first error, everything that is read is zero or empty.
class Reader {
 public:
  Reader(std::string_view bytes, Instant now) : rest_(bytes), now_(now) {}

  std::uint64_t number(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    const std::optional<std::uint64_t> value = take_varint(rest_);
    if (!value) {
      refuse("a number is cut off");
      return 0;
    }
    if (*value > most) {
      refuse(fmt::format("the number {} where {} is the most", *value, most));
      return 0;
    }
    return error_ ? 0 : *value;
  }
  bool flag() { return number(1) == 1; }
  std::string text(std::size_t bytes_max) {
    const std::uint64_t size = number(bytes_max);
    if (size > rest_.size()) {
      refuse("a text is cut off");
      return {};
    }
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return std::string(text);
  }
  // Text that becomes part of a request, a log or an Event.
  std::string line(std::size_t bytes_max) {
    std::string line = text(bytes_max);
    if (has_control_character(line)) refuse("a control character in a text");
    return line;
  }
  // At most `ahead` from now.
  Instant time(Duration ahead = Duration::zero()) {
    const Instant most = now_ + ahead;
    return Instant(std::chrono::nanoseconds(
        number(static_cast<std::uint64_t>(most.time_since_epoch() / std::chrono::nanoseconds(1)))));
  }
  std::optional<std::uint64_t> optional() {
    return flag() ? std::optional(number()) : std::nullopt;
  }
  // An item takes a byte at least, so no list has more items than there are bytes.
  template <class List, class Visit>
  void list(List& into, std::size_t most, Visit visit) {
    const std::uint64_t count = number(most);
    if (count > rest_.size()) return refuse("a list is cut off");
    for (std::uint64_t index = 0; index < count && !error_; ++index) {
      into.emplace_back();
      visit(into.back());
    }
  }

  void refuse(std::string why) {
    if (!error_) error_.emplace(ErrorKind::Corrupt, std::move(why));
    rest_ = {};
  }
  void require(bool holds, std::string_view otherwise) {
    if (!holds) refuse(std::string(otherwise));
  }
  void fail_with(Error error) {
    if (!error_) error_ = std::move(error);
    rest_ = {};
  }

  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  std::string_view rest_;
  const Instant now_;
  std::optional<Error> error_;
};

// Writing and reading of each part stand together
// --------------------------------------------------

void write(Writer& out, const kube::ObjectKey& key) {
  out.text(key.namespace_);
  out.text(key.name);
}

kube::ObjectKey read_key(Reader& in) {
  kube::ObjectKey key;
  key.namespace_ = in.text(kDnsNameBytesMax);
  key.name = in.text(kDnsNameBytesMax);
  in.require(is_dns_subdomain(key.namespace_) && is_dns_subdomain(key.name),
             "a key that no object has");
  return key;
}

void write(Writer& out, const CarriedCalls& calls) {
  out.list(calls.calls, [&](const CarriedCalls::Call& call) {
    out.number(call.id);
    out.flag(call.is_delay);
  });
  out.optional(calls.metrics);
  out.optional(calls.webhooks);
  out.optional(calls.last_request);
  out.optional(calls.last_delay);
  out.number(calls.next_id);
  out.list(calls.forgotten, [&](std::uint64_t id) { out.number(id); });
}

CarriedCalls read_calls(Reader& in) {
  CarriedCalls calls;
  in.list(calls.calls, kCallsMax, [&](CarriedCalls::Call& call) {
    call.id = in.number();
    call.is_delay = in.flag();
  });
  calls.metrics = in.optional();
  calls.webhooks = in.optional();
  calls.last_request = in.optional();
  calls.last_delay = in.optional();
  calls.next_id = in.number();
  in.list(calls.forgotten, limits::kGuestInboundMax, [&](std::uint64_t& id) { id = in.number(); });

  for (std::size_t index = 0; index < calls.calls.size(); ++index) {
    const CarriedCalls::Call& call = calls.calls[index];
    const std::optional<std::uint64_t>& last =
        call.is_delay ? calls.last_delay : calls.last_request;
    const bool ascends = index == 0 || calls.calls[index - 1].id < call.id;
    in.require(ascends && last && call.id <= *last, "calls out of their order");
    in.require(call.id != calls.metrics && call.id != calls.webhooks, "a call that is a listener");
  }
  for (const auto& id : {calls.metrics, calls.webhooks, calls.last_request, calls.last_delay})
    in.require(!id || *id < calls.next_id, "an id that was not given yet");
  for (const std::uint64_t id : calls.forgotten)
    in.require(id < calls.next_id, "an id that was not given yet");
  in.require(!calls.metrics || calls.metrics != calls.webhooks, "two listeners with one id");
  return calls;
}

void write(Writer& out, const CarriedGuest& guest) {
  out.number(guest.snapshot_offset);
  out.number(guest.snapshot_bytes);
  out.number(guest.memory_bytes);
  out.time(guest.asleep_since);
  out.flag(guest.layer.has_value());
  if (guest.layer) {
    out.list(guest.layer->pieces, [&](const CarriedGuest::Layer::Piece& piece) {
      out.number(piece.first);
      out.number(piece.count);
    });
    out.number(static_cast<std::uint64_t>(guest.layer->file.value()));
  }
  write(out, guest.calls);
}

class Descriptors {
 public:
  explicit Descriptors(const TakeDescriptor& take) : take_(take) {}

  io::Descriptor read(Reader& in) {
    constexpr int kStandardMax = 2;
    const int number = static_cast<int>(in.number(std::numeric_limits<int>::max()));
    in.require(number > kStandardMax && taken_.insert(number).second, "a descriptor named twice");
    if (in.error()) return {};
    Result<io::Descriptor> descriptor = take_(number);
    if (descriptor) return *std::move(descriptor);
    in.fail_with(std::move(descriptor).error());
    return {};
  }

 private:
  const TakeDescriptor& take_;
  std::set<int> taken_;
};

CarriedGuest read_guest(Reader& in, Descriptors& descriptors) {
  CarriedGuest guest;
  guest.snapshot_offset = in.number();
  guest.snapshot_bytes =
      static_cast<std::uint32_t>(in.number(std::numeric_limits<std::uint32_t>::max()));
  guest.memory_bytes = in.number();
  guest.asleep_since = in.time();
  in.require(guest.snapshot_bytes > 0, "an empty snapshot");
  if (in.flag()) {
    constexpr std::uint64_t kPagesMax = std::numeric_limits<std::uint32_t>::max();
    CarriedGuest::Layer& layer = guest.layer.emplace();
    std::uint64_t end = 0;
    std::uint64_t pages = 0;
    in.list(layer.pieces, kLayerPiecesMax, [&](CarriedGuest::Layer::Piece& piece) {
      piece.first = static_cast<std::uint32_t>(in.number(kPagesMax));
      piece.count = static_cast<std::uint32_t>(in.number(kPagesMax));
      in.require(piece.count > 0 && piece.first >= end &&
                     std::uint64_t{piece.first} + piece.count <= kPagesMax,
                 "pages of a layer out of their order");
      end = std::uint64_t{piece.first} + piece.count;
      pages += piece.count;
    });
    in.require(pages > 0 && pages <= limits::kLayerBytesMax / wasm::kPageBytes,
               "a layer of a size that no layer has");
    layer.file = descriptors.read(in);
  }
  guest.calls = read_calls(in);
  return guest;
}

void write(Writer& out, const CarriedRequests& requests) {
  out.list(requests.calls, [&](const CarriedRequests::Call& call) {
    out.number(call.id);
    out.flag(call.is_stream);
    out.flag(call.continuation.has_value());
    if (call.continuation) {
      out.text(call.continuation->target);
      out.text(call.continuation->accept);
    }
    out.text(call.bookmark);
  });
  out.list(requests.delays, [&](const CarriedRequests::Delay& delay) {
    out.number(delay.id);
    out.time(delay.due);
  });
  out.list(requests.arrivals, [&](const CarriedRequests::Arrival& arrival) {
    out.number(arrival.id);
    if (const auto* const head = std::get_if<CarriedRequests::Head>(&arrival.what)) {
      out.number(static_cast<std::uint64_t>(ArrivalKind::Head));
      out.number(static_cast<std::uint64_t>(head->status));
      out.list(head->headers, [&](const auto& header) {
        out.text(header.first);
        out.text(header.second);
      });
    } else if (const auto* const text = std::get_if<std::string>(&arrival.what)) {
      out.number(static_cast<std::uint64_t>(ArrivalKind::Text));
      out.text(*text);
    } else {
      out.number(static_cast<std::uint64_t>(ArrivalKind::End));
    }
  });
}

// Only for calls that the guest waits for.
void check(Reader& in, const CarriedRequests& requests, const CarriedCalls& known) {
  const auto is_known = [&known](std::uint64_t id, bool is_delay) {
    const auto at = std::ranges::lower_bound(known.calls, id, {}, &CarriedCalls::Call::id);
    return at != known.calls.end() && *at == CarriedCalls::Call{.id = id, .is_delay = is_delay};
  };
  for (std::size_t index = 0; index < requests.calls.size(); ++index) {
    const CarriedRequests::Call& call = requests.calls[index];
    const bool ascends = index == 0 || requests.calls[index - 1].id < call.id;
    in.require(ascends && is_known(call.id, /*is_delay=*/false), "a request of nobody");
    in.require(call.is_stream || !call.continuation, "an answer that goes on and is no stream");
    in.require(!call.continuation || call.continuation->target.starts_with('/'),
               "a request without a path");
  }
  for (std::size_t index = 0; index < requests.delays.size(); ++index) {
    const std::uint64_t id = requests.delays[index].id;
    const bool ascends = index == 0 || requests.delays[index - 1].id < id;
    in.require(ascends && is_known(id, /*is_delay=*/true), "a delay of nobody");
  }
  for (const CarriedRequests::Arrival& arrival : requests.arrivals) {
    const bool is_of_delay = is_known(arrival.id, /*is_delay=*/true);
    const bool is_of_call =
        std::ranges::binary_search(requests.calls, arrival.id, {}, &CarriedRequests::Call::id);
    const bool is_end = std::holds_alternative<CarriedRequests::End>(arrival.what);
    in.require(is_of_call || (is_of_delay && is_end), "an answer for nobody");
  }
}

CarriedRequests read_requests(Reader& in, const CarriedCalls& known) {
  CarriedRequests requests;
  in.list(requests.calls, limits::kGuestRequestsMax, [&](CarriedRequests::Call& call) {
    call.id = in.number();
    call.is_stream = in.flag();
    if (in.flag()) {
      gateway::Continuation& continuation = call.continuation.emplace();
      continuation.target = in.line(limits::kGatewayTargetBytesMax);
      continuation.accept = in.line(kAcceptBytesMax);
    }
    call.bookmark = in.text(kCarriedArrivalsBytesMax);
  });
  in.list(requests.delays, limits::kGuestDelaysMax, [&](CarriedRequests::Delay& delay) {
    delay.id = in.number();
    delay.due = in.time(limits::kGuestDelayMax);
  });
  in.list(requests.arrivals, kArrivalsMax, [&](CarriedRequests::Arrival& arrival) {
    arrival.id = in.number();
    switch (static_cast<ArrivalKind>(in.number(static_cast<std::uint64_t>(ArrivalKind::End)))) {
      case ArrivalKind::Head: {
        CarriedRequests::Head head{.status = static_cast<int>(in.number(kStatusMax)),
                                   .headers = {}};
        in.list(head.headers, kHeadersMax, [&](auto& header) {
          header.first = in.line(kHeaderBytesMax);
          header.second = in.line(kHeaderBytesMax);
        });
        arrival.what = std::move(head);
        break;
      }
      case ArrivalKind::Text:
        arrival.what = in.text(kCarriedArrivalsBytesMax);
        break;
      case ArrivalKind::End:
        arrival.what = CarriedRequests::End();
        break;
    }
  });
  if (!in.error()) check(in, requests, known);
  return requests;
}

void write(Writer& out, const OperatorLedger::Figures& figures) {
  const auto nanoseconds = [](Duration duration) {
    return static_cast<std::uint64_t>(duration.count());
  };
  out.number(figures.wakes);
  out.number(nanoseconds(figures.last_cpu_time));
  out.number(nanoseconds(figures.last_resume_time));
  out.flag(figures.last_wake.has_value());
  if (figures.last_wake) {
    out.number(static_cast<std::uint64_t>(
        std::chrono::floor<std::chrono::microseconds>(figures.last_wake->time_since_epoch())
            .count()));
  }
  out.number(figures.requests);
  out.number(figures.failures);
}

OperatorLedger::Figures read_figures(Reader& in) {
  constexpr auto kDurationMax =
      static_cast<std::uint64_t>(Duration(std::chrono::hours(24 * 365)).count());
  constexpr auto kWallMax = static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::microseconds>(WallTime::max().time_since_epoch()).count());
  OperatorLedger::Figures figures;
  figures.wakes = in.number();
  figures.last_cpu_time = Duration(in.number(kDurationMax));
  figures.last_resume_time = Duration(in.number(kDurationMax));
  if (in.flag()) {
    figures.last_wake = WallTime(std::chrono::duration_cast<WallTime::duration>(
        std::chrono::microseconds(in.number(kWallMax))));
  }
  figures.requests = in.number();
  figures.failures = in.number();
  return figures;
}

void write(Writer& out, const CarriedOperator& carried) {
  write(out, carried.key);
  out.text(carried.uid);
  out.number(static_cast<std::uint64_t>(carried.generation));
  out.text(text_of(carried.module));
  out.number(carried.image);
  out.time(carried.started_at);
  out.time(carried.idle_since);
  out.number(carried.start_count);
  out.flag(carried.serves_metrics);
  out.flag(carried.takes_webhooks);
  write(out, carried.figures);
  write(out, carried.guest);
  write(out, carried.requests);
}

CarriedOperator read_operator(Reader& in, Descriptors& descriptors) {
  CarriedOperator carried;
  carried.key = read_key(in);
  carried.uid = in.line(kUidBytesMax);
  carried.generation =
      static_cast<std::int64_t>(in.number(std::numeric_limits<std::int64_t>::max()));
  const std::string module = in.text(kDigestBytes);
  in.require(module.size() == kDigestBytes, "a module's digest is cut off");
  if (in.error()) return carried;
  carried.module = wasm::Digest::of_bytes(module);
  carried.image = in.number();
  carried.started_at = in.time();
  carried.idle_since = in.time();
  carried.start_count = in.number();
  carried.serves_metrics = in.flag();
  carried.takes_webhooks = in.flag();
  carried.figures = read_figures(in);
  carried.guest = read_guest(in, descriptors);
  carried.requests = read_requests(in, carried.guest.calls);
  return carried;
}

// How many bytes it takes; the reason if they would be refused.
Result<std::size_t> readable_bytes(const CarriedOperator& carried, Instant now) {
  Writer out;
  write(out, carried);
  const std::string bytes = std::move(out).take();
  Reader in(bytes, now);
  const TakeDescriptor take_none = [](int /*number*/) { return io::Descriptor(); };
  Descriptors descriptors(take_none);
  std::ignore = read_operator(in, descriptors);
  if (in.error()) return std::unexpected(*in.error());
  return bytes.size();
}

// A name, a namespace, a reason, and their lengths.
constexpr std::size_t kLeftBytesMax = 2 * kDnsNameBytesMax + kCarriedReasonBytesMax + 16;
static_assert(kCarriedOperatorsMax * kLeftBytesMax < kCarriedBytesMax - kCarriedOperatorsBytesMax,
              "all operators that are left have room");

}  // namespace

std::optional<std::string> misfit(const CarriedOperator& carried, const Operator& spec,
                                  const wasm::Digest& module, std::uint64_t image) {
  if (carried.uid != spec.uid) return "it is another object of the same name";
  if (carried.generation != spec.generation) return "its spec has changed";
  if (carried.module != module) return "its module has changed";
  if (carried.image != image) {
    return "this version of hangar lays out the module's memory in another way";
  }
  return std::nullopt;
}

void leave_unreadable(CarriedFleet& fleet, Instant now) {
  const auto leave = [&fleet](const CarriedOperator& carried, std::string_view why) {
    fleet.left.push_back({.key = carried.key,
                          .reason = fmt::format("what it waits for cannot be carried: {}", why)});
  };
  std::vector<std::pair<std::size_t, CarriedOperator>> readable;
  for (CarriedOperator& carried : std::exchange(fleet.operators, {})) {
    const Result<std::size_t> bytes = readable_bytes(carried, now);
    if (bytes) {
      readable.emplace_back(*bytes, std::move(carried));
    } else {
      leave(carried, bytes.error().message());
    }
  }
  // The small ones first, so that the answers of one tenant push out no other.
  std::ranges::sort(readable, {}, &std::pair<std::size_t, CarriedOperator>::first);
  std::size_t rest = kCarriedOperatorsBytesMax;
  for (auto& [bytes, carried] : readable) {
    if (bytes > rest) {
      leave(carried, "the operators together have too much");
      continue;
    }
    rest -= bytes;
    fleet.operators.push_back(std::move(carried));
  }
}

std::string encode(const CarriedFleet& fleet) {
  Writer body;
  body.number(static_cast<std::uint64_t>(fleet.snapshots.value()));
  body.list(fleet.operators, [&](const CarriedOperator& carried) { write(body, carried); });
  body.list(fleet.left, [&](const LeftOperator& left) {
    write(body, left.key);
    body.text(bounded_line(left.reason));
  });
  const std::string text = std::move(body).take();
  Writer head;
  head.number(kVersion);
  head.number(abi::kube_runtime::kPackedGuestVersion);
  std::string all(kMagic);
  all += std::move(head).take();
  all += text_of(wasm::Digest::of(text));
  all += text;
  return all;
}

Result<CarriedFleet> decode(std::string_view bytes, Instant now,
                            const TakeDescriptor& take_descriptor) {
  if (!bytes.starts_with(kMagic)) return fail(ErrorKind::Corrupt, "they do not begin as they must");
  bytes.remove_prefix(kMagic.size());
  const std::optional<std::uint64_t> version = take_varint(bytes);
  const std::optional<std::uint64_t> packed = version ? take_varint(bytes) : std::nullopt;
  if (!packed) return fail(ErrorKind::Corrupt, "they are cut off");
  if (*version != kVersion || *packed != abi::kube_runtime::kPackedGuestVersion) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("the host before this one wrote version {}.{}, this one reads {}.{}",
                            *version, *packed, kVersion, abi::kube_runtime::kPackedGuestVersion));
  }
  if (bytes.size() < kDigestBytes) return fail(ErrorKind::Corrupt, "they are cut off");
  const std::string_view text = bytes.substr(kDigestBytes);
  if (bytes.substr(0, kDigestBytes) != text_of(wasm::Digest::of(text))) {
    return fail(ErrorKind::Corrupt, "they do not have the checksum that they name");
  }
  Reader in(text, now);
  Descriptors descriptors(take_descriptor);
  CarriedFleet fleet;
  fleet.snapshots = descriptors.read(in);
  std::set<kube::ObjectKey> keys;
  in.list(fleet.operators, kCarriedOperatorsMax, [&](CarriedOperator& carried) {
    carried = read_operator(in, descriptors);
    in.require(keys.insert(carried.key).second, "an operator twice");
  });
  in.list(fleet.left, kCarriedOperatorsMax, [&](LeftOperator& left) {
    left.key = read_key(in);
    left.reason = in.line(kCarriedReasonBytesMax);
    in.require(keys.insert(left.key).second, "an operator twice");
  });
  in.require(in.is_at_end(), "bytes after the end");
  if (in.error()) return std::unexpected(*in.error());
  return fleet;
}

}  // namespace hangar::operators
