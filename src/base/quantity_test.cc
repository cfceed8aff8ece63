#include "base/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace hangar {
namespace {

TEST(ParseBytes, ReadsWhatKubernetesWrites) {
  const struct {
    std::string_view text;
    std::uint64_t bytes;
  } cases[] = {
      {"0", 0},     {"65536", 65536}, {"64Ki", 65536}, {"128Mi", 134217728}, {"2Gi", 2147483648},
      {"1k", 1000}, {"1M", 1000000}};
  for (const auto& [text, bytes] : cases)
    EXPECT_EQ(parse_bytes(text).value(), bytes) << text;
}

TEST(ParseBytes, RefusesWhatIsNoWholeNumberOfBytes) {
  for (const std::string_view text : {"", "Mi", "-1", "1.5Mi", "1 Mi", "1MiB", "1m", "1e3",
                                      "99999999999999999999", "99999999Ti"}) {
    const Result<std::uint64_t> parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::InvalidInput);
  }
}

}  // namespace
}  // namespace hangar
