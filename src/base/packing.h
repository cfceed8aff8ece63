// Packs values into few bytes, for records that are kept by the thousand and seldom read. Only the
// process that packed them may unpack them, or a process of the same program that has checked
// a digest.
//
// The fields and their order are written once for both directions: one function passes the members
// of a struct to a Packer or to an Unpacker.
#pragma once

#include "base/slots.h"
#include "base/time.h"

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace hangar {

using PackedBytes = std::basic_string<char, std::char_traits<char>, slots::Allocator<char>>;

class Packer {
 public:
  // Numbers, enumerations, durations and strings.
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  template <class List, class Visit>
  void each(const List& list, Visit visit) {
    put(list.size());
    for (const auto& item : list)
      visit(item);
  }

  [[nodiscard]] PackedBytes bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  template <class Value>
  void put(const Value& value) {
    if constexpr (std::is_same_v<Value, double>) {
      put_number(std::bit_cast<std::uint64_t>(value));
    } else if constexpr (std::is_same_v<Value, Duration>) {
      put_number(static_cast<std::uint64_t>(value.count()));
    } else if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>) {
      put_number(static_cast<std::uint64_t>(value));
    } else {
      put_text(value);
    }
  }
  void put_number(std::uint64_t value);
  void put_text(std::string_view value);

  std::string bytes_;
};

// Unpacks values of the same types in the order in which they were packed.
class Unpacker {
 public:
  // `bytes` outlive it.
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  template <class List, class Visit>
  void each(List& list, Visit visit) {
    list.resize(get_number());
    for (auto& item : list)
      visit(item);
  }

 private:
  template <class Value>
  void get(Value& value) {
    if constexpr (std::is_same_v<Value, double>) {
      value = std::bit_cast<double>(get_number());
    } else if constexpr (std::is_same_v<Value, std::string> ||
                         std::is_same_v<Value, std::string_view>) {
      value = get_text();  // A string_view refers to the packed bytes.
    } else {
      value = static_cast<Value>(get_number());
    }
  }
  [[nodiscard]] std::uint64_t get_number();
  [[nodiscard]] std::string_view get_text();

  std::string_view rest_;
};

}  // namespace hangar
