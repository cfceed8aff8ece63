#include "recorder/trace_ids.h"

#include "base/digest.h"
#include "base/limits.h"
#include "base/varint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::recorder {

namespace {

// Ids of all zeros are invalid.
constexpr std::uint8_t kNotZero = 1;

template <class Id>
Id id_of(const Sha256Bytes& digest, std::size_t from) {
  Id id{};
  std::copy_n(digest.begin() + static_cast<std::ptrdiff_t>(from), id.size(), id.begin());
  id.back() |= kNotZero;
  return id;
}

// Each text follows its length, so that no two guests have the same bytes.
void append_text(std::string& bytes, std::string_view text) {
  append_varint(bytes, text.size());
  bytes += text;
}

std::string_view view_of(const TraceId& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

// Of 63 bits, as OpenTelemetry's samplers compare.
constexpr std::uint64_t kAll = std::uint64_t{1} << 63U;

// Lower-case only, as the specification says.
std::optional<std::uint8_t> digit_of(char character) {
  if (character >= '0' && character <= '9') return static_cast<std::uint8_t>(character - '0');
  if (character >= 'a' && character <= 'f') return static_cast<std::uint8_t>(character - 'a' + 10);
  return std::nullopt;
}

bool read_hex(std::string_view text, std::span<std::uint8_t> into) {
  for (std::size_t at = 0; at < into.size(); ++at) {
    const auto high = digit_of(text[2 * at]);
    const auto low = digit_of(text[2 * at + 1]);
    if (!high || !low) return false;
    into[at] = static_cast<std::uint8_t>(*high << 4U | *low);
  }
  return true;
}

std::uint64_t threshold(double ratio) {
  if (ratio >= 1) return kAll;
  return static_cast<std::uint64_t>(std::max(ratio, 0.0) * static_cast<double>(kAll));
}

}  // namespace

// Metadata comes early, and the API server writes JSON without spaces. A key of this name elsewhere
// in the object may be found instead: what it names is only a link to another trace.
std::string_view traceparent_in(std::string_view document) {
  constexpr std::size_t kSearched = 64 * limits::kKiB;
  constexpr std::size_t kLengthMax = 128;
  static const std::string key = "\"" + std::string(kTraceAnnotation) + "\":\"";
  const std::size_t found = document.substr(0, kSearched).find(key);
  if (found == std::string_view::npos) return {};
  const std::string_view rest = document.substr(found + key.size(), kLengthMax);
  const std::size_t end = rest.find('"');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  // version "-" trace "-" span "-" flags. Later versions may append fields.
  constexpr std::size_t kTraceAt = 3;
  constexpr std::size_t kSpanAt = kTraceAt + 33;
  constexpr std::size_t kFlagsAt = kSpanAt + 17;
  constexpr std::size_t kLength = kFlagsAt + 2;
  if (text.size() < kLength || text.starts_with("ff")) return std::nullopt;
  const bool is_longer = text.size() > kLength;
  if (is_longer && (text.starts_with("00") || text[kLength] != '-')) return std::nullopt;
  if (text[kTraceAt - 1] != '-' || text[kSpanAt - 1] != '-' || text[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  TraceContext context;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  const bool is_hex =
      read_hex(text.substr(0, 2), version) && read_hex(text.substr(kTraceAt, 32), context.trace) &&
      read_hex(text.substr(kSpanAt, 16), context.span) && read_hex(text.substr(kFlagsAt, 2), flags);
  if (!is_hex || context.trace == TraceId() || context.span == SpanId()) return std::nullopt;
  return context;
}

TraceIds::TraceIds(std::string key, double ratio)
    : key_(std::move(key)), sampled_below_(threshold(ratio)) {}

TurnTrace TraceIds::of_turn(const Guest& guest, std::uint64_t turn) const {
  std::string bytes;
  append_varint(bytes, static_cast<std::uint64_t>(guest.contract));
  append_text(bytes, guest.namespace_);
  append_text(bytes, guest.name);
  append_varint(bytes, guest.instance);
  append_varint(bytes, turn);
  const Sha256Bytes digest = hmac_sha256(key_, {"turn", bytes});
  TurnTrace found{.trace = id_of<TraceId>(digest, 0), .span = id_of<SpanId>(digest, 16)};
  std::uint64_t chosen = 0;
  for (std::size_t at = 24; at < digest.size(); ++at)
    chosen = (chosen << 8U) | digest.at(at);
  found.is_sampled = (chosen >> 1U) < sampled_below_;
  return found;
}

SpanId TraceIds::of_request(const TurnTrace& turn, std::uint64_t id) const {
  std::string bytes;
  append_varint(bytes, id);
  return id_of<SpanId>(hmac_sha256(key_, {"request", view_of(turn.trace), bytes}), 0);
}

std::string TraceIds::traceparent(const Guest& guest, std::uint64_t turn, std::uint64_t id) const {
  const TurnTrace trace = of_turn(guest, turn);
  return "00-" + to_hex(trace.trace) + "-" + to_hex(of_request(trace, id)) +
         (trace.is_sampled ? "-01" : "-00");
}

}  // namespace hangar::recorder
