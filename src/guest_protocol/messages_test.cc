#include "guest_protocol/messages.h"

#include "base/result.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/zygote_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::guest_protocol {
namespace {

const std::vector<ToGuest> kToGuest = {
    LoadModule{.module = 7},
    DropModule{.module = 7},
    BeginRun{.run = 1,
             .module = 7,
             .contract = Contract::Converter,
             .tenant = "team",
             .consumer = "Backend/web",
             .arguments = {"release", "", "-v"},
             .environment = {"A=b"},
             .stdin_bytes = std::string("a\0b", 3),
             .timeout_nanoseconds = -1,
             .memory_bytes_max = 512,
             .memory_bytes = 64},
    Found{.run = 1, .state = 3, .body = "{}"},
    MemoryAnswer{.run = 1, .refusal = "the host has no more"},
    CancelRun{.run = 1},
    Ping{},
    LoadSleepable{.module = 7,
                  .digest = std::string(kDigestBytes, 'd'),
                  .obstacle = "writes to a table",
                  .global_count = 2,
                  .has_start = true,
                  .image_number = 3,
                  .image_pages = {{.first = 1, .count = 2}, {.first = 9, .count = 1}}},
    MakeGuest{.guest = 5,
              .module = 7,
              .tenant = "team",
              .consumer = "operator/mirror",
              .bounds = {.memory_bytes_max = 1, .cpu_nanoseconds_max = 2, .output_bytes_max = 3},
              .arguments = {"mirror"},
              .environment = {"A=b"},
              .files = {{.path = "/key", .content = "value"}},
              .pod_environment = {"C=d"},
              .pod_files = {{.path = "/token", .content = ""}}},
    ResumeGuest{.guest = 5,
                .module = 7,
                .tenant = "team",
                .consumer = "operator/mirror",
                .bounds = {.memory_bytes_max = 1},
                .snapshot_bytes = 4,
                .slept_nanoseconds = -1,
                .layer = {{.first = 1, .count = 2}, {.first = 9, .count = 1}}},
    HandWakeup{
        .guest = 5, .id = 1, .finished = true, .is_null = true, .is_event = true, .bytes = "x"},
    BeginTurn{.run = 1, .guest = 5, .forgotten = {3}, .inbound_count = 1, .memory_bytes = 64},
    SleepGuest{.run = 1, .guest = 5, .layer_pages_max = 2048},
    DropGuest{.guest = 5},
    Piece{.run = 1, .bytes = "piece"},
    Kept{.run = 1, .refusal = "the disk is full"},
    LoadMachine{.machine = 4,
                .module = 7,
                .shape = MachineShape::HandleEvent,
                .bundle = "code",
                .function = "_start",
                .allocator = "malloc",
                .returns = MachineReturns::AddressAndSize,
                .has_initialize = true,
                .has_initial_state = true,
                .initial_state = MachineReturns::Nothing,
                .cpu_nanoseconds_max = 2,
                .memory_bytes_max = 3},
    DropMachine{.machine = 4},
    AskMachine{.run = 1,
               .machine = 4,
               .request = MachineRequest::Begin,
               .first = "{}",
               .second = "[]",
               .tenant = "team",
               .consumer = "workflow/web",
               .memory_bytes = 64},
    ForgetBeginnings{},
};

const std::vector<FromGuest> kFromGuest = {
    LookUp{.run = 1, .name = "web", .namespace_ = "", .kind = "Secret", .api_version = "v1"},
    MapKind{.run = 1, .group_or_api_version = "apps", .kind = "Deployment"},
    AskMemory{.run = 1, .bytes = std::uint64_t{1} << 33U},
    EndRun{.run = 1,
           .is_error = true,
           .kind = ErrorKind::Corrupt,
           .reason = "because",
           .exit_code = 3,
           .stdout_bytes = "out",
           .stderr_bytes = "err",
           .cpu_nanoseconds = 5,
           .memory_bytes = 6},
    Pong{},
    TurnCall{.run = 1, .id = 2, .is_stream = true, .request = "request"},
    TurnAnswer{.run = 1, .id = 2, .answer = "answer"},
    EndTurn{.run = 1,
            .is_error = true,
            .kind = ErrorKind::LimitExceeded,
            .reason = "because",
            .has_exited = true,
            .exit_code = 3,
            .delays = {{.id = 4, .milliseconds = 5}, {.id = 6, .milliseconds = 7}},
            .cancelled = {1, 2},
            .serves_metrics = true,
            .metrics_id = 8,
            .serves_webhooks = true,
            .webhooks_id = 9,
            .next_id = 9,
            .output = {{.is_stderr = true, .text = "line"}, {.is_stderr = false, .text = ""}},
            .output_dropped_bytes = 10,
            .resume_nanoseconds = 11,
            .resume_cpu_nanoseconds = 12,
            .cpu_nanoseconds = 13,
            .resident_bytes = 14},
    AskPiece{.run = 1},
    KeepPiece{.run = 1, .total_bytes = 5, .bytes = "piece"},
    EndSleep{.run = 1,
             .is_error = true,
             .reason = "because",
             .memory_bytes = 6,
             .is_on_layer = true,
             .cpu_nanoseconds = 7},
    MakeLayer{.run = 1, .pieces = {{.first = 1, .count = 2}, {.first = 9, .count = 1}}},
    KeepPages{.run = 1, .pages = {{.first = 2, .count = 1}}, .bytes = "page"},
};

const EndRun kLargest{.reason = std::string(kReasonBytesMax, 'r'),
                      .stdout_bytes = std::string(kOutputBytesMax, 'o'),
                      .stderr_bytes = std::string(kErrorOutputBytesMax, 'e')};

Result<FromGuest> decode_whole(std::string_view bytes) {
  return decode_from_guest(static_cast<std::uint8_t>(bytes[kFrameHeaderBytes - 1]),
                           bytes.substr(kFrameHeaderBytes));
}

std::uint8_t type_of(std::string_view bytes) {
  return static_cast<std::uint8_t>(bytes[kFrameHeaderBytes - 1]);
}

TEST(GuestMessages, AreReadAsTheyWereWritten) {
  for (const ToGuest& message : kToGuest) {
    SCOPED_TRACE(message.index());
    const std::string bytes = encode(message);
    const auto read = decode_to_guest(type_of(bytes), bytes.substr(kFrameHeaderBytes));
    ASSERT_TRUE(read.has_value()) << read.error().message();
    EXPECT_TRUE(*read == message);
  }
  for (const FromGuest& message : kFromGuest) {
    SCOPED_TRACE(message.index());
    const auto read = decode_whole(encode(message));
    ASSERT_TRUE(read.has_value()) << read.error().message();
    EXPECT_TRUE(*read == message);
  }
}

TEST(GuestMessages, ThatAreCutAreRefusedWhereverItWas) {
  for (const FromGuest& message : kFromGuest) {
    const std::string bytes = encode(message);
    for (std::size_t size = kFrameHeaderBytes; size < bytes.size(); ++size) {
      SCOPED_TRACE(size);
      const auto read = decode_whole(std::string_view(bytes).substr(0, size));
      ASSERT_FALSE(read.has_value());
      EXPECT_EQ(read.error().kind(), ErrorKind::InvalidInput);
    }
  }
}

TEST(GuestMessages, ThatGoOnAreRefused) {
  for (const FromGuest& message : kFromGuest)
    EXPECT_FALSE(decode_whole(encode(message) + '\0').has_value());
}

// A flipped bit gives another value or a refusal: no two encodings have the same meaning.
TEST(GuestMessages, WithAnyBitFlippedAreAnotherMessageOrNone) {
  for (const FromGuest& message : kFromGuest) {
    const std::string bytes = encode(message);
    for (std::size_t bit = 8 * (kFrameHeaderBytes - 1); bit < 8 * bytes.size(); ++bit) {
      SCOPED_TRACE(bit);
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ static_cast<char>(1U << (bit % 8)));
      const auto read = decode_whole(flipped);
      if (!read) continue;
      EXPECT_FALSE(*read == message);
      EXPECT_EQ(encode(*read).substr(kFrameHeaderBytes), flipped.substr(kFrameHeaderBytes));
    }
  }
}

