#include "gateway/reply.h"

#include "base/metrics.h"
#include "gateway/gateway.h"
#include "http/client.h"

#include <gtest/gtest.h>

#include <stop_token>
#include <string>

namespace hangar::gateway {
namespace {

class Deaf final : public Answer {
  void on_head(int, http::Headers) override {}
  void on_piece(Piece) override {}
  void on_bookmark(std::string) override {}
  void on_end() override {}
};

struct Worker final : Reply::Worker {
  void on_close() override { ++closed_count; }
  [[nodiscard]] Continuation continuation() const override { return {}; }
  int closed_count = 0;
};

struct ReplyTest : ::testing::Test {
  Deaf answer;
  Metrics metrics;
  Reply reply{answer, metrics};
};

TEST_F(ReplyTest, StopsWhoeverHasAToken) {
  reply.forget_stop_tokens();
  const std::stop_token before = reply.stop_token();
  EXPECT_FALSE(before.stop_requested());
  EXPECT_EQ(before, reply.stop_token()) << "one for all";

  reply.close();

  EXPECT_TRUE(before.stop_requested());
  EXPECT_TRUE(reply.stop_token().stop_requested()) << "also who asks too late";
}

TEST_F(ReplyTest, StopsWhoAsksForATokenTooLate) {
  reply.close();
  EXPECT_TRUE(reply.stop_token().stop_requested());
}

TEST_F(ReplyTest, TellsItsWorkerOnceThatTheExchangeIsGone) {
  Worker worker;
  reply.set_worker(&worker);

  reply.close();
  reply.close();

  EXPECT_EQ(worker.closed_count, 1);
}

TEST_F(ReplyTest, TellsItsWorkerNothingAfterTheEnd) {
  Worker worker;
  reply.set_worker(&worker);

  reply.end();
  reply.close();

  EXPECT_EQ(worker.closed_count, 0);
}

}  // namespace
}  // namespace hangar::gateway
