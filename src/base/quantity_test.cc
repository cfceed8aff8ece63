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

TEST(ParseMillicores, ReadsWhatKubernetesWrites) {
  const struct {
    std::string_view text;
    std::uint64_t millicores;
  } cases[] = {{"0", 0},     {"500m", 500}, {"2", 2000},   {"1.5", 1500},
               {"0.1", 100}, {"0.001", 1},  {"0.25", 250}, {"1500m", 1500}};
  for (const auto& [text, millicores] : cases)
    EXPECT_EQ(parse_millicores(text).value(), millicores) << text;
}

TEST(ParseMillicores, RefusesWhatIsNoNumberOfCores) {
  for (const std::string_view text :
       {"", "m", "-1", "1.", "1.5m", ".5", "1.2345", "1k", "1 m", "1.x", "1.-1",
        "99999999999999999999", "18446744073709551615"}) {
    const Result<std::uint64_t> parsed = parse_millicores(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::InvalidInput);
  }
}

}  // namespace
}  // namespace hangar
