#include "gateway/read_version.h"

#include "base/metrics.h"
#include "base/time.h"
#include "gateway/own_writes.h"
#include "gateway/request_target.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kOne = "/api/v1/namespaces/a/configmaps/x";
constexpr std::string_view kAll = "/api/v1/namespaces/a/configmaps";

TEST(ReadVersion, IsWhatTheOptionsAndTheOwnWritesDemand) {
  struct Row {
    std::string read;
    std::optional<std::uint64_t> asked;
    std::uint64_t needed;
    std::string forwarded;
  };
  const std::string one(kOne);
  const std::string all(kAll);
  const std::vector<Row> rows = {
      {one, std::nullopt, 10, one},
      {one + "?resourceVersion=0", 0, 10, one},
      {one + "?resourceVersion=12", 12, 12, one + "?resourceVersion=12"},
      // No options of lists for one object.
      {one + "?resourceVersion=3&limit=1", std::nullopt, 10, one + "?limit=1"},
      {one + "?resourceVersion=0&resourceVersionMatch=Exact", std::nullopt, 10, one},
      {all, std::nullopt, 10, all},
      {all + "?resourceVersion=0&limit=5", 0, 10, all + "?limit=5"},
      {all + "?resourceVersion=3", 3, 10, all},
      {all + "?resourceVersion=3&resourceVersionMatch=NotOlderThan&limit=5", std::nullopt, 10,
       all + "?limit=5"},
      // One exact state.
      {all + "?resourceVersion=3&limit=5", std::nullopt, 10, all + "?resourceVersion=3&limit=5"},
      {all + "?resourceVersion=3&resourceVersionMatch=Exact", std::nullopt, 10,
       all + "?resourceVersion=3&resourceVersionMatch=Exact"},
      {all + "?continue=abc", std::nullopt, 10, all + "?continue=abc"},
  };
  for (const Row& row : rows) {
    RequestTarget target = *parse_target("GET", row.read);
    const ReadVersion version = require_own_writes(target, 10);
    EXPECT_EQ(version.asked, row.asked) << row.read;
    EXPECT_EQ(version.needed, row.needed) << row.read;
    EXPECT_EQ(target.to_string(), row.forwarded) << row.read;
  }
}

TEST(ReadVersion, WithoutOwnWritesIsWhatTheOptionsSay) {
  for (const std::string_view options : {"?resourceVersion=0", "?resourceVersion=7", ""}) {
    RequestTarget target = *parse_target("GET", std::string(kAll) + std::string(options));
    const ReadVersion version = require_own_writes(target, 0);
    EXPECT_EQ(target.to_string(), std::string(kAll) + std::string(options));
    EXPECT_EQ(version.needed, version.asked.value_or(0));
  }
}

// A guest that writes and reads, again and again, with a host's cache that is five seconds behind
// the API server, and caches of the API server that are behind by other times.
class Sea {
 public:
  explicit Sea(bool has_own_writes) : has_own_writes_(has_own_writes) {}

  void write() {
    now_ += milliseconds(dice_() % 3000);
    version_ += 1 + dice_() % 3;
    history_.emplace_back(now_, version_);
    writes_.wrote(
        "me", *parse_target("PATCH", kOne), 200,
        fmt::format(R"({{"kind":"ConfigMap","metadata":{{"resourceVersion":"{}"}}}})", version_),
        now_);
  }
  // Whether the answer is older than the last write.
  bool reads_stale(const std::string& read) {
    RequestTarget target = *parse_target("GET", read);
    const std::uint64_t own = has_own_writes_ ? writes_.oldest_for("me", target, now_) : 0;
    const ReadVersion version = require_own_writes(target, own);
    const std::uint64_t cached = behind(seconds(5));
    const bool is_cached = version.asked && version.needed <= cached;
    return (is_cached ? cached : answered(target)) < version_;
  }

 private:
  // The state at that time before now.
  [[nodiscard]] std::uint64_t behind(Duration by) const {
    const auto after = std::ranges::upper_bound(history_, now_ - by, {},
                                                &std::pair<Instant, std::uint64_t>::first);
    return after == history_.begin() ? 0 : std::prev(after)->second;
  }
  // As the API server documents it.
  std::uint64_t answered(const RequestTarget& target) {
    const auto version = kube::parse_version(target.options.resource_version);
    if (!version) return version_;
    return std::max(*version, behind(milliseconds(dice_() % 2000)));
  }

  const bool has_own_writes_;
  Metrics metrics_;
  OwnWrites writes_{metrics_};
  std::mt19937 dice_{7};  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time.
  Instant now_{std::chrono::hours(1)};
  std::uint64_t version_ = 100;
  std::vector<std::pair<Instant, std::uint64_t>> history_;
};

class WriteThenRead : public ::testing::TestWithParam<std::string> {
 protected:
  static int stale(bool has_own_writes) {
    constexpr int kWrites = 2000;
    Sea sea(has_own_writes);
    int found = 0;
    for (int written = 0; written < kWrites; ++written) {
      sea.write();
      if (sea.reads_stale(GetParam())) ++found;
    }
    return found;
  }
};

TEST_P(WriteThenRead, NeverShowsTheStateBefore) {
  EXPECT_EQ(stale(true), 0);
  // The same without what this is about, unless the guest asks for the newest state.
  if (GetParam().contains("resourceVersion=")) {
    EXPECT_GT(stale(false), 0);
  }
}

std::vector<std::string> reads() {
  std::vector<std::string> found;
  for (const std::string_view path : {kOne, kAll}) {
    for (const std::string_view options :
         {"", "?resourceVersion=0", "?resourceVersion=1", "?limit=5",
          "?resourceVersion=0&resourceVersionMatch=NotOlderThan",
          "?resourceVersion=1&resourceVersionMatch=NotOlderThan", "?resourceVersion=0&limit=5",
          "?resourceVersion=1&limit=5&resourceVersionMatch=NotOlderThan"})
      found.push_back(fmt::format("{}{}", path, options));
  }
  for (const std::string_view options :
       {"?resourceVersion=0&resourceVersionMatch=Exact", "?resourceVersion=1&limit=5",
        "?resourceVersion=0&continue=abc", "?resourceVersion=0&sendInitialEvents=true"})
    found.push_back(fmt::format("{}{}", kOne, options));
  return found;
}

INSTANTIATE_TEST_SUITE_P(, WriteThenRead, ::testing::ValuesIn(reads()));

}  // namespace
}  // namespace hangar::gateway