TEST(GuestMessages, HaveTextsUpToTheirBoundsAndNotBeyond) {
  EXPECT_TRUE(decode_whole(encode(FromGuest(kLargest))).has_value());
  for (std::string EndRun::* text :
       {&EndRun::reason, &EndRun::stdout_bytes, &EndRun::stderr_bytes}) {
    EndRun larger = kLargest;
    (larger.*text) += 'x';
    EXPECT_FALSE(decode_whole(encode(FromGuest(larger))).has_value());
  }
  const LookUp longest{.name = std::string(kNameBytesMax, 'n')};
  EXPECT_TRUE(decode_whole(encode(FromGuest(longest))).has_value());
  const LookUp longer{.name = std::string(kNameBytesMax + 1, 'n')};
  EXPECT_FALSE(decode_whole(encode(FromGuest(longer))).has_value());
}

TEST(GuestMessages, HaveListsUpToTheirBoundsAndNotBeyond) {
  EndTurn largest{.delays = std::vector<EndTurn::Delay>(kTurnDelaysMax),
                  .cancelled = std::vector<std::uint64_t>(kTurnCancelledMax),
                  .output = std::vector<EndTurn::Line>(kTurnLinesMax)};
  EXPECT_TRUE(decode_whole(encode(FromGuest(largest))).has_value());
  EndTurn delays = largest;
  delays.delays.emplace_back();
  EXPECT_FALSE(decode_whole(encode(FromGuest(delays))).has_value());
  EndTurn cancelled = largest;
  cancelled.cancelled.emplace_back();
  EXPECT_FALSE(decode_whole(encode(FromGuest(cancelled))).has_value());
  largest.output.emplace_back();
  EXPECT_FALSE(decode_whole(encode(FromGuest(largest))).has_value());
}

