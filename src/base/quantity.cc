#include "base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar {

Result<std::uint64_t> parse_bytes(std::string_view quantity) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 8> kSuffixes = {{
      {"Ki", 1ULL << 10U},
      {"Mi", 1ULL << 20U},
      {"Gi", 1ULL << 30U},
      {"Ti", 1ULL << 40U},
      {"k", 1'000},
      {"M", 1'000'000},
      {"G", 1'000'000'000},
      {"T", 1'000'000'000'000},
  }};
  const auto wrong = [quantity] {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not a whole number of bytes such as 65536, 64Ki or 128Mi",
                            quantity));
  };
  std::uint64_t number = 0;
  const char* const end = quantity.data() + quantity.size();
  const auto [rest, error] = std::from_chars(end - quantity.size(), end, number);
  if (error != std::errc()) return wrong();
  const std::string_view suffix(rest, end);
  if (suffix.empty()) return number;
  const auto* const found =
      std::ranges::find(kSuffixes, suffix, &std::pair<std::string_view, std::uint64_t>::first);
  if (found == kSuffixes.end()) return wrong();
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(number, found->second, &bytes)) return wrong();
  return bytes;
}

Result<std::uint64_t> parse_millicores(std::string_view quantity) {
  constexpr std::uint64_t kCore = 1000;
  constexpr std::size_t kDecimalsMax = 3;
  const auto wrong = [quantity] {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not a number of cores such as 500m, 2 or 1.5", quantity));
  };
  std::uint64_t number = 0;
  const char* const end = quantity.data() + quantity.size();
  const auto [rest, error] = std::from_chars(end - quantity.size(), end, number);
  if (error != std::errc()) return wrong();
  std::string_view suffix(rest, end);
  if (suffix == "m") return number;
  std::uint64_t millicores = 0;
  if (__builtin_mul_overflow(number, kCore, &millicores)) return wrong();
  if (suffix.empty()) return millicores;
  if (!suffix.starts_with('.') || suffix.size() < 2 || suffix.size() > kDecimalsMax + 1) {
    return wrong();
  }
  suffix.remove_prefix(1);
  std::uint64_t part = kCore;
  for (const char digit : suffix) {
    if (digit < '0' || digit > '9') return wrong();
    part /= 10;
    if (__builtin_add_overflow(millicores, part * static_cast<std::uint64_t>(digit - '0'),
                               &millicores)) {
      return wrong();
    }
  }
  return millicores;
}

}  // namespace hangar
