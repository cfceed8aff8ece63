#include "recorder/format.h"

#include "base/digest.h"
#include "base/varint.h"
#include "recorder/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstring>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::recorder {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::string_view kMagic = "hangarfr";

// A block's header: the length of the payload, the number of records, both clocks, and a checksum
// over all of these and the payload.
constexpr std::size_t kSummedBytes = 24;
constexpr std::size_t kSumBytes = 16;
constexpr std::size_t kBlockHeaderBytes = kSummedBytes + kSumBytes;

template <class Number>
void put_fixed(std::string& into, Number value) {
  into.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Number>
Number fixed_at(std::string_view bytes, std::size_t offset) {
  Number value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string sum_of(std::string_view summed, std::string_view payload) {
  Sha256 sum;
  sum.add(summed);
  sum.add(payload);
  const Sha256Bytes bytes = sum.finish();
  return {reinterpret_cast<const char*>(bytes.data()), kSumBytes};
}

// Writes the header of a block into the bytes before its payload, which are there for it.
void seal(std::string& block, const Block::Moment& began, std::uint64_t records) {
  const auto microseconds = [](auto time) {
    return std::chrono::duration_cast<internal::Microseconds>(time.time_since_epoch()).count();
  };
  const std::string_view payload = std::string_view(block).substr(kBlockHeaderBytes);
  std::string header;
  put_fixed(header, static_cast<std::uint32_t>(payload.size()));
  put_fixed(header, static_cast<std::uint32_t>(records));
  put_fixed(header, microseconds(began.wall));
  put_fixed(header, microseconds(began.instant));
  header += sum_of(header, payload);
  std::ranges::copy(header, block.begin());
}

template <class Given, class Kind>
concept Is = std::same_as<std::remove_const_t<Given>, Kind>;

template <class Fields, Is<Guest> Kind>
void visit_fields(Fields& fields, Kind& guest) {
  fields.choice(guest.contract, Contract::Airway);
  fields.text(guest.namespace_);
  fields.text(guest.name);
  fields.number(guest.instance);
}

template <class Fields, Is<Object> Kind>
void visit_fields(Fields& fields, Kind& object) {
  fields.text(object.group);
  fields.text(object.kind);
  fields.text(object.namespace_);
  fields.text(object.name);
  fields.number(object.version);
}

template <class Fields, Is<Waking> Kind>
void visit_fields(Fields& fields, Kind& waking) {
  fields.choice(waking.cause, Waking::Cause::Event);
  fields.number(waking.id);
  fields.number(waking.bytes);
  fields.text(waking.event);
  if (waking.cause <= Waking::Cause::Deleted) visit_fields(fields, waking.object);
}

template <class Fields, Is<Timer> Kind>
void visit_fields(Fields& fields, Kind& timer) {
  fields.number(timer.id);
  fields.duration(timer.after);
}

template <class Fields, Is<Turn> Kind>
void visit_fields(Fields& fields, Kind& turn) {
  visit_fields(fields, turn.guest);
  fields.text(turn.uid);
  fields.text(turn.user);
  fields.text(turn.module);
  fields.number(turn.number);
  fields.instant(turn.arrived);
  fields.instant(turn.began);
  fields.instant(turn.ended);
  fields.duration(turn.resume);
  fields.duration(turn.cpu);
  fields.flag(turn.was_asleep);
  fields.number(turn.memory_bytes);
  fields.choice(turn.outcome, Turn::Outcome::Failed);
  fields.number(turn.printed_bytes);
  fields.number(turn.asked);
  fields.list(turn.wakings, kWakingsMax,
              [](auto& each, auto& waking) { visit_fields(each, waking); });
  fields.number(turn.wakings_left_out);
  fields.list(turn.timers, kTimersMax, [](auto& each, auto& timer) { visit_fields(each, timer); });
  fields.number(turn.timers_left_out);
}

template <class Fields, Is<Asked> Kind>
void visit_fields(Fields& fields, Kind& asked) {
  visit_fields(fields, asked.guest);
  fields.number(asked.turn);
  fields.number(asked.id);
  fields.instant(asked.at);
  fields.choice(asked.verb, Verb::Other);
  fields.text(asked.group);
  fields.text(asked.resource);
  fields.text(asked.namespace_);
  fields.text(asked.name);
  fields.text(asked.subresource);
  fields.text(asked.path);
  fields.text(asked.field_manager);
  fields.flag(asked.is_dry_run);
  fields.number(asked.version);
  fields.number(asked.bytes);
}

template <class Fields, Is<Answered> Kind>
void visit_fields(Fields& fields, Kind& answered) {
  visit_fields(fields, answered.guest);
  fields.number(answered.id);
  fields.instant(answered.at);
  fields.number(answered.status);
  fields.number(answered.bytes);
  fields.flag(answered.has_object);
  if (answered.has_object) visit_fields(fields, answered.object);
}

template <class Fields, Is<Slept> Kind>
void visit_fields(Fields& fields, Kind& slept) {
  visit_fields(fields, slept.guest);
  fields.number(slept.turn);
  fields.instant(slept.at);
  fields.duration(slept.took);
  fields.number(slept.disk_bytes);
  fields.flag(slept.is_asleep);
}

template <class Fields, Is<Lost> Kind>
void visit_fields(Fields& fields, Kind& lost) {
  fields.number(lost.count);
  fields.instant(lost.since);
  fields.instant(lost.until);
}

template <class Fields, Is<GivenUp> Kind>
void visit_fields(Fields& fields, Kind& given_up) {
  fields.text(given_up.namespace_);
  fields.number(given_up.count);
  fields.instant(given_up.until);
}

template <class Fields, Is<SecretName> Kind>
void visit_fields(Fields& fields, Kind& secret) {
  fields.text(secret.namespace_);
  fields.text(secret.name);
}

template <class Fields, Is<Body> Kind>
void visit_fields(Fields& fields, Kind& body) {
  visit_fields(fields, body.guest);
  fields.number(body.id);
  fields.instant(body.at);
  fields.choice(body.state, kLastRecordedBodyState);
  fields.list(body.secrets, kBodySecretsMax,
              [](auto& each, auto& secret) { visit_fields(each, secret); });
  fields.blob(body.text, kBodyBytesMax);
}

template <class Kind>
std::optional<std::string_view> holder(const Kind& record) {
  if constexpr (std::same_as<Kind, Lost>) {
    return std::nullopt;
  } else if constexpr (std::same_as<Kind, GivenUp>) {
    return record.namespace_;
  } else {
    return record.guest.namespace_;
  }
}

// The type of a record is its index in the variant plus 1.
template <class Kind, std::size_t kIndex = 0>
constexpr std::uint64_t type_of() {
  if constexpr (std::same_as<std::variant_alternative_t<kIndex, Record>, Kind>) {
    return kIndex + 1;
  } else {
    return type_of<Kind, kIndex + 1>();
  }
}

template <std::size_t kIndex = 0>
bool make_of_type(std::uint64_t type, Record& record) {
  if constexpr (kIndex == std::variant_size_v<Record>) {
    return false;
  } else {
    if (type != kIndex + 1) return make_of_type<kIndex + 1>(type, record);
    record.emplace<kIndex>();
    return true;
  }
}

struct RawBlock {
  Block::Moment moment;
  std::uint32_t record_count = 0;
  std::string_view payload;
};

// Takes a block from the front of `rest`. If there is no valid one, returns std::nullopt and
// sets `why`.
std::optional<RawBlock> take_block(std::string_view& rest, std::string& why) {
  if (rest.size() < kBlockHeaderBytes) {
    why = "the file ends within a block";
    return std::nullopt;
  }
  const auto size = fixed_at<std::uint32_t>(rest, 0);
  if (size > kBlockBytesMax) {
    why = "a block is too large";
    return std::nullopt;
  }
  if (rest.size() - kBlockHeaderBytes < size) {
    why = "the file ends within a block";
    return std::nullopt;
  }
  RawBlock block{.record_count = fixed_at<std::uint32_t>(rest, 4),
                 .payload = rest.substr(kBlockHeaderBytes, size)};
  if (sum_of(rest.substr(0, kSummedBytes), block.payload) != rest.substr(kSummedBytes, kSumBytes)) {
    why = "the checksum of a block is wrong";
    return std::nullopt;
  }
  const std::chrono::microseconds wall(fixed_at<std::int64_t>(rest, 8));
  const std::chrono::microseconds instant(fixed_at<std::int64_t>(rest, 16));
  // More would not fit into nanoseconds.
  constexpr std::chrono::hours kMost(24 * 365 * 200);
  if (wall > kMost || wall < -kMost || instant > kMost || instant < -kMost) {
    why = "the time of a block is out of range";
    return std::nullopt;
  }
  block.moment.wall = WallTime(std::chrono::duration_cast<WallTime::duration>(wall));
  block.moment.instant = Instant(std::chrono::duration_cast<Instant::duration>(instant));
  rest.remove_prefix(kBlockHeaderBytes + size);
  return block;
}

struct SizedRecord {
  Record record;
  std::uint64_t bytes = 0;  // Includes its type and its length.
};

// The records in their order. After an invalid record, returns the records before it and sets
// `why`.
std::vector<SizedRecord> records_of(const RawBlock& block, std::string& why) {
  std::vector<SizedRecord> records;
  std::vector<std::string_view> texts;
  std::string_view rest = block.payload;
  while (!rest.empty()) {
    const std::size_t before = rest.size();
    const auto type = take_varint(rest);
    const auto size = take_varint(rest);
    if (!type || !size || *size > rest.size()) {
      why = "a block ends within a record";
      return records;
    }
    Record record;
    if (!make_of_type(*type, record)) {
      why = fmt::format("a record has the unknown type {}", *type);
      return records;
    }
    internal::Reader reader(rest.substr(0, *size), texts, block.moment.instant);
    std::visit([&reader](auto& one) { visit_fields(reader, one); }, record);
    if (const std::string_view refusal = reader.refusal(); !refusal.empty()) {
      why = fmt::format("a record of type {}: {}", *type, refusal);
      return records;
    }
    rest.remove_prefix(*size);
    records.push_back({.record = std::move(record), .bytes = before - rest.size()});
  }
  if (records.size() != block.record_count) why = "a block has another number of records";
  return records;
}

Result<FileHeader> take_header(std::string_view& rest) {
  if (rest.size() < kFileHeaderBytes || !rest.starts_with(kMagic)) {
    return fail(ErrorKind::InvalidInput, "this is not a file of hangar's recorder");
  }
  FileHeader header{.version = fixed_at<std::uint32_t>(rest, 8),
                    .replaces = fixed_at<std::uint32_t>(rest, 12),
                    .host = fixed_at<std::uint64_t>(rest, 16),
                    .sequence = fixed_at<std::uint64_t>(rest, 24)};
  if (header.version < kFormatVersionOldest || header.version > kFormatVersion) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("the file has version {} of the recorder's format, this hangar reads "
                            "versions {} to {}",
                            header.version, kFormatVersionOldest, kFormatVersion));
  }
  rest.remove_prefix(kFileHeaderBytes);
  return header;
}

