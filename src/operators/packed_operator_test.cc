#include "operators/packed_operator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

namespace hangar::operators {
namespace {

TEST(PackedOperator, ComesOutAsItWentIn) {
  const Operator spec{
      .key = {"shop", "prices"},
      .uid = "5f0d",
      .generation = std::numeric_limits<std::int64_t>::max(),
      .args = {"", std::string("a\0b", 3), std::string(300, 'x')},
      .environment = {{.name = "A", .value = "b=c\xff"},
                      {.name = "B",
                       .source = EnvironmentEntry::Source::Secret,
                       .object = "o",
                       .key = "k",
                       .is_optional = true}},
      .files = {{.path = "/etc/x", .is_secret = true, .object = "s", .is_optional = true}},
      .service_account = "robot",
      .limits = {.memory_bytes = std::numeric_limits<std::uint64_t>::max(),
                 .cpu_time_per_wake = std::chrono::milliseconds(1500),
                 .requests_per_second = 0.1,
                 .log_bytes = 127},
      .sleep = {.kind = SleepPolicy::Kind::Never,
                .after = std::chrono::seconds(-1),
                .wake_latency = std::chrono::milliseconds(7)},
      .isolation = Isolation::Operator,
      .record = Recording::Bodies,
  };
  const PackedOperator packed({.spec = spec, .resolved = "oci://prices@sha256:00"});

  const auto [unpacked, resolved] = packed.unpack(spec.key);
  EXPECT_EQ(unpacked, spec);
  EXPECT_EQ(resolved, "oci://prices@sha256:00");

  Operator outline = spec;
  outline.args.clear();
  outline.environment.clear();
  outline.files.clear();
  EXPECT_EQ(packed.outline(spec.key).spec, outline);
  EXPECT_EQ(packed.outline(spec.key).resolved, resolved);
  EXPECT_EQ(packed.origin().uid, spec.uid);
  EXPECT_EQ(packed.origin().service_account, "robot");
}

TEST(PackedOperator, NothingSaidIsNothing) {
  EXPECT_EQ(PackedOperator({}).unpack({}).spec, Operator{});
}

}  // namespace
}  // namespace hangar::operators
