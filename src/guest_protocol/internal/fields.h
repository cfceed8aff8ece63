// Fields of messages. Which fields a message has, and in which order, is written once for both
// directions: one function passes the members of a message to a Writer or to a Reader.
#pragma once

#include "base/result.h"

#include <fmt/format.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::guest_protocol::internal {

static_assert(std::endian::native == std::endian::little, "numbers are sent as they lie in memory");

class Writer {
 public:
  explicit Writer(std::string& into) : into_(into) {}

  template <std::integral Number>
  void number(const Number& value) {
    into_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void flag(const bool& value) { number(static_cast<std::uint8_t>(value)); }
  template <class Choice>
  void choice(const Choice& value, Choice /*last*/) {
    number(static_cast<std::uint8_t>(value));
  }
  void text(const std::string& value, std::size_t /*bytes_max*/) {
    number(static_cast<std::uint32_t>(value.size()));
    into_.append(value);
  }
  void texts(const std::vector<std::string>& values, std::size_t /*count_max*/,
             std::size_t bytes_max) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const std::string& value : values)
      text(value, bytes_max);
  }
  // `visit(fields, item)` passes the members of one item.
  template <class Item, class Visit>
  void list(const std::vector<Item>& items, std::size_t /*count_max*/, Visit visit) {
    number(static_cast<std::uint32_t>(items.size()));
    for (const Item& item : items)
      visit(*this, item);
  }

 private:
  std::string& into_;
};

// After the first invalid field all later members keep their values.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <std::integral Number>
  void number(Number& value) {
    if (rest_.size() < sizeof value) return refuse("it ends within a number");
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
  }
  void flag(bool& value) {
    std::uint8_t byte = 0;
    number(byte);
    if (byte > 1) return refuse("a flag is neither 0 nor 1");
    value = byte == 1;
  }
  // A number from zero to `last`.
  template <class Choice>
  void choice(Choice& value, Choice last) {
    std::uint8_t byte = 0;
    number(byte);
    if (byte > static_cast<std::uint8_t>(last)) return refuse("a choice is not known");
    value = static_cast<Choice>(byte);
  }
  void text(std::string& value, std::size_t bytes_max) {
    std::uint32_t size = 0;
    number(size);
    if (size > bytes_max) return refuse("a text is too long");
    if (size > rest_.size()) return refuse("it ends within a text");
    value.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  // `bytes_max` bounds all texts together.
  void texts(std::vector<std::string>& values, std::size_t count_max, std::size_t bytes_max) {
    std::uint32_t count = 0;
    number(count);
    if (count > count_max) return refuse("a list is too long");
    for (; count > 0 && refusal_.empty(); --count) {
      text(values.emplace_back(), bytes_max);
      bytes_max -= values.back().size();
    }
  }

  // Each item takes at least one byte of the message, so that an announced count costs no memory
  // before its items arrive.
  template <class Item, class Visit>
  void list(std::vector<Item>& items, std::size_t count_max, Visit visit) {
    std::uint32_t count = 0;
    number(count);
    if (count > count_max) return refuse("a list is too long");
    for (; count > 0 && refusal_.empty(); --count)
      visit(*this, items.emplace_back());
  }

  [[nodiscard]] Result<> end() {
    if (refusal_.empty() && !rest_.empty()) refuse("bytes follow its end");
    if (!refusal_.empty()) return fail(ErrorKind::InvalidInput, std::string(refusal_));
    return {};
  }

 private:
  void refuse(std::string_view why) {
    if (refusal_.empty()) refusal_ = why;
    rest_ = {};
  }

  std::string_view rest_;
  std::string_view refusal_;  // A literal.
};

// True for `Type` and for a const one, which is what a Writer gets.
template <class Message, class Type>
concept Is = std::same_as<std::remove_const_t<Message>, Type>;

// The type of a message is its index in the variant, from 1. visit_fields(fields, message) is found
// in the namespace of the messages. The length in the header is filled in last.
template <class Message>
std::string encode_frame(const Message& message) {
  std::string bytes(sizeof(std::uint32_t), '\0');
  bytes += static_cast<char>(message.index() + 1);
  const std::size_t before = bytes.size();
  std::visit(
      [&bytes](const auto& one) {
        Writer writer(bytes);
        visit_fields(writer, one);
      },
      message);
  const auto size = static_cast<std::uint32_t>(bytes.size() - before);
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

template <class Message, std::size_t kIndex = 0>
Result<Message> decode_payload(std::uint8_t type, std::string_view payload) {
  if constexpr (kIndex == std::variant_size_v<Message>) {
    return fail(ErrorKind::InvalidInput, fmt::format("there is no message of type {}", type));
  } else {
    if (type != kIndex + 1) return decode_payload<Message, kIndex + 1>(type, payload);
    std::variant_alternative_t<kIndex, Message> message;
    Reader reader(payload);
    visit_fields(reader, message);
    if (Result<> ended = reader.end(); !ended) {
      return std::unexpected(
          std::move(ended).error().in(fmt::format("a message of type {}", type)));
    }
    return Message(std::move(message));
  }
}

}  // namespace hangar::guest_protocol::internal
