#include "io/local_message.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::io {
namespace {

class LocalMessageTest : public testing::Test {
 public:
  LocalMessageTest() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0);
  }
  ~LocalMessageTest() override {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  LocalMessageTest(const LocalMessageTest&) = delete;
  LocalMessageTest& operator=(const LocalMessageTest&) = delete;

 protected:
  std::array<int, 2> ends_{};
  std::vector<int> descriptors_;
  std::array<char, 64> bytes_{};
};

TEST_F(LocalMessageTest, BringsADescriptorWithItsBytes) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_EQ(send_local(ends_[0], "hello", pipe[1]), 5);
  ::close(pipe[1]);

  ASSERT_EQ(receive_local(ends_[1], bytes_, descriptors_, Waiting::No), 5);

  EXPECT_EQ(std::string_view(bytes_.data(), 5), "hello");
  ASSERT_EQ(descriptors_.size(), 1U);
  EXPECT_EQ(::write(descriptors_[0], "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 1);
  ::close(descriptors_[0]);
  ::close(pipe[0]);
}

TEST_F(LocalMessageTest, DoesNotWaitUnlessItIsTo) {
  EXPECT_EQ(receive_local(ends_[1], bytes_, descriptors_, Waiting::No), -1);
  EXPECT_EQ(errno, EAGAIN);

  ASSERT_EQ(send_local(ends_[0], "x"), 1);
  EXPECT_EQ(receive_local(ends_[1], bytes_, descriptors_, Waiting::Yes), 1);
  EXPECT_TRUE(descriptors_.empty());
}

TEST_F(LocalMessageTest, TakesWhatFitsAndIsNoSignalWhenNobodyReads) {
  const std::string much(1'000'000, 'x');
  const ssize_t taken = send_local(ends_[0], much);
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 1'000'000);
  EXPECT_EQ(send_local(ends_[0], much), -1);
  EXPECT_EQ(errno, EAGAIN);

  ::close(ends_[1]);
  ends_[1] = -1;

  EXPECT_EQ(send_local(ends_[0], "x"), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(LocalMessageTest, EndsWithZero) {
  ::close(ends_[0]);
  ends_[0] = -1;

  EXPECT_EQ(receive_local(ends_[1], bytes_, descriptors_, Waiting::No), 0);
}

}  // namespace
}  // namespace hangar::io
