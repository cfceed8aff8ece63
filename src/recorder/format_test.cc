#include "recorder/format.h"

#include "base/varint.h"
#include "recorder/limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::recorder {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Instant kInstant{1h};
constexpr WallTime kWall{std::chrono::hours(500000)};
constexpr Block::Moment kMoment{.instant = kInstant, .wall = kWall};

Guest guest(std::string_view name) {
  return {.namespace_ = "shop", .name = name, .instance = 2};
}

Turn turn(std::string_view name, std::uint64_t number) {
  return {.guest = guest(name),
          .uid = "d9f7",
          .user = "system:serviceaccount:shop:web",
          .module = "ab12",
          .number = number,
          .arrived = kInstant - 3ms,
          .began = kInstant - 2ms,
          .ended = kInstant + 5ms,
          .resume = 300us,
          .cpu = 1500us,
          .was_asleep = true,
          .memory_bytes = 1 << 20,
          .outcome = Turn::Outcome::Completed,
          .printed_bytes = 17,
          .asked = 1,
          .wakings = {{.cause = Waking::Cause::Modified,
                       .id = 4,
                       .bytes = 512,
                       .event = "signal APPROVED",
                       .object = {.group = "apps",
                                  .kind = "Deployment",
                                  .namespace_ = "shop",
                                  .name = "front",
                                  .version = 4711}},
                      {.cause = Waking::Cause::Timer, .id = 9}},
          .wakings_left_out = 3,
          .timers = {{.id = 10, .after = 30s}},
          .timers_left_out = 1};
}

Asked asked(std::uint64_t id) {
  return {.guest = guest("web"),
          .turn = 7,
          .id = id,
          .at = kInstant + 6ms,
          .verb = Verb::Patch,
          .group = "apps",
          .resource = "deployments",
          .namespace_ = "shop",
          .name = "front",
          .subresource = "scale",
          .path = "/apis/apps/v1/namespaces/shop/deployments/front/scale",
          .field_manager = "web",
          .is_dry_run = true,
          .version = 4711,
          .bytes = 99};
}

Answered answered(std::uint64_t id) {
  return {.guest = guest("web"),
          .id = id,
          .at = kInstant + 9ms,
          .status = 200,
          .bytes = 2048,
          .has_object = true,
          .object = {.group = "apps", .kind = "Deployment", .name = "front", .version = 4712}};
}

Body body(std::uint64_t id) {
  return {.guest = guest("web"),
          .id = id,
          .at = kInstant + 6ms,
          .state = BodyState::Cut,
          .secrets = {{.namespace_ = "shop", .name = "login"}, {.namespace_ = "bank", .name = ""}},
          .text = R"({"spec":{"replicas":3)"};
}

// The content of a record as bytes, so that two records can be compared.
std::string text_of(const Record& record) {
  Block block;
  std::visit([&block](const auto& one) { block.add(one, kMoment); }, record);
  return block.take();
}

std::string a_file() {
  std::string bytes = encode(FileHeader{.host = 5, .sequence = 8});
  Block block;
  block.add(turn("web", 7), kMoment);
  block.add(asked(1), kMoment);
  bytes += block.take();
  block.add(answered(1), kMoment);
  block.add(Slept{.guest = guest("web"),
                  .turn = 7,
                  .at = kInstant,
                  .took = 2ms,
                  .disk_bytes = 9,
                  .is_asleep = true},
            kMoment);
  block.add(Lost{.count = 3, .since = kInstant - 1s, .until = kInstant}, kMoment);
  block.add(body(1), kMoment);
  bytes += block.take();
  return bytes;
}

std::vector<std::size_t> types_in(std::string_view bytes) {
  std::vector<std::size_t> types;
  (void)read(bytes, [&types](const Place& /*place*/, const Record& record) {
    types.push_back(record.index());
    return true;
  });
  return types;
}