TEST(GuestMessages, FitTheFramesOfTheirDirection) {
  const EndTurn turn{
      .reason = std::string(kReasonBytesMax, 'r'),
      .delays = std::vector<EndTurn::Delay>(kTurnDelaysMax),
      .cancelled = std::vector<std::uint64_t>(kTurnCancelledMax),
      .output = std::vector<EndTurn::Line>(
          kTurnLinesMax,
          {.is_stderr = false, .text = std::string(kTurnOutputBytesMax / kTurnLinesMax, 'x')})};
  EXPECT_LE(encode(FromGuest(turn)).size() - kFrameHeaderBytes, kFromGuestBytesMax);
  const TurnCall call{.request = std::string(kRequestBytesMax, 'x')};
  EXPECT_LE(encode(FromGuest(call)).size() - kFrameHeaderBytes, kFromGuestBytesMax);
  const HandWakeup wakeup{.bytes = std::string(kWakeupBytesMax, 'x')};
  EXPECT_LE(encode(ToGuest(wakeup)).size() - kFrameHeaderBytes, kToGuestBytesMax);
  EXPECT_LE(encode(FromGuest(kLargest)).size() - kFrameHeaderBytes, kFromGuestBytesMax);
  const AskMachine question{.first = std::string(kQuestionBytesMax, 'x'),
                            .second = std::string(kQuestionBytesMax, 'x')};
  EXPECT_LE(encode(ToGuest(question)).size() - kFrameHeaderBytes, kToGuestBytesMax);
  const LoadMachine machine{.bundle = std::string(kBundleBytesMax, 'x')};
  EXPECT_LE(encode(ToGuest(machine)).size() - kFrameHeaderBytes, kToGuestBytesMax);
  const BeginRun largest{.arguments = {std::string(kTextBytesMax, 'a')},
                         .environment = {std::string(kTextBytesMax, 'e')},
                         .stdin_bytes = std::string(kStdinBytesMax, 's')};
  EXPECT_LE(encode(ToGuest(largest)).size() - kFrameHeaderBytes, kToGuestBytesMax);
}

TEST(GuestMessages, HaveReasonsThatAreCut) {
  EXPECT_EQ(cut_reason("short"), "short");
  EXPECT_EQ(cut_reason(std::string(kReasonBytesMax, 'r')).size(), kReasonBytesMax);
  const std::string cut = cut_reason(std::string(kReasonBytesMax + 1, 'r'));
  EXPECT_EQ(cut.size(), kReasonBytesMax);
  EXPECT_TRUE(cut.ends_with(" ..."));
}

TEST(ZygoteMessages, AreReadAsTheyWereWrittenAndNothingElseIs) {
  const std::vector<FromZygote> all = {
      Standing{.landlock_version = 6, .has_system_call_filter = true},
      ProcessEnded{.process = 3, .status = 9, .memory_bytes = 4},
      ForkFailed{.process = 3, .error_number = 11}, ProcessMemory{.process = 3, .memory_bytes = 5}};
  for (const FromZygote& message : all) {
    const std::string packet = encode(message);
    ASSERT_LE(packet.size(), kZygotePacketBytesMax);
    const auto read = decode_from_zygote(packet);
    ASSERT_TRUE(read.has_value()) << read.error().message();
    EXPECT_TRUE(*read == message);
    for (std::size_t size = 0; size < packet.size(); ++size)
      EXPECT_FALSE(decode_from_zygote(packet.substr(0, size)).has_value());
  }
  const ToZygote fork = ForkProcess{.process = 3, .thread_count = 2, .memory_bytes_max = 1};
  const auto read = decode_to_zygote(encode(fork));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(*read == fork);
}

TEST(Frames, AreWholeHoweverTheyArrive) {
  std::string all;
  for (const FromGuest& message : kFromGuest)
    all += encode(message);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);

  Frames frames(kFromGuestBytesMax);
  std::vector<FromGuest> read;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t size = std::min<std::size_t>(random() % 40, all.size() - at);
    frames.add(std::string_view(all).substr(at, size));
    at += size;
    while (true) {
      const auto frame = frames.next();
      ASSERT_TRUE(frame.has_value());
      if (!*frame) break;
      read.push_back(decode_from_guest((*frame)->type, (*frame)->payload).value());
    }
  }

  EXPECT_TRUE(read == kFromGuest);
  EXPECT_EQ(frames.waiting_bytes(), 0U);
}

TEST(Frames, ThatAreAnnouncedTooLargeAreRefusedBeforeTheyArrive) {
  const auto announce = [](std::uint32_t size) {
    std::string bytes(kFrameHeaderBytes, '\1');
    std::memcpy(bytes.data(), &size, sizeof size);
    return bytes;
  };
  Frames allowed(100);
  allowed.add(announce(100));
  const auto waits = allowed.next();
  ASSERT_TRUE(waits.has_value());
  EXPECT_FALSE(waits->has_value());

  Frames refused(100);
  refused.add(announce(101));
  EXPECT_FALSE(refused.next().has_value());
  EXPECT_FALSE(refused.next().has_value());
}

}  // namespace
}  // namespace hangar::guest_protocol
