#include "recorder/recorder.h"

#include "base/log.h"
#include "base/metrics.h"
#include "io/file.h"
#include "io/loop.h"
#include "recorder/files.h"
#include "recorder/format.h"
#include "recorder/limits.h"
#include "recorder/record.h"
#include "recorder/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::recorder {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class Lines final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*component*/, std::string_view message,
             std::span<const LogField> /*fields*/) override {
    lines.emplace_back(message);
  }
  std::vector<std::string> lines;
};

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "recorder-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~RecorderTest() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::filesystem::path directory() const { return root_ / "recorder"; }
  [[nodiscard]] Recorder::Options options() const {
    return {.directory = directory(),
            .limits = {.bytes_max = kBytesMin, .age_max = 24h},
            .retry_after = 0s};
  }
  void flush(Recorder& recorder) {
    loop_.spawn(recorder.flush());
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }
  // Numbers of the turns, newest first, and the number of lost records.
  [[nodiscard]] std::vector<std::uint64_t> recorded(std::uint64_t* lost = nullptr) const {
    std::vector<std::uint64_t> numbers;
    const Result<ReadDirectory> read = read_directory(directory(), [&](const Story& story) {
      numbers.push_back(story.number);
      return true;
    });
    if (read && lost != nullptr) *lost = read->lost_records;
    return numbers;
  }
  [[nodiscard]] double value_of(const std::string& name) const {
    for (const Metrics::Family& family : metrics_.collect())
      if (family.name == name) return family.samples.front().value;
    return -1;
  }

  Lines lines_;
  Metrics metrics_;
  io::Loop loop_;

 private:
  std::filesystem::path root_;
};

TEST_F(RecorderTest, WritesBehind) {
  Recorder recorder(loop_, options(), metrics_, Log(lines_, "recorder"));
  recorder.record(Turn{.number = 1});
  recorder.record(Turn{.number = 2});
  loop_.run_until([this] { return recorded().size() == 2; });

  EXPECT_THAT(recorded(), ElementsAre(2, 1));
  EXPECT_EQ(value_of("hangar_recorder_records_total"), 2);
  EXPECT_EQ(lines_.lines, std::vector<std::string>());
}

class Seen final : public Observer {
 public:
  void on_turn(const Turn& turn) override { turns.push_back(turn.number); }
  void on_asked(const Asked& asked) override { asked_ids.push_back(asked.id); }
  void on_answered(const Answered& answered) override { answered_ids.push_back(answered.id); }

  std::vector<std::uint64_t> turns;
  std::vector<std::uint64_t> asked_ids;
  std::vector<std::uint64_t> answered_ids;
};

TEST_F(RecorderTest, ShowsWhatHappensToObserversUntilTheyAreForgotten) {
  Recorder recorder(loop_, options(), metrics_, Log());
  Seen seen;
  recorder.observe(seen);

  recorder.record(Turn{.number = 1});
  recorder.record(Asked{.id = 2});
  recorder.record(Answered{.id = 3});
  recorder.forget(seen);
  recorder.record(Turn{.number = 4});

  EXPECT_THAT(seen.turns, ElementsAre(1));
  EXPECT_THAT(seen.asked_ids, ElementsAre(2));
  EXPECT_THAT(seen.answered_ids, ElementsAre(3));
  flush(recorder);
}

// Turns of each guest, each with a write and its answer.
class TenThousandGuests : public RecorderTest {
 protected:
  static constexpr std::size_t kGuests = 10'000;

  TenThousandGuests() { large_.limits.bytes_max = kBytesMax; }

  static void record_turns(Recorder& recorder, std::uint64_t number) {
    for (std::size_t at = 0; at < kGuests; ++at)
      record_turn(recorder, at, number);
  }
  static void record_turn(Recorder& recorder, std::size_t at, std::uint64_t number) {
    const std::string namespace_name = "team-" + std::to_string(at % 100);
    const std::string name = "operator-" + std::to_string(at);
    const Guest guest{.namespace_ = namespace_name, .name = name, .instance = 1};
    recorder.record(Turn{.guest = guest, .number = number, .asked = 1});
    recorder.record(Asked{.guest = guest,
                          .turn = number,
                          .id = number,
                          .at = io::Loop::now(),
                          .verb = Verb::Patch,
                          .resource = "configmaps",
                          .namespace_ = namespace_name,
                          .name = name,
                          .bytes = 100});
    recorder.record(Answered{.guest = guest,
                             .id = number,
                             .at = io::Loop::now(),
                             .status = 200,
                             .has_object = true,
                             .object = {.kind = "ConfigMap",
                                        .namespace_ = namespace_name,
                                        .name = name,
                                        .version = number + 7}});
  }
  // Each flush waits for two seconds at most, which a busy machine may need.
  void flush_all(Recorder& recorder) {
    for (int tries = 0; tries < 10; ++tries)
      flush(recorder);
  }

