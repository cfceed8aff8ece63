#include "domains/guest_process.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "budget/slices.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/messages.h"
#include "io/cpu_time.h"
#include "io/local_message.h"
#include "io/loop.h"
#include "io/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::domains {
namespace {

namespace protocol = guest_protocol;

class GuestProcessTest : public testing::Test {
 public:
  GuestProcessTest() {
    make({}, [this](protocol::FromGuest message) { heard_.push_back(std::move(message)); });
  }
  ~GuestProcessTest() override {
    process_.reset();
    // What waited for its turn ends before the slices do.
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
    if (peer_ >= 0) ::close(peer_);
  }
  // Answers each lookup at once with `body`.
  void make_answering(std::string body, protocol::Conversation::Patience patience = {}) {
    make(patience, [this, body = std::move(body)](protocol::FromGuest message) {
      const auto* const question = std::get_if<protocol::LookUp>(&message);
      if (question != nullptr) process_->answer({.run = question->run, .body = body});
      heard_.push_back(std::move(message));
    });
  }
  GuestProcessTest(const GuestProcessTest&) = delete;
  GuestProcessTest& operator=(const GuestProcessTest&) = delete;

  void make(protocol::Conversation::Patience patience,
            std::function<void(protocol::FromGuest)> on_message) {
    if (peer_ >= 0) ::close(peer_);
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    peer_ = ends[1];
    process_ = std::make_unique<GuestProcess>(
        loop_, slices_, budget::Tenant::of_namespace("team"), ends[0], patience,
        GuestProcess::Events{.on_message = [on_message = std::move(on_message)](
                                               protocol::FromGuest message) -> Result<> {
                               on_message(std::move(message));
                               return {};
                             },
                             .on_over =
                                 [this](std::optional<Error> breach) {
                                   is_over_ = true;
                                   breach_ = std::move(breach);
                                 }});
  }
  // Sends as the process would.
  void send(const std::string& bytes, int descriptor = -1) const {
    ASSERT_EQ(io::send_local(peer_, bytes, descriptor), static_cast<ssize_t>(bytes.size()));
  }

 protected:
  io::Loop loop_;
  budget::Rates rates_;
  budget::Slices slices_{loop_, &rates_};
  int peer_ = -1;
  std::vector<protocol::FromGuest> heard_;
  bool is_over_ = false;
  std::optional<Error> breach_;
  std::unique_ptr<GuestProcess> process_;
};

TEST_F(GuestProcessTest, TakesNoDescriptorThatItIsHandedOver) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  process_->begin(1, protocol::BeginRun{.run = 1}, {});
  send(protocol::encode(protocol::FromGuest(protocol::EndRun{.run = 1})), pipe[1]);
  ::close(pipe[1]);

  loop_.run_until([this] { return !heard_.empty(); });

  // No process holds the other end: the kernel closed the descriptor on arrival.
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0);
  ::close(pipe[0]);
}