TEST(RecorderFormat, GivesBackWhatWasRecorded) {
  const std::vector<Record> given = {turn("web", 7),
                                     asked(1),
                                     answered(1),
                                     Slept{.guest = guest("web"),
                                           .turn = 7,
                                           .at = kInstant,
                                           .took = 2ms,
                                           .disk_bytes = 9,
                                           .is_asleep = true},
                                     Lost{.count = 3, .since = kInstant - 1s, .until = kInstant},
                                     body(1)};

  std::vector<std::string> got;
  const std::string bytes = a_file();
  const Result<ReadFile> file = read(bytes, [&got](const Place& place, const Record& record) {
    EXPECT_EQ(place.host, 5U);
    EXPECT_EQ(place.wall(kInstant - 2s), kWall - 2s);
    got.push_back(text_of(record));
    return true;
  });

  ASSERT_TRUE(file);
  EXPECT_EQ(file->header, (FileHeader{.host = 5, .sequence = 8}));
  EXPECT_EQ(file->blocks, 2U);
  EXPECT_EQ(file->cut, "");
  std::vector<std::string> want;
  want.reserve(given.size());
  for (const Record& record : given)
    want.push_back(text_of(record));
  EXPECT_EQ(got, want);
}

TEST(RecorderFormat, IsReadFromItsEndToo) {
  std::vector<std::size_t> types;
  const std::string bytes = a_file();
  const Result<ReadFile> file =
      read_backwards(bytes, [&types](const Place& /*place*/, const Record& record) {
        types.push_back(record.index());
        return types.size() < 4;
      });

  ASSERT_TRUE(file);
  EXPECT_THAT(types, ElementsAre(6, 4, 3, 2));
  EXPECT_THAT(types_in(bytes), ElementsAre(0, 1, 2, 3, 4, 6));
}

TEST(RecorderFormat, IsReadableUpToWhereverItIsCut) {
  const std::string bytes = a_file();
  std::size_t most = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::string_view cut = std::string_view(bytes).substr(0, size);
    const std::size_t count = types_in(cut).size();
    EXPECT_GE(count, most) << size;
    most = count;
    const Result<ReadFile> file = read(cut, [](const Place&, const Record&) { return true; });
    EXPECT_EQ(file.has_value(), size >= kFileHeaderBytes) << size;
    if (file) {
      EXPECT_EQ(file->records, count);
    }
  }
  EXPECT_EQ(most, 6U);
}

TEST(RecorderFormat, TakesNoBlockOfWhichAByteIsAnother) {
  const std::string bytes = a_file();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const Result<ReadFile> file = read(damaged, [](const Place&, const Record&) { return true; });
    if (!file || (at >= 12 && at < kFileHeaderBytes)) continue;  // The header has no checksum.
    EXPECT_LT(file->records, 6U) << at;
    EXPECT_NE(file->cut, "") << at;
  }
}

TEST(RecorderFormat, SaysWhichVersionItReads) {
  for (const std::uint32_t version : {1U, kFormatVersion + 1}) {
    Block block;
    block.add(turn("web", 7), kMoment);
    const std::string bytes = encode(FileHeader{.version = version}) + block.take();
    const Result<ReadFile> file = read(bytes, [](const Place&, const Record&) { return true; });

    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().kind(), ErrorKind::InvalidInput);
    EXPECT_EQ(file.error().message(),
              fmt::format("the file has version {} of the recorder's format, this hangar reads "
                          "versions 2 to 4",
                          version));
  }
}

TEST(RecorderFormat, ReadsTheVersionsBefore) {
  for (const std::uint32_t version : {2U, 3U}) {
    Block block;
    block.add(turn("web", 7), kMoment);
    const std::string bytes = encode(FileHeader{.version = version, .host = 5}) + block.take();
    const Result<ReadFile> file = read(bytes, [](const Place&, const Record&) { return true; });

    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->records, 1U);
    EXPECT_EQ(file->header.version, version);
  }
}

TEST(RecorderFormat, RefusesABodyThatIsLongerThanItMayBe) {
  const std::string text(kBodyBytesMax + 1, 'x');
  Body one = body(1);
  one.text = text;
  Block block;
  block.add(one, kMoment);
  // Written, it is cut.
  const std::string bytes = encode(FileHeader()) + block.take();
  std::size_t size = 0;
  ASSERT_TRUE(read(bytes, [&size](const Place&, const Record& record) {
    size = std::get<Body>(record).text.size();
    return true;
  }));
  EXPECT_EQ(size, kBodyBytesMax);

  std::string fields;
  append_varint(fields, 0);  // Its guest,
  append_varint(fields, 0);
  append_varint(fields, 0);
  append_varint(fields, 0);
  append_varint(fields, 1);  // its request, the time, the state, no Secrets,
  append_varint(fields, 0);
  append_varint(fields, 0);
  append_varint(fields, 0);
  append_varint(fields, text.size());
  fields += text;
  std::string payload;
  append_varint(payload, 7);
  append_varint(payload, fields.size());
  payload += fields;
  const std::string longer = encode(FileHeader()) + wrap(payload);
  const Result<ReadFile> file = read(longer, [](const Place&, const Record&) { return true; });
  ASSERT_TRUE(file);
  EXPECT_EQ(file->records, 0U);
  EXPECT_EQ(file->cut, "a record of type 7: a body is too long");
}

