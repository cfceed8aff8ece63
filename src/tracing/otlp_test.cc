#include "tracing/otlp.h"

#include "base/time.h"
#include "tracing/span.h"

#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hangar::tracing {
namespace {

using protozero::pbf_reader;

constexpr std::uint64_t kNano = 1'700'000'000'123'456'000;

Span small_span() {
  Span span;
  span.trace.fill(0xab);
  span.id.fill(0xcd);
  span.parent.emplace().fill(0xef);
  span.name = "update configmaps";
  span.kind = Span::Kind::Client;
  span.start = WallTime(std::chrono::nanoseconds(kNano));
  span.end = span.start + std::chrono::milliseconds(5);
  span.attributes = {{"text", std::string("a")}, {"number", std::int64_t{-3}}, {"flag", true}};
  span.links.resize(1);
  span.links[0].trace.fill(0x12);
  span.links[0].span.fill(0x34);
  span.is_error = true;
  span.error = "HTTP status 500";
  return span;
}

// The messages in a field of all messages of another field, and so on: a path of field numbers.
std::vector<std::string> at_path(const std::string& bytes, std::vector<std::uint32_t> path) {
  std::vector<std::string> level = {bytes};
  for (const std::uint32_t field : path) {
    std::vector<std::string> next;
    for (const std::string& one : level) {
      pbf_reader reader(one);
      while (reader.next()) {
        if (reader.tag() == field) {
          next.push_back(reader.get_bytes());
        } else {
          reader.skip();
        }
      }
    }
    level = std::move(next);
  }
  return level;
}

}  // namespace

// Numbers of fields are written again here, as opentelemetry-proto has them.
TEST(Otlp, IsARequestAsThePublishedProtocolHasIt) {
  const std::string bytes =
      otlp_of(std::vector<Span>{small_span()}, {.version = "1.2.3", .instance = "hangar-0"});

  // resource_spans.resource.attributes: key and value.string_value.
  const std::vector<std::string> attributes = at_path(bytes, {1, 1, 1});
  std::map<std::string, std::string> resource;
  for (const std::string& one : attributes)
    resource[at_path(one, {1}).at(0)] = at_path(one, {2, 1}).at(0);
  EXPECT_EQ(resource, (std::map<std::string, std::string>{{"service.name", "hangar"},
                                                          {"service.version", "1.2.3"},
                                                          {"service.instance.id", "hangar-0"}}));
  EXPECT_EQ(at_path(bytes, {1, 2, 1, 1}), std::vector<std::string>{"hangar"});

  const std::vector<std::string> spans = at_path(bytes, {1, 2, 2});
  ASSERT_EQ(spans.size(), 1);
  EXPECT_EQ(at_path(spans[0], {1}).at(0), std::string(16, '\xab'));
  EXPECT_EQ(at_path(spans[0], {2}).at(0), std::string(8, '\xcd'));
  EXPECT_EQ(at_path(spans[0], {4}).at(0), std::string(8, '\xef'));
  EXPECT_EQ(at_path(spans[0], {5}).at(0), "update configmaps");
  EXPECT_EQ(at_path(spans[0], {9}).size(), 3);
  EXPECT_EQ(at_path(spans[0], {13, 1}).at(0), std::string(16, '\x12'));
  EXPECT_EQ(at_path(spans[0], {13, 2}).at(0), std::string(8, '\x34'));
  EXPECT_EQ(at_path(spans[0], {15, 2}).at(0), "HTTP status 500");

  pbf_reader span(spans[0]);
  std::map<std::uint32_t, std::uint64_t> numbers;
  while (span.next()) {
    switch (span.tag()) {
      case 6:
        numbers[6] = static_cast<std::uint64_t>(span.get_enum());
        break;
      case 7:
      case 8: {
        const std::uint32_t tag = span.tag();
        numbers[tag] = span.get_fixed64();
        break;
      }
      case 16:
        numbers[16] = span.get_fixed32();
        break;
      default:
        span.skip();
    }
  }
  EXPECT_EQ(numbers, (std::map<std::uint32_t, std::uint64_t>{
                         {6, 3}, {7, kNano}, {8, kNano + 5'000'000}, {16, 1}}));
}

TEST(Otlp, OfARootHasNoParentAndOfASuccessNoStatus) {
  Span span = small_span();
  span.parent.reset();
  span.is_error = false;
  const std::string bytes = otlp_of(std::vector<Span>{span}, {.version = "1", .instance = {}});
  const std::vector<std::string> spans = at_path(bytes, {1, 2, 2});
  ASSERT_EQ(spans.size(), 1);
  EXPECT_TRUE(at_path(spans[0], {4}).empty());
  EXPECT_TRUE(at_path(spans[0], {15}).empty());
}

}  // namespace hangar::tracing
