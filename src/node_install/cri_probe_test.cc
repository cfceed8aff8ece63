#include "node_install/cri_probe.h"

#include "node_install/test_doubles.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace hangar::node_install {
namespace {

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream,
                  const std::string& payload) {
  std::string bytes(9, '\0');
  bytes[2] = static_cast<char>(payload.size());
  bytes[3] = static_cast<char>(type);
  bytes[4] = static_cast<char>(flags);
  bytes[8] = static_cast<char>(stream);
  return bytes + payload;
}

const std::string kSettings = frame(4, 0, 0, std::string(6, '\0'));
const std::string kHeaders = frame(1, 4, 1, "\x88");
const std::string kMessage = frame(0, 0, 1, std::string("\0\0\0\0\2\x0a\0", 7));
const std::string kTrailers = frame(1, 5, 1, "\x88");

TEST(CriProbe, IsAnsweredByAMessage) {
  EXPECT_EQ(read_answer(kSettings + kHeaders + kMessage), CriAnswer::Yes);
}

TEST(CriProbe, IsNotAnsweredByAnErrorAlone) {
  EXPECT_EQ(read_answer(kSettings + kTrailers), CriAnswer::No);
  EXPECT_EQ(read_answer(kSettings + frame(3, 0, 1, "\0\0\0\1")), CriAnswer::No);
  EXPECT_EQ(read_answer(frame(7, 0, 0, std::string(8, '\0'))), CriAnswer::No);
}

TEST(CriProbe, WaitsForTheRest) {
  const std::string all = kSettings + kHeaders + kMessage;

  for (std::size_t size = 0; size < kSettings.size() + kHeaders.size() + 9; ++size)
    EXPECT_EQ(read_answer(std::string_view(all).substr(0, size)), CriAnswer::Incomplete) << size;
}

TEST(CriProbe, DoesNotTakeAnotherStreamsMessage) {
  EXPECT_EQ(read_answer(frame(0, 0, 3, std::string(7, '\0'))), CriAnswer::Incomplete);
}

TEST(CriProbe, AsksInFramesOfItsOwn) {
  const std::string request = version_request("runtime.v1");

  EXPECT_TRUE(request.starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  EXPECT_TRUE(request.contains("/runtime.v1.RuntimeService/Version"));
}

TEST(CriProbe, SaysThatNobodyListens) {
  const TempRoot root;

  const auto answer =
      probe_cri((root.path() / "absent.sock").string(), std::chrono::milliseconds(100));

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::Unavailable);
}

}  // namespace
}  // namespace hangar::node_install