  // What the files have, without joining records: a turn may be lost and its write not.
  struct Read {
    std::set<std::string> records;  // "<turn, asked or answered> <number> <guest>"
    std::size_t twice = 0;
    std::uint64_t lost = 0;
  };
  [[nodiscard]] Read read_all() const {
    Read found;
    const auto add = [&](const std::string& kind, std::uint64_t number, const Guest& guest) {
      const std::string name = kind + " " + std::to_string(number) + " " + std::string(guest.name);
      if (!found.records.insert(name).second) ++found.twice;
    };
    for (const std::filesystem::path& path : list_files(directory()).value()) {
      const std::string bytes = io::read_file(path, kFileBytesReadMax).value();
      const auto on_record = [&](const Place& /*place*/, const Record& record) {
        if (const auto* const turn = std::get_if<Turn>(&record)) {
          add("turn", turn->number, turn->guest);
        }
        if (const auto* const asked = std::get_if<Asked>(&record)) {
          add("asked", asked->id, asked->guest);
        }
        if (const auto* const answered = std::get_if<Answered>(&record)) {
          add("answered", answered->id, answered->guest);
        }
        if (const auto* const lost = std::get_if<Lost>(&record)) found.lost += lost->count;
        return true;
      };
      EXPECT_EQ(read(bytes, on_record).value().cut, "");
    }
    return found;
  }

  Recorder::Options large_ = options();
};

TEST_F(TenThousandGuests, MayAllRecordATurnAtOnce) {
  Recorder recorder(loop_, large_, metrics_, Log());
  record_turns(recorder, 1);
  flush_all(recorder);

  EXPECT_EQ(value_of("hangar_recorder_lost_total"), 0);
  EXPECT_EQ(value_of("hangar_recorder_records_total"), 3 * kGuests);
  const Read read = read_all();
  EXPECT_EQ(read.records.size(), 3 * kGuests);
  EXPECT_EQ(read.twice, 0U);
  EXPECT_EQ(read.lost, 0U);
  std::size_t whole = 0;
  ASSERT_TRUE(read_directory(directory(), [&](const Story& story) {
    const bool is_whole = story.requests.size() == 1 && story.requests[0].is_write() &&
                          story.requests[0].status == 200 &&
                          story.requests[0].object.name == story.name &&
                          story.requests[0].object.version == 8;
    if (is_whole) ++whole;
    return true;
  }));
  EXPECT_EQ(whole, kGuests);
}

TEST_F(TenThousandGuests, AreRecordedOrCountedAsLost) {
  Recorder recorder(loop_, large_, metrics_, Log());
  // The loop does not run, so nothing that waits is reported as written, and more is recorded than
  // may wait.
  constexpr std::uint64_t kTurns = 4;
  for (std::uint64_t number = 1; number <= kTurns; ++number)
    record_turns(recorder, number);
  flush_all(recorder);
  // The next block tells what is missing.
  recorder.record(Turn{.guest = {.name = "last"}, .number = 1});
  flush_all(recorder);

  const auto lost = static_cast<std::uint64_t>(value_of("hangar_recorder_lost_total"));
  const auto kept = static_cast<std::uint64_t>(value_of("hangar_recorder_records_total"));
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(kept + lost, 3 * kTurns * kGuests + 1);
  const Read read = read_all();
  EXPECT_EQ(read.records.size(), kept);
  EXPECT_EQ(read.twice, 0U);
  EXPECT_EQ(read.lost, lost);
  std::uint64_t told = 0;
  EXPECT_FALSE(recorded(&told).empty());
  EXPECT_EQ(told, lost);
}