TEST(RecorderFormat, HasWhatNamespacesGaveUp) {
  const GivenUp given_up{.namespace_ = "loud", .count = 1234, .until = kInstant - 1h};
  Block block;
  block.add(given_up, kMoment);
  const FileHeader header{.replaces = 4, .host = 5, .sequence = 8};
  std::string again;
  const Result<ReadFile> file =
      read(encode(header) + block.take(), [&again](const Place& place, const Record& record) {
        EXPECT_EQ(place.wall(time_of(record)), kMoment.wall - 1h);
        EXPECT_EQ(holder_of(record), "loud");
        again = text_of(record);
        return true;
      });

  ASSERT_TRUE(file);
  EXPECT_EQ(file->header, header);
  EXPECT_EQ(again, text_of(given_up));
}

TEST(RecorderFormat, TellsTheBytesOfEachRecordAndNamespace) {
  Block block;
  block.add(turn("web", 7), kMoment);
  block.add(asked(1), kMoment);
  block.add(Lost{.count = 1, .since = kInstant, .until = kInstant}, kMoment);
  const std::uint64_t whole = block.size_bytes();
  const Holdings held = block.held();
  std::uint64_t bytes = 0;
  std::uint64_t of_nobody = 0;
  ASSERT_TRUE(read(encode(FileHeader()) + block.take(), [&](const Place& place, const Record& one) {
    bytes += place.record_bytes;
    if (!holder_of(one)) of_nobody += place.record_bytes;
    return true;
  }));
  EXPECT_EQ(bytes, whole);
  EXPECT_EQ(held, (Holdings{{"shop", whole - of_nobody}}));
}

TEST(RecorderFormat, WritesATextOnceABlock) {
  Block block;
  block.add(turn("web", 7), kMoment);
  const std::size_t first = block.size_bytes();
  block.add(turn("web", 8), kMoment);
  const std::size_t second = block.size_bytes() - first;

  EXPECT_LT(second, 60U);
  EXPECT_LT(second, first / 2);
}

TEST(RecorderFormat, CutsTextsThatAreTooLong) {
  const std::string long_path(10000, 'x');
  Asked request = asked(1);
  request.path = long_path;
  Block block;
  block.add(request, kMoment);
  const std::string bytes = encode(FileHeader()) + block.take();

  std::size_t size = 0;
  const Result<ReadFile> file = read(bytes, [&size](const Place&, const Record& record) {
    size = std::get<Asked>(record).path.size();
    return true;
  });
  ASSERT_TRUE(file);
  EXPECT_EQ(file->cut, "");
  EXPECT_EQ(size, 512U);
}

TEST(RecorderFormat, TellsTimesOfBlocksByTheClockOfThatMoment) {
  // The wall clock is set back by an hour between the two blocks.
  std::string bytes = encode(FileHeader());
  Block block;
  block.add(Lost{.count = 1, .since = kInstant, .until = kInstant}, kMoment);
  bytes += block.take();
  block.add(Lost{.count = 2, .since = kInstant + 1s, .until = kInstant + 1s},
            {.instant = kInstant + 1s, .wall = kWall - 1h});
  bytes += block.take();

  std::vector<WallTime> walls;
  std::vector<Instant> instants;
  const Result<ReadFile> file = read(bytes, [&](const Place& place, const Record& record) {
    const Lost& lost = std::get<Lost>(record);
    walls.push_back(place.wall(lost.since));
    instants.push_back(lost.since);
    return true;
  });
  ASSERT_TRUE(file);
  EXPECT_THAT(walls, ElementsAre(kWall, kWall - 1h));
  EXPECT_THAT(instants, ElementsAre(kInstant, kInstant + 1s));
}

}  // namespace
}  // namespace hangar::recorder
