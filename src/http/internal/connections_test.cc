#include "http/internal/connections.h"

#include "http/limits.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace hangar::http::internal {
namespace {

// The default of kube-apiserver, and the least that RFC 9113 recommends.
constexpr std::size_t kServerStreams = 100;

TEST(Http2Connections, AlwaysHaveAStreamForOneMoreRequest) {
  constexpr auto kAll = static_cast<std::size_t>(limits::kHttp2ConnectionsEver) * kServerStreams;
  for (std::size_t open = 0; open < kAll; ++open) {
    const auto streams = static_cast<std::size_t>(http2_connections_max(open + 1)) * kServerStreams;
    ASSERT_GT(streams, open);
  }
}

TEST(Http2Connections, AreFewForABurst) {
  EXPECT_EQ(http2_connections_max(1), limits::kHttp2ConnectionsMax);
  EXPECT_EQ(http2_connections_max(1000), limits::kHttp2ConnectionsMax);
}

TEST(Http2Connections, AreBounded) {
  EXPECT_EQ(http2_connections_max(1'000'000), limits::kHttp2ConnectionsEver);
}

}  // namespace
}  // namespace hangar::http::internal