struct Blocks {
  FileHeader header;
  std::vector<RawBlock> blocks;
  std::string cut;
};

Result<Blocks> blocks_of(std::string_view bytes) {
  Blocks found;
  found.header = HANGAR_TRY(take_header(bytes));
  while (!bytes.empty()) {
    const std::optional<RawBlock> block = take_block(bytes, found.cut);
    if (!block) break;
    found.blocks.push_back(*block);
  }
  return found;
}

// False: the callback requested a stop.
template <class Records>
bool give(const Records& records, Place place, const OnRecord& on_record, ReadFile& read) {
  for (const SizedRecord& sized : records) {
    ++read.records;
    place.record_bytes = sized.bytes;
    if (!on_record(place, sized.record)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string_view> holder_of(const Record& record) {
  return std::visit([](const auto& one) { return holder(one); }, record);
}

Instant time_of(const Record& record) {
  if (const auto* const turn = std::get_if<Turn>(&record)) return turn->ended;
  if (const auto* const asked = std::get_if<Asked>(&record)) return asked->at;
  if (const auto* const answered = std::get_if<Answered>(&record)) return answered->at;
  if (const auto* const slept = std::get_if<Slept>(&record)) return slept->at;
  if (const auto* const lost = std::get_if<Lost>(&record)) return lost->until;
  if (const auto* const body = std::get_if<Body>(&record)) return body->at;
  return std::get<GivenUp>(record).until;
}

std::string encode(const FileHeader& header) {
  std::string bytes(kMagic);
  put_fixed(bytes, header.version);
  put_fixed(bytes, header.replaces);
  put_fixed(bytes, header.host);
  put_fixed(bytes, header.sequence);
  return bytes;
}

Result<FileHeader> read_header(std::string_view bytes) {
  return take_header(bytes);
}

template <class Kind>
void Block::put(const Kind& record, const Moment& now) {
  if (records_ == 0) {
    // As much as malloc maps by itself: a block that grows on the heap leaves holes there. Pages
    // that the block does not reach are never touched.
    bytes_.reserve(kBlockHeaderBytes + kBlockBytesMax);
    bytes_.resize(kBlockHeaderBytes);
    // Rounded as in the file, since the instants of records are written relative to it.
    began_ = {.instant = std::chrono::floor<std::chrono::microseconds>(now.instant),
              .wall = std::chrono::floor<std::chrono::microseconds>(now.wall)};
  }
  scratch_.clear();
  internal::Writer writer(scratch_, texts_, began_.instant);
  visit_fields(writer, record);
  const std::size_t before = bytes_.size();
  append_varint(bytes_, type_of<Kind>());
  append_varint(bytes_, scratch_.size());
  bytes_ += scratch_;
  if (const auto namespace_ = holder(record)) {
    recorder::add(held_, *namespace_, bytes_.size() - before);
  }
  ++records_;
}

void Block::add(const Turn& record, const Moment& now) {
  put(record, now);
}
void Block::add(const Asked& record, const Moment& now) {
  put(record, now);
}
void Block::add(const Answered& record, const Moment& now) {
  put(record, now);
}
void Block::add(const Slept& record, const Moment& now) {
  put(record, now);
}
void Block::add(const Lost& record, const Moment& now) {
  put(record, now);
}
void Block::add(const GivenUp& record, const Moment& now) {
  put(record, now);
}
void Block::add(const Body& record, const Moment& now) {
  put(record, now);
}

std::size_t Block::size_bytes() const {
  return is_empty() ? 0 : bytes_.size() - kBlockHeaderBytes;
}

std::size_t Block::encoded_bytes() const {
  return kBlockHeaderBytes + size_bytes();
}

std::string Block::take() {
  bytes_.resize(encoded_bytes());
  seal(bytes_, began_, records_);
  return std::exchange(*this, Block()).bytes_;
}

std::string wrap(std::string_view payload) {
  std::string bytes(kBlockHeaderBytes, '\0');
  bytes += payload;
  seal(bytes, {}, 0);
  return bytes;
}

Result<ReadFile> read(std::string_view bytes, const OnRecord& on_record) {
  Blocks found = HANGAR_TRY(blocks_of(bytes));
  ReadFile read{.header = found.header, .cut = std::move(found.cut)};
  for (const RawBlock& block : found.blocks) {
    std::string why;
    const std::vector<SizedRecord> records = records_of(block, why);
    ++read.blocks;
    if (!give(records, {.host = read.header.host, .block = block.moment}, on_record, read)) break;
    if (!why.empty() && read.cut.empty()) read.cut = std::move(why);
  }
  return read;
}

Result<ReadFile> read_backwards(std::string_view bytes, const OnRecord& on_record) {
  // Blocks are found from the front only, since each begins with its size.
  Blocks found = HANGAR_TRY(blocks_of(bytes));
  ReadFile read{.header = found.header, .cut = std::move(found.cut)};
  for (const RawBlock& block : std::views::reverse(found.blocks)) {
    std::string why;
    const std::vector<SizedRecord> records = records_of(block, why);
    ++read.blocks;
    if (!why.empty() && read.cut.empty()) read.cut = std::move(why);
    if (!give(std::views::reverse(records), {.host = read.header.host, .block = block.moment},
              on_record, read)) {
      break;
    }
  }
  return read;
}

}  // namespace hangar::recorder