TEST_F(GuestProcessTest, HearsMessagesInPieces) {
  process_->begin(1, protocol::BeginRun{.run = 1}, {});
  const std::string bytes = protocol::encode(
      protocol::FromGuest(protocol::EndRun{.run = 1, .stdout_bytes = std::string(100'000, 'x')}));
  std::size_t sent = 0;
  io::Loop::Timer timer;
  const std::function<void()> go_on = [&] {
    send(bytes.substr(sent, 30'000));
    sent += 30'000;
    if (sent < bytes.size()) timer = loop_.after(Duration(1), go_on);
  };
  go_on();

  loop_.run_until([this] { return !heard_.empty(); });

  EXPECT_EQ(std::get<protocol::EndRun>(heard_.front()).stdout_bytes.size(), 100'000U);
  EXPECT_FALSE(is_over_);
}

TEST_F(GuestProcessTest, IsOverWhenTheOtherEndIsClosed) {
  ::close(std::exchange(peer_, -1));

  loop_.run_until([this] { return is_over_; });

  EXPECT_FALSE(breach_.has_value());
}

TEST_F(GuestProcessTest, IsOverAfterABreachAndHearsNoMore) {
  const std::string pong = protocol::encode(protocol::FromGuest(protocol::Pong{}));
  send(pong + pong);

  loop_.run_until([this] { return is_over_; });

  ASSERT_TRUE(breach_.has_value());
  EXPECT_EQ(breach_->kind(), ErrorKind::GuestFault);
  EXPECT_TRUE(heard_.empty());
}

TEST_F(GuestProcessTest, BeginsNoMessageWhileNoRunIsInProgress) {
  const std::string end = protocol::encode(
      protocol::FromGuest(protocol::EndRun{.run = 1, .stdout_bytes = std::string(10'000, 'x')}));
  process_->begin(1, protocol::BeginRun{.run = 1}, {});
  send(end);
  loop_.run_until([this] { return !heard_.empty(); });
  EXPECT_FALSE(is_over_);

  send(end.substr(0, 1000));

  loop_.run_until([this] { return is_over_; });
  ASSERT_TRUE(breach_.has_value());
  EXPECT_THAT(breach_->message(), testing::HasSubstr("while no run was in progress"));
}

TEST_F(GuestProcessTest, HearsManyMessagesWhileOthersHaveTheirTurn) {
  process_->begin(1, protocol::BeginRun{.run = 1}, {.memory_bytes_max = 1});
  std::string bytes;
  for (int count = 0; count < 1000; ++count)
    bytes += protocol::encode(protocol::FromGuest(protocol::AskMemory{.run = 1, .bytes = 1}));
  send(bytes);

  loop_.run_until([this] { return !heard_.empty(); });
  const std::size_t heard_at_once = heard_.size();
  loop_.run_until([this] { return heard_.size() == 1000; });

  EXPECT_LT(heard_at_once, 100U);
  EXPECT_FALSE(is_over_);
}

// Sends messages of a process at once and records in `heard`, for each message, its tenant.
class Sender {
 public:
  Sender(io::Loop& loop, budget::Slices& slices, std::string tenant,
         std::vector<std::string>& heard) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    peer_ = ends[1];
    process_ = std::make_unique<GuestProcess>(
        loop, slices, budget::Tenant::of_namespace(tenant), ends[0],
        protocol::Conversation::Patience{},
        GuestProcess::Events{.on_message = [tenant, &heard](const auto& /*message*/) -> Result<> {
                               heard.push_back(tenant);
                               return {};
                             },
                             .on_over = [](const auto& /*breach*/) { ADD_FAILURE(); }});
    process_->begin(1, protocol::BeginRun{.run = 1}, {.memory_bytes_max = 1});
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() { ::close(peer_); }

  void send(int count) const {
    std::string bytes;
    for (int index = 0; index < count; ++index)
      bytes += protocol::encode(protocol::FromGuest(protocol::AskMemory{.run = 1, .bytes = 1}));
    ASSERT_EQ(io::send_local(peer_, bytes), static_cast<ssize_t>(bytes.size()));
  }

 private:
  int peer_ = -1;
  std::unique_ptr<GuestProcess> process_;
};

TEST_F(GuestProcessTest, TenantsTakeTurnsHoweverManyProcessesOfOneSendMessages) {
  std::vector<std::string> heard;
  std::vector<std::unique_ptr<Sender>> greedy;
  for (int count = 0; count < 8; ++count) {
    greedy.push_back(std::make_unique<Sender>(loop_, slices_, "greedy", heard));
    greedy.back()->send(1000);
  }
  const Sender modest(loop_, slices_, "modest", heard);
  constexpr int kTurn = 32;
  constexpr int kTurns = 4;
  modest.send(kTurns * kTurn);

  loop_.run_until([&heard] { return std::ranges::count(heard, "modest") == kTurns * kTurn; });

  const auto first = std::ranges::find(heard, "modest");
  EXPECT_LE(std::count(first, heard.end(), "greedy"), (kTurns + 1) * kTurn);
}

TEST_F(GuestProcessTest, ChargesTheTenantWithTheTimeOfItsMessages) {
  constexpr std::chrono::milliseconds kWork{2};
  make({}, [&](protocol::FromGuest message) {
    const Duration end = io::thread_cpu_time() + kWork;
    while (io::thread_cpu_time() < end) {
    }
    heard_.push_back(std::move(message));
  });
  process_->begin(1, protocol::BeginRun{.run = 1}, {.memory_bytes_max = 1});
  send(protocol::encode(protocol::FromGuest(protocol::AskMemory{.run = 1, .bytes = 1})));

  loop_.run_until([this] { return !heard_.empty(); });

  EXPECT_GE(rates_.use_of(budget::Tenant::of_namespace("team"), io::Loop::now()).total, kWork);
}

TEST_F(GuestProcessTest, IsNotSilentWhileItsAnswerWaitsForItsTurn) {
  static constexpr std::chrono::milliseconds kSilence{20};
  make({.quiet_max = std::chrono::milliseconds(1), .silence_max = kSilence},
       [this](protocol::FromGuest message) { heard_.push_back(std::move(message)); });
  process_->begin(1, protocol::BeginRun{.run = 1}, {});
  const std::string ping = protocol::encode(protocol::ToGuest(protocol::Ping{}));
  std::string bytes(1000, '\0');
  std::vector<int> none;
  // The ping comes after the order to begin.
  loop_.run_until([&] {
    const ssize_t size = io::receive_local(peer_, bytes, none, io::Waiting::No);
    return size > 0 && bytes.starts_with(ping) && static_cast<std::size_t>(size) == ping.size();
  });
  // The host's own work goes first. Of two jobs, one is always waiting.
  std::size_t heard_meanwhile = 1;
  const auto hold_up = [](budget::Slices& slices, const std::vector<protocol::FromGuest>& heard,
                          std::size_t& least) -> io::Task<void> {
    budget::Slices::Job job = slices.begin(budget::Tenant::host());
    const Instant end = io::Loop::now() + 5 * kSilence;
    while (io::Loop::now() < end) {
      EXPECT_TRUE((co_await job.turn({})).has_value());
      job.add(budget::kSliceBytes);
    }
    least = std::min(least, heard.size());
  };
  loop_.spawn(hold_up(slices_, heard_, heard_meanwhile));
  loop_.spawn(hold_up(slices_, heard_, heard_meanwhile));
  send(protocol::encode(protocol::FromGuest(protocol::Pong{})));

  loop_.run_until([this] { return !heard_.empty() || is_over_; });

  EXPECT_EQ(heard_meanwhile, 0U) << "it had no turn";
  EXPECT_FALSE(is_over_);
}

TEST_F(GuestProcessTest, IsNotHeardWhileItDoesNotReadItsAnswers) {
  make_answering(std::string(limits::kMiB, 'x'));
  process_->begin(1, protocol::BeginRun{.run = 1}, {});
  const std::string question = protocol::encode(protocol::FromGuest(protocol::LookUp{.run = 1}));
  constexpr std::size_t kAsked = 64;
  for (std::size_t count = 0; count < kAsked; ++count)
    send(question);
  io::Loop::Timer timer;
  bool is_quiet = false;
  loop_.run_until([this] { return !heard_.empty(); });
  timer = loop_.after(std::chrono::milliseconds(50), [&is_quiet] { is_quiet = true; });
  loop_.run_until([&is_quiet] { return is_quiet; });

  EXPECT_LT(heard_.size(), 8U);

  // The host continues once the process reads.
  std::string read(limits::kMiB, '\0');
  std::vector<int> none;
  while (heard_.size() < kAsked) {
    while (io::receive_local(peer_, read, none, io::Waiting::No) > 0) {
    }
    bool has_turned = false;
    loop_.post([&has_turned] { has_turned = true; });
    loop_.run_until([&has_turned] { return has_turned; });
  }
  EXPECT_FALSE(is_over_);
}

TEST_F(GuestProcessTest, ThatNeverReadsItsAnswersIsSilent) {
  make_answering(std::string(limits::kMiB, 'x'), {.quiet_max = std::chrono::milliseconds(20),
                                                  .silence_max = std::chrono::milliseconds(200)});
  process_->begin(1, protocol::BeginRun{.run = 1}, {});
  const std::string question = protocol::encode(protocol::FromGuest(protocol::LookUp{.run = 1}));
  io::Loop::Timer timer;
  const std::function<void()> ask_again = [&] {
    // Until the sender's own end is full.
    static_cast<void>(io::send_local(peer_, question));
    timer = loop_.after(Duration(1), ask_again);
  };
  ask_again();

  loop_.run_until([this] { return is_over_; });

  ASSERT_TRUE(breach_.has_value());
  EXPECT_NE(breach_->message().find("did not answer"), std::string::npos) << breach_->message();
}

TEST_F(GuestProcessTest, IsRemindedOfLittleThatItHasNotRead) {
  constexpr std::size_t kReminders = 100'000;
  for (std::size_t count = 0; count < kReminders; ++count)
    process_->remind(protocol::ForgetBeginnings{});

  std::string into(limits::kMiB, '\0');
  std::vector<int> none;
  std::size_t read_bytes = 0;
  // Until nothing has come in many turns of the loop, which would send what waits.
  for (std::size_t empty_turns = 0; empty_turns < 100;) {
    const ssize_t size = io::receive_local(peer_, into, none, io::Waiting::No);
    empty_turns = size > 0 ? 0 : empty_turns + 1;
    if (size > 0) read_bytes += static_cast<std::size_t>(size);
    bool has_turned = false;
    loop_.post([&has_turned] { has_turned = true; });
    loop_.run_until([&has_turned] { return has_turned; });
  }

  EXPECT_GT(read_bytes, 0U);
  const std::string order = protocol::encode(protocol::ToGuest(protocol::ForgetBeginnings{}));
  EXPECT_LT(read_bytes, kReminders * order.size() / 2);
}

TEST_F(GuestProcessTest, EndsNoRunBeforeItHasReadItsOrder) {
  // More than a socket takes.
  process_->begin(
      1, protocol::BeginRun{.run = 1, .stdin_bytes = std::string(8 * limits::kMiB, 'x')}, {});

  send(protocol::encode(protocol::FromGuest(protocol::EndRun{.run = 1})));
  loop_.run_until([this] { return is_over_ || !heard_.empty(); });

  EXPECT_TRUE(heard_.empty());
  ASSERT_TRUE(breach_.has_value());
  EXPECT_EQ(breach_->kind(), ErrorKind::GuestFault);
}

TEST_F(GuestProcessTest, EndsARunOnceItHasReadItsOrder) {
  const protocol::BeginRun order{.run = 1, .stdin_bytes = std::string(8 * limits::kMiB, 'x')};
  process_->begin(order.run, order, {});
  std::string into(limits::kMiB, '\0');
  std::vector<int> none;
  std::size_t rest = protocol::encode(protocol::ToGuest(order)).size();
  while (rest > 0) {
    const ssize_t size = io::receive_local(peer_, into, none, io::Waiting::No);
    if (size > 0) rest -= static_cast<std::size_t>(size);
    bool has_turned = false;
    loop_.post([&has_turned] { has_turned = true; });
    loop_.run_until([&has_turned] { return has_turned; });
  }

  send(protocol::encode(protocol::FromGuest(protocol::EndRun{.run = 1})));
  loop_.run_until([this] { return is_over_ || !heard_.empty(); });

  EXPECT_EQ(heard_.size(), 1U);
  EXPECT_FALSE(is_over_);
}

}  // namespace
}  // namespace hangar::domains
