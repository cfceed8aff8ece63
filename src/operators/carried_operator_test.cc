#include "operators/carried_operator.h"

#include "abi/kube_runtime/carried_guest.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/limits.h"
#include "io/descriptor.h"
#include "operators/operator.h"
#include "wasm/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::operators {
namespace {

using namespace std::chrono_literals;
using abi::kube_runtime::CarriedCalls;
using abi::kube_runtime::CarriedGuest;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr Instant kNow{std::chrono::hours(1)};

io::Descriptor some_file() {
  return io::Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

CarriedOperator sleeper(const std::string& name) {
  CarriedOperator carried{.key = {.namespace_ = "team", .name = name},
                          .uid = "uid-" + name,
                          .generation = 7,
                          .module = wasm::Digest::of("module"),
                          .image = 99,
                          .started_at = kNow - 30min,
                          .idle_since = kNow - 10min,
                          .start_count = 2,
                          .serves_metrics = true,
                          .takes_webhooks = false,
                          .figures = {.wakes = 5,
                                      .last_cpu_time = 3ms,
                                      .last_resume_time = 1ms,
                                      .last_wake = WallTime(std::chrono::hours(400'000)),
                                      .requests = 12,
                                      .failures = 1},
                          .guest = {.snapshot_offset = 512,
                                    .snapshot_bytes = 1000,
                                    .memory_bytes = 1U << 20U,
                                    .asleep_since = kNow - 9min,
                                    .layer = {},
                                    .calls = {.calls = {{.id = 3},
                                                        {.id = 4, .is_delay = true},
                                                        {.id = 6, .is_delay = true},
                                                        {.id = 8}},
                                              .metrics = 1,
                                              .last_request = 8,
                                              .last_delay = 6,
                                              .next_id = 10,
                                              .forgotten = {9}}},
                          .requests = {}};
  carried.requests.calls.push_back(
      {.id = 3,
       .is_stream = true,
       .continuation = {{.target = "/api/v1/configmaps?watch=true&resourceVersion=5",
                         .accept = "application/json"}},
       .bookmark = "{}\n"});
  carried.requests.calls.push_back({.id = 8, .is_stream = false});
  carried.requests.delays.push_back({.id = 4, .due = kNow + 1h});
  carried.requests.arrivals.push_back(
      {.id = 8, .what = CarriedRequests::Head{.status = 201, .headers = {{"a", "b"}}}});
  carried.requests.arrivals.push_back({.id = 8, .what = std::string("body\n")});
  carried.requests.arrivals.push_back({.id = 8, .what = CarriedRequests::End()});
  carried.requests.arrivals.push_back({.id = 6, .what = CarriedRequests::End()});
  return carried;
}

CarriedFleet fleet_of(std::vector<CarriedOperator> operators) {
  return {.operators = std::move(operators), .left = {}, .snapshots = some_file()};
}

// Takes each number as another file.
Result<io::Descriptor> take_any(int /*number*/) {
  return some_file();
}

CarriedFleet one_sleeper(const std::function<void(CarriedOperator&)>& change = {}) {
  std::vector<CarriedOperator> operators;
  operators.push_back(sleeper("mirror"));
  if (change) change(operators.front());
  return fleet_of(std::move(operators));
}

void expect_refusal(const CarriedFleet& fleet, std::string_view why) {
  const auto read = decode(encode(fleet), kNow, take_any);
  ASSERT_FALSE(read.has_value()) << why;
  EXPECT_EQ(read.error().kind(), ErrorKind::Corrupt);
  EXPECT_THAT(read.error().message(), HasSubstr(why));
}

TEST(CarriedOperator, FitsTheObjectAndTheModuleThatItWasMadeOf) {
  const CarriedOperator carried = sleeper("mirror");
  const Operator spec{.key = carried.key, .uid = "uid-mirror", .generation = 7};
  const wasm::Digest module = wasm::Digest::of("module");
  EXPECT_FALSE(misfit(carried, spec, module, 99).has_value());

  Operator other = spec;
  other.uid = "uid-later";
  EXPECT_EQ(misfit(carried, other, module, 99), "it is another object of the same name");
  other = spec;
  other.generation = 8;
  EXPECT_EQ(misfit(carried, other, module, 99), "its spec has changed");
  EXPECT_EQ(misfit(carried, spec, wasm::Digest::of("another"), 99), "its module has changed");
  EXPECT_EQ(misfit(carried, spec, module, 98),
            "this version of hangar lays out the module's memory in another way");
}

TEST(CarriedOperators, AreReadAsTheyWereWritten) {
  CarriedFleet fleet = one_sleeper([](CarriedOperator& one) {
    CarriedGuest::Layer& layer = one.guest.layer.emplace();
    layer.pieces = {{.first = 1, .count = 2}, {.first = 5, .count = 1}};
    layer.file = some_file();
  });
  fleet.left.push_back(
      {.key = {.namespace_ = "team", .name = "left"}, .reason = "it cannot sleep"});
  const int layer_number = fleet.operators.front().guest.layer->file.value();
  std::vector<int> taken;

  const auto read = decode(encode(fleet), kNow, [&taken](int number) {
    taken.push_back(number);
    return take_any(number);
  });

  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_THAT(taken, ElementsAre(fleet.snapshots.value(), layer_number));
  ASSERT_THAT(read->operators, SizeIs(1));
  const CarriedOperator& one = read->operators.front();
  const CarriedOperator expected = sleeper("mirror");
  EXPECT_EQ(one.key, expected.key);
  EXPECT_EQ(one.uid, expected.uid);
  EXPECT_EQ(one.generation, expected.generation);
  EXPECT_EQ(one.module, expected.module);
  EXPECT_EQ(one.image, expected.image);
  EXPECT_EQ(one.started_at, expected.started_at);
  EXPECT_EQ(one.idle_since, expected.idle_since);
  EXPECT_EQ(one.start_count, expected.start_count);
  EXPECT_TRUE(one.serves_metrics);
  EXPECT_FALSE(one.takes_webhooks);
  EXPECT_EQ(one.figures.wakes, 5U);
  EXPECT_EQ(one.figures.last_cpu_time, 3ms);
  EXPECT_EQ(one.figures.last_wake, expected.figures.last_wake);
  EXPECT_EQ(one.guest.snapshot_offset, 512U);
  EXPECT_EQ(one.guest.asleep_since, expected.guest.asleep_since);
  EXPECT_EQ(one.guest.calls, expected.guest.calls);
  EXPECT_THAT(one.guest.layer->pieces,
              ElementsAre(CarriedGuest::Layer::Piece{.first = 1, .count = 2},
                          CarriedGuest::Layer::Piece{.first = 5, .count = 1}));
  ASSERT_THAT(one.requests.calls, SizeIs(2));
  EXPECT_EQ(one.requests.calls[0].continuation->target,
            "/api/v1/configmaps?watch=true&resourceVersion=5");
  EXPECT_EQ(one.requests.calls[0].bookmark, "{}\n");
  EXPECT_FALSE(one.requests.calls[1].continuation.has_value());
  EXPECT_EQ(one.requests.delays.at(0).due, kNow + 1h);
  ASSERT_THAT(one.requests.arrivals, SizeIs(4));
  EXPECT_EQ(std::get<CarriedRequests::Head>(one.requests.arrivals[0].what).status, 201);
  EXPECT_EQ(std::get<std::string>(one.requests.arrivals[1].what), "body\n");
  ASSERT_THAT(read->left, SizeIs(1));
  EXPECT_EQ(read->left.front().reason, "it cannot sleep");
}

TEST(CarriedOperators, AreRefusedWithAnyByteChangedOrMissing) {
  const std::string bytes = encode(one_sleeper());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ 1U);
    EXPECT_FALSE(decode(damaged, kNow, take_any).has_value()) << "byte " << at;
    EXPECT_FALSE(decode(bytes.substr(0, at), kNow, take_any).has_value()) << at << " bytes";
  }
  EXPECT_FALSE(decode(bytes + "x", kNow, take_any).has_value());
}

TEST(CarriedOperators, OfAnotherVersionAreRefusedByName) {
  std::string bytes = encode(one_sleeper());
  bytes[8] = 2;  // After the magic.

  const auto read = decode(bytes, kNow, take_any);

  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().kind(), ErrorKind::InvalidInput);
  EXPECT_THAT(read.error().message(), HasSubstr("wrote version 2.1, this one reads 1.1"));
}

TEST(CarriedOperators, AreRefusedWhenNoHostCanHaveWrittenThem) {
  const auto with = one_sleeper;
  expect_refusal(with([](auto& one) { one.key.name = "../x"; }), "a key that no object has");
  expect_refusal(with([](auto& one) { one.started_at = kNow + 1s; }), "is the most");
  expect_refusal(with([](auto& one) { one.requests.delays[0].due = kNow + 9000h; }), "is the most");
  expect_refusal(with([](auto& one) { one.guest.snapshot_bytes = 0; }), "an empty snapshot");
  expect_refusal(
      with([](auto& one) { std::swap(one.guest.calls.calls[0], one.guest.calls.calls[3]); }),
      "calls out of their order");
  expect_refusal(with([](auto& one) { one.guest.calls.next_id = 8; }), "was not given yet");
  expect_refusal(with([](auto& one) { one.guest.calls.metrics = 3; }), "a call that is a listener");
  expect_refusal(with([](auto& one) { one.guest.calls.webhooks = 1; }), "two listeners");
  expect_refusal(with([](auto& one) { one.requests.calls[1].id = 4; }), "a request of nobody");
  expect_refusal(with([](auto& one) { one.requests.delays[0].id = 3; }), "a delay of nobody");
  expect_refusal(with([](auto& one) { one.requests.arrivals[0].id = 7; }), "an answer for nobody");
  expect_refusal(with([](auto& one) { one.requests.arrivals[3].what = std::string("text"); }),
                 "an answer for nobody");
  expect_refusal(with([](auto& one) { one.requests.calls[0].is_stream = false; }), "is no stream");
  expect_refusal(with([](auto& one) { one.requests.calls[0].continuation->target = "x"; }),
                 "without a path");
  expect_refusal(with([](auto& one) { one.requests.calls[0].continuation->accept = "a\r\nb"; }),
                 "a control character");
  expect_refusal(with([](auto& one) {
                   CarriedGuest::Layer& layer = one.guest.layer.emplace();
                   layer.file = some_file();
                   layer.pieces = {{.first = 4, .count = 2}, {.first = 5, .count = 1}};
                 }),
                 "pages of a layer");
  expect_refusal(with([](auto& one) {
                   CarriedGuest::Layer& layer = one.guest.layer.emplace();
                   layer.file = some_file();
                   layer.pieces = {{.first = 0, .count = 1'000'000}};
                 }),
                 "a layer of a size");
}

TEST(CarriedOperators, AreCarriedThoughOneOfThemWouldBeRefused) {
  std::vector<CarriedOperator> operators;
  operators.push_back(sleeper("long"));
  operators.front().requests.calls[0].continuation->target =
      "/" + std::string(limits::kGatewayTargetBytesMax, 'x');
  operators.push_back(sleeper("mirror"));
  CarriedFleet fleet = fleet_of(std::move(operators));

  leave_unreadable(fleet, kNow);

  const auto read = decode(encode(fleet), kNow, take_any);
  ASSERT_TRUE(read.has_value()) << read.error().message();
  ASSERT_THAT(read->operators, SizeIs(1));
  EXPECT_EQ(read->operators.front().key.name, "mirror");
  ASSERT_THAT(read->left, SizeIs(1));
  EXPECT_EQ(read->left.front().key.name, "long");
  EXPECT_THAT(read->left.front().reason, HasSubstr("cannot be carried: the number"));
}

TEST(CarriedOperators, ThatAreSmallAreCarriedWhereLargeOnesHaveNoRoom) {
  constexpr std::size_t kLarge = kCarriedOperatorsBytesMax / kCarriedArrivalsBytesMax + 1;
  std::vector<CarriedOperator> operators;
  for (std::size_t index = 0; index < kLarge; ++index) {
    CarriedOperator& large = operators.emplace_back(sleeper(fmt::format("large-{}", index)));
    large.requests.arrivals[1].what = std::string(kCarriedArrivalsBytesMax, 'x');
  }
  operators.push_back(sleeper("mirror"));
  CarriedFleet fleet = fleet_of(std::move(operators));

  leave_unreadable(fleet, kNow);

  EXPECT_EQ(fleet.operators.front().key.name, "mirror");
  EXPECT_THAT(fleet.operators, SizeIs(kLarge - 1));
  EXPECT_THAT(fleet.left, SizeIs(2));
  EXPECT_LE(encode(fleet).size(), kCarriedBytesMax);
}

TEST(CarriedOperators, AreRefusedWhenOneIsThereTwice) {
  std::vector<CarriedOperator> operators;
  operators.push_back(sleeper("mirror"));
  operators.push_back(sleeper("mirror"));
  expect_refusal(fleet_of(std::move(operators)), "an operator twice");

  CarriedFleet fleet = one_sleeper();
  fleet.left.push_back({.key = {.namespace_ = "team", .name = "mirror"}, .reason = "why"});
  expect_refusal(fleet, "an operator twice");
}

TEST(CarriedOperators, NameNoDescriptorTwiceAndNoStandardOne) {
  CarriedFleet fleet = one_sleeper();
  const int number = fleet.snapshots.value();
  CarriedGuest::Layer& layer = fleet.operators.front().guest.layer.emplace();
  layer.pieces = {{.first = 0, .count = 1}};
  layer.file = io::Descriptor(number);
  const std::string bytes = encode(fleet);
  EXPECT_EQ(std::move(layer.file).release(), number);
  const auto read = decode(bytes, kNow, take_any);
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().message(), HasSubstr("a descriptor named twice"));

  CarriedFleet standard = one_sleeper();
  standard.snapshots = io::Descriptor(1);
  const std::string with_standard = encode(standard);
  EXPECT_EQ(std::move(standard.snapshots).release(), 1);
  EXPECT_FALSE(decode(with_standard, kNow, take_any).has_value());
}

TEST(CarriedOperators, TellWhyADescriptorCannotBeTaken) {
  const auto read = decode(encode(one_sleeper()), kNow, [](int) -> Result<io::Descriptor> {
    return fail(ErrorKind::Corrupt, "it is another file");
  });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message(), "it is another file");
}

TEST(CarriedOperators, SayReasonsInOneBoundedLine) {
  CarriedFleet fleet = one_sleeper();
  fleet.left.push_back({.key = {.namespace_ = "team", .name = "left"},
                        .reason = "two\nlines" + std::string(1000, 'x')});

  const auto read = decode(encode(fleet), kNow, take_any);

  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_THAT(read->left.front().reason, SizeIs(kCarriedReasonBytesMax));
  EXPECT_THAT(read->left.front().reason, testing::StartsWith("two linesx"));
}

}  // namespace
}  // namespace hangar::operators
