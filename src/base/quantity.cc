#include "base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
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
  const auto [rest, error] = std::from_chars(quantity.data(), end, number);
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

}  // namespace hangar
