// Writes and reads the fields of records. One function per type hands its members to a Writer or a
// Reader, so both directions have the same fields in the same order. A text that has already
// occurred in the block is written as its number.
#pragma once

#include "base/text.h"
#include "base/time.h"
#include "base/varint.h"
#include "recorder/limits.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hangar::recorder::internal {

using Microseconds = std::chrono::duration<std::int64_t, std::micro>;

// Zigzag encoding, so that small numbers of either sign are short: 0, -1, 1, -2, ... become 0, 1,
// 2, 3, ...
[[nodiscard]] constexpr std::uint64_t fold_sign(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63U);
}
[[nodiscard]] constexpr std::int64_t unfold_sign(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1U) ^ -static_cast<std::int64_t>(value & 1U);
}

// Numbers the texts of a block, from 1.
class KnownTexts {
 public:
  // Zero: the text is new; it gets the next number.
  [[nodiscard]] std::uint64_t number_of(std::string_view text) {
    if (!known_) known_ = std::make_unique<Known>();
    auto& numbers = known_->numbers;
    if (const auto found = numbers.find(text); found != numbers.end()) return found->second;
    char* const copy = std::pmr::polymorphic_allocator<char>(&known_->memory).allocate(text.size());
    std::ranges::copy(text, copy);
    numbers.emplace(std::string_view(copy, text.size()), numbers.size() + 1);
    return 0;
  }

 private:
  // Room for all texts of a block. As much as malloc maps by itself, of which only the used pages
  // are touched: hundreds of small pieces on the heap, for half a second, would leave holes there.
  struct Known {
    using Number = std::pair<const std::string_view, std::uint64_t>;
    std::pmr::monotonic_buffer_resource memory{kBlockBytesMax};
    boost::unordered_flat_map<std::string_view, std::uint64_t, TextHash, std::equal_to<>,
                              std::pmr::polymorphic_allocator<Number>>
        numbers{&memory};
  };

  std::unique_ptr<Known> known_;
};

class Writer {
 public:
  Writer(std::string& into, KnownTexts& texts, Instant base)
      : into_(into), texts_(texts), base_(base) {}

  void number(const std::uint64_t& value) { append_varint(into_, value); }
  void flag(const bool& value) { number(value ? 1 : 0); }
  template <class Choice>
  void choice(const Choice& value, Choice /*last*/) {
    number(static_cast<std::uint64_t>(value));
  }
  // Empty: 0. Known: its number plus 1. New: 1, its length and its bytes.
  void text(const std::string_view& value) {
    if (value.empty()) return number(0);
    const std::string_view cut = value.substr(0, kTextBytesMax);
    const std::uint64_t known = texts_.number_of(cut);
    number(known + 1);
    if (known > 0) return;
    number(cut.size());
    into_ += cut;
  }
  // Never a number of a text: long, and seldom the same.
  void blob(const std::string_view& value, std::size_t bytes_max) {
    const std::string_view cut = value.substr(0, bytes_max);
    number(cut.size());
    into_ += cut;
  }
  void instant(const Instant& value) {
    number(fold_sign(std::chrono::floor<Microseconds>(value - base_).count()));
  }
  void duration(const Duration& value) {
    number(fold_sign(std::chrono::floor<Microseconds>(value).count()));
  }
  template <class List, class Visit>
  void list(const List& values, std::size_t /*count_max*/, Visit visit) {
    number(values.size());
    for (const auto& value : values)
      visit(*this, value);
  }

 private:
  std::string& into_;
  KnownTexts& texts_;
  const Instant base_;
};

// After the first error, all further fields keep their values.
class Reader {
 public:
  Reader(std::string_view bytes, std::vector<std::string_view>& texts, Instant base)
      : rest_(bytes), texts_(texts), base_(base) {}

  void number(std::uint64_t& value) {
    const auto taken = take_varint(rest_);
    if (!taken) return refuse("it ends within a number");
    value = *taken;
  }
  void flag(bool& value) {
    std::uint64_t number_read = 0;
    number(number_read);
    if (number_read > 1) return refuse("a flag is neither 0 nor 1");
    value = number_read == 1;
  }
  template <class Choice>
  void choice(Choice& value, Choice last) {
    std::uint64_t number_read = 0;
    number(number_read);
    if (number_read > static_cast<std::uint64_t>(last)) return refuse("a choice is not known");
    value = static_cast<Choice>(number_read);
  }
  void text(std::string_view& value) {
    std::uint64_t code = 0;
    number(code);
    if (code == 0) return;
    if (code > 1) {
      if (code - 2 >= texts_.size()) return refuse("a text's number is not known");
      value = texts_[code - 2];
      return;
    }
    std::uint64_t size = 0;
    number(size);
    if (size == 0 || size > kTextBytesMax) return refuse("a text is empty or too long");
    if (size > rest_.size()) return refuse("it ends within a text");
    value = texts_.emplace_back(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  void blob(std::string_view& value, std::size_t bytes_max) {
    std::uint64_t size = 0;
    number(size);
    if (size > bytes_max) return refuse("a body is too long");
    if (size > rest_.size()) return refuse("it ends within a body");
    value = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  void instant(Instant& value) {
    Duration since{};
    duration(since);
    value = base_ + since;
  }
  void duration(Duration& value) {
    // A century; more would not fit into nanoseconds.
    constexpr std::int64_t kMost = Microseconds(std::chrono::hours(24 * 36525)).count();
    std::uint64_t folded = 0;
    number(folded);
    const std::int64_t microseconds = unfold_sign(folded);
    if (microseconds > kMost || microseconds < -kMost) return refuse("a time is out of range");
    value = Microseconds(microseconds);
  }
  template <class List, class Visit>
  void list(List& values, std::size_t count_max, Visit visit) {
    std::uint64_t count = 0;
    number(count);
    if (count > count_max) return refuse("a list is too long");
    for (; count > 0 && refusal_.empty(); --count)
      visit(*this, values.emplace_back());
  }

  // The first error. Empty: none, and all bytes were read.
  [[nodiscard]] std::string_view refusal() {
    if (refusal_.empty() && !rest_.empty()) refuse("bytes follow its end");
    return refusal_;
  }

 private:
  void refuse(std::string_view why) {
    if (refusal_.empty()) refusal_ = why;
    rest_ = {};
  }

  std::string_view rest_;
  std::vector<std::string_view>& texts_;
  const Instant base_;
  std::string_view refusal_;  // A literal.
};

}  // namespace hangar::recorder::internal