TEST_F(RecorderTest, HasWrittenAllAfterAFlush) {
  Recorder recorder(loop_, options(), metrics_, Log(lines_, "recorder"));
  for (std::uint64_t number = 1; number <= 3000; ++number)
    recorder.record(Turn{.number = number});
  flush(recorder);

  EXPECT_EQ(recorded().size(), 3000U);
}

TEST_F(RecorderTest, SaysOnceThatItCannotWriteAndGoesOn) {
  // A file in place of the directory is an obstacle for root, too.
  std::ofstream(directory()) << "in the way";
  Recorder recorder(loop_, options(), metrics_, Log(lines_, "recorder"));
  recorder.record(Turn{.number = 1});
  flush(recorder);
  recorder.record(Turn{.number = 2});
  flush(recorder);
  EXPECT_THAT(lines_.lines, ElementsAre("turns are not recorded"));
  EXPECT_EQ(value_of("hangar_recorder_stopped"), 1);
  EXPECT_EQ(value_of("hangar_recorder_lost_total"), 2);

  std::filesystem::remove(directory());
  recorder.record(Turn{.number = 3});
  flush(recorder);
  EXPECT_THAT(lines_.lines, ElementsAre("turns are not recorded", "turns are recorded again"));
  EXPECT_EQ(value_of("hangar_recorder_stopped"), 0);
  std::uint64_t lost = 0;
  EXPECT_THAT(recorded(&lost), ElementsAre(3));
  EXPECT_EQ(lost, 2U);

  // The loss is reported only once.
  recorder.record(Turn{.number = 4});
  flush(recorder);
  EXPECT_THAT(recorded(&lost), ElementsAre(4, 3));
  EXPECT_EQ(lost, 2U);
}

TEST_F(RecorderTest, LeavesRoomForOthersWhenOneNamespaceIsFasterThanTheDisk) {
  Recorder recorder(loop_, options(), metrics_, Log(lines_, "recorder"));
  // The loop does not run, so no waiting bytes are reported as written.
  const std::string text(500, 'x');
  std::uint64_t number = 0;
  const auto ask = [&](std::string_view namespace_) {
    const std::string path = std::to_string(++number) + text;
    recorder.record(Asked{.guest = {.namespace_ = namespace_, .name = "one"}, .path = path});
  };
  while (number * text.size() < kWaitingBytesMax * 4 / 10)
    ask("loud");
  EXPECT_EQ(value_of("hangar_recorder_lost_total"), 0);
  while (number * text.size() < kWaitingBytesMax)
    ask("loud");
  const double lost = value_of("hangar_recorder_lost_total");
  EXPECT_GT(lost, 0);

  // Another namespace may use half of the remaining bytes.
  for (int i = 0; i < 500; ++i)
    ask("shy");
  EXPECT_EQ(value_of("hangar_recorder_lost_total"), lost);
  // It has its whole share again after the write.
  flush(recorder);
  loop_.run_until([this] { return value_of("hangar_recorder_bytes") > 0; });
  ask("loud");
  EXPECT_EQ(value_of("hangar_recorder_lost_total"), lost);
}

