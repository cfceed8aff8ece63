// Arguments or variables in the form in which guests receive them: the texts, each followed by a
// null byte.
#pragma once

#include "base/slots.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm::wasi {

class CStrings {
 public:
  CStrings() = default;
  // `texts` must not contain null bytes.
  explicit CStrings(const std::vector<std::string>& texts) {
    std::size_t size = 0;
    for (const std::string& text : texts)
      size += text.size() + 1;
    bytes_.reserve(size);
    for (const std::string& text : texts)
      bytes_.append(text.c_str(), text.size() + 1);
  }

  // Of what bytes() returned.
  [[nodiscard]] static CStrings of_bytes(std::string_view bytes) {
    CStrings strings;
    strings.bytes_ = bytes;
    return strings;
  }

  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count(bytes_, '\0'));
  }

 private:
  std::basic_string<char, std::char_traits<char>, slots::Allocator<char>> bytes_;
};

}  // namespace hangar::wasm::wasi