TEST_F(RecorderTest, CountsWhatNamespacesGiveUp) {
  Recorder recorder(loop_, options(), metrics_, Log(lines_, "recorder"));
  recorder.record(Turn{.guest = {.namespace_ = "shy"}, .number = 1});
  EXPECT_EQ(value_of("hangar_recorder_given_up_total"), 0);
  const std::string text(500, 'x');
  for (std::uint64_t bytes = 0; bytes < 2 * kBytesMin; bytes += text.size()) {
    const std::string path = std::to_string(bytes) + text;
    recorder.record(Asked{.guest = {.namespace_ = "loud"}, .path = path});
    if (bytes % 50'000 == 0) flush(recorder);
  }
  recorder.record(Turn{.guest = {.namespace_ = "loud"}, .number = 2});
  flush(recorder);

  EXPECT_THAT(recorded(), ElementsAre(2, 1));
  EXPECT_GT(value_of("hangar_recorder_given_up_total"), 0);
  EXPECT_EQ(value_of("hangar_recorder_lost_total"), 0);
}

TEST_F(RecorderTest, RecordsBodiesWithoutWhatLooksSecret) {
  const SecretNames secrets = {{"shop", "login"}};
  const Guest guest{.namespace_ = "shop", .name = "web", .instance = 3};
  {
    Recorder recorder(loop_, options(), metrics_, Log(lines_, "recorder"));
    recorder.record(Turn{.guest = guest, .number = 1});
    recorder.record(
        Asked{.guest = guest, .turn = 1, .id = 7, .verb = Verb::Update},
        {.bytes = R"({"data":{"plain":"seen","password":"hunter2"}})", .secrets = secrets});
    recorder.record(Asked{.guest = guest, .turn = 1, .id = 8}, {.bytes = "no", .secrets = {}});
    const std::string large(kBodyReadBytesMax + 1, ' ');
    recorder.record(Asked{.guest = guest, .turn = 1, .id = 9}, {.bytes = large, .secrets = {}});
    recorder.record(Asked{.guest = guest, .turn = 1, .id = 10});
    flush(recorder);
  }
  std::vector<Request> requests;
  ASSERT_TRUE(read_directory(directory(), [&](const Story& story) {
    requests = story.requests;
    return true;
  }));
  ASSERT_EQ(requests.size(), 4U);
  ASSERT_TRUE(requests[0].body && requests[1].body && requests[2].body);
  EXPECT_EQ(requests[0].body->state, BodyState::Whole);
  EXPECT_THAT(requests[0].body->text,
              MatchesRegex(R"(.*"plain":"seen","password":"hmac:[0-9a-f]{16}".*)"));
  EXPECT_EQ(requests[0].body->secrets, secrets);
  EXPECT_EQ(requests[1].body->state, BodyState::Unreadable);
  EXPECT_EQ(requests[2].body->state, BodyState::TooLarge);
  EXPECT_FALSE(requests[3].body);
  EXPECT_EQ(value_of("hangar_recorder_records_total"), 8);
  for (const std::filesystem::path& path : list_files(directory()).value())
    EXPECT_THAT(io::read_file(path, kFileBytesReadMax).value(), Not(HasSubstr("hunter2")));
}

TEST_F(RecorderTest, LeavesOutBodiesBeforeItLosesRecords) {
  Recorder recorder(loop_, options(), metrics_, Log(lines_, "recorder"));
  // The loop does not run, so nothing that waits is reported as written.
  const std::string body = R"({"a":")" + std::string(60'000, 'x') + R"("})";
  const Guest loud{.namespace_ = "loud", .name = "one"};
  recorder.record(Turn{.guest = loud, .number = 1});
  std::uint64_t id = 0;
  for (std::uint64_t bytes = 0; bytes < 2 * kWaitingBytesMax; bytes += body.size())
    recorder.record(Asked{.guest = loud, .turn = 1, .id = ++id}, {.bytes = body, .secrets = {}});
  EXPECT_EQ(value_of("hangar_recorder_lost_total"), 0);
  recorder.record(Turn{.guest = {.namespace_ = "shy"}, .number = 2});
  for (int tries = 0; tries < 10; ++tries)
    flush(recorder);

  std::size_t whole = 0;
  std::size_t left_out = 0;
  ASSERT_TRUE(read_directory(directory(), [&](const Story& story) {
    for (const Request& request : story.requests) {
      if (!request.body) continue;
      (request.body->state == BodyState::NoRoom ? left_out : whole) += 1;
    }
    return true;
  }));
  EXPECT_GT(whole, 5U);
  EXPECT_GT(left_out, 5U);
  EXPECT_EQ(whole + left_out, id);
}

TEST_F(RecorderTest, DoesNotTryAgainAtOnce) {
  std::ofstream(directory()) << "in the way";
  Recorder::Options slow = options();
  slow.retry_after = 24h;
  Recorder recorder(loop_, slow, metrics_, Log(lines_, "recorder"));
  recorder.record(Turn{.number = 1});
  flush(recorder);
  std::filesystem::remove(directory());
  recorder.record(Turn{.number = 2});
  flush(recorder);

  EXPECT_EQ(value_of("hangar_recorder_lost_total"), 2);
  EXPECT_THAT(lines_.lines, ElementsAre("turns are not recorded"));
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

}  // namespace
}  // namespace hangar::recorder
