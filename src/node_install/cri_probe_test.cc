#include "node_install/cri_probe.h"

#include "base/assert.h"
#include "node_install/test_doubles.h"

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hangar::node_install {
namespace {

nghttp2_nv header(std::string& name, std::string& value) {
  return {.name = reinterpret_cast<std::uint8_t*>(name.data()),
          .value = reinterpret_cast<std::uint8_t*>(value.data()),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

// The other end: the answers of containerd's gRPC server, in frames that nghttp2 writes.
class Server {
 public:
  Server() {
    nghttp2_session_callbacks* made = nullptr;
    HANGAR_ASSERT(nghttp2_session_callbacks_new(&made) == 0, "out of memory");
    nghttp2_session_callbacks_set_on_header_callback(
        made, [](nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name, std::size_t size,
                 const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
          static_cast<Server*>(self)->headers[{reinterpret_cast<const char*>(name), size}] = {
              reinterpret_cast<const char*>(value), value_size};
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        made, [](nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t* bytes,
                 std::size_t size, void* self) {
          static_cast<Server*>(self)->body.append(reinterpret_cast<const char*>(bytes), size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        made, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          const bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
          if (is_last) static_cast<Server*>(self)->asked_stream = frame->hd.stream_id;
          return 0;
        });
    HANGAR_ASSERT(nghttp2_session_server_new(&session, made, this) == 0, "out of memory");
    nghttp2_session_callbacks_del(made);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  ~Server() { nghttp2_session_del(session); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes what the call sends.
  void hear(CriCall& call) {
    const std::string bytes = call.take_output();
    const auto taken = nghttp2_session_mem_recv(
        session, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ASSERT_EQ(taken, static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] std::string said() {
    std::string out;
    const std::uint8_t* bytes = nullptr;
    for (ssize_t size = nghttp2_session_mem_send(session, &bytes); size > 0;
         size = nghttp2_session_mem_send(session, &bytes)) {
      out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    }
    return out;
  }
  // Headers of an answer without a message: gRPC's "trailers only".
  void refuse() {
    std::vector<std::string> texts = {":status",          "200",         "content-type",
                                      "application/grpc", "grpc-status", "12"};
    const std::vector lines = {header(texts[0], texts[1]), header(texts[2], texts[3]),
                               header(texts[4], texts[5])};
    nghttp2_submit_response(session, asked_stream, lines.data(), lines.size(), nullptr);
  }
  void answer(std::string message) {
    std::vector<std::string> texts = {":status", "200", "content-type", "application/grpc"};
    const std::vector lines = {header(texts[0], texts[1]), header(texts[2], texts[3])};
    to_send = std::move(message);
    nghttp2_data_provider provider{};
    provider.source.ptr = this;
    provider.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* out, std::size_t room,
                                std::uint32_t* flags, nghttp2_data_source* source,
                                void*) -> ssize_t {
      std::string& text = static_cast<Server*>(source->ptr)->to_send;
      const std::size_t size = std::min(room, text.size());
      std::copy_n(text.begin(), size, out);
      text.erase(0, size);
      if (text.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
      return static_cast<ssize_t>(size);
    };
    nghttp2_submit_response(session, asked_stream, lines.data(), lines.size(), &provider);
  }

  nghttp2_session* session = nullptr;
  std::map<std::string, std::string> headers;
  std::string body;
  std::string to_send;
  std::int32_t asked_stream = 0;
};

class CriProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    server_.hear(call_);
    ASSERT_GT(server_.asked_stream, 0) << "the request is not whole";
  }

  Server server_;
  CriCall call_{"runtime.v1"};
};

TEST_F(CriProbeTest, AsksForTheVersion) {
  EXPECT_EQ(server_.headers[":method"], "POST");
  EXPECT_EQ(server_.headers[":path"], "/runtime.v1.RuntimeService/Version");
  EXPECT_EQ(server_.headers["content-type"], "application/grpc");
  EXPECT_EQ(server_.headers["te"], "trailers");
  EXPECT_EQ(server_.body, std::string(5, '\0')) << "an empty message, not compressed";
}

TEST_F(CriProbeTest, IsAnsweredByAMessage) {
  server_.answer(std::string("\0\0\0\0\2\x0a\0", 7));
  ASSERT_TRUE(call_.receive(server_.said()));
  EXPECT_EQ(call_.answer(), CriAnswer::Yes);
}

TEST_F(CriProbeTest, IsNotAnsweredByAnErrorAlone) {
  server_.refuse();
  ASSERT_TRUE(call_.receive(server_.said()));
  EXPECT_EQ(call_.answer(), CriAnswer::No);
}

TEST_F(CriProbeTest, IsNotAnsweredByAStreamThatIsReset) {
  nghttp2_submit_rst_stream(server_.session, NGHTTP2_FLAG_NONE, server_.asked_stream,
                            NGHTTP2_REFUSED_STREAM);
  ASSERT_TRUE(call_.receive(server_.said()));
  EXPECT_EQ(call_.answer(), CriAnswer::No);
}

TEST_F(CriProbeTest, IsNotAnsweredByAConnectionThatEnds) {
  nghttp2_submit_goaway(server_.session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, nullptr, 0);
  ASSERT_TRUE(call_.receive(server_.said()));
  EXPECT_EQ(call_.answer(), CriAnswer::No);
}

TEST_F(CriProbeTest, WaitsForTheRest) {
  server_.answer(std::string("\0\0\0\0\2\x0a\0", 7));
  const std::string all = server_.said();
  std::size_t taken = 0;
  for (; taken < all.size() && call_.answer() == CriAnswer::Incomplete; ++taken)
    ASSERT_TRUE(call_.receive(all.substr(taken, 1)));

  EXPECT_EQ(call_.answer(), CriAnswer::Yes);
  EXPECT_GT(taken, std::size_t{9}) << "after the settings at the earliest";
}

// HTTP/2 requires each end to acknowledge the other's settings.
TEST_F(CriProbeTest, AcknowledgesSettings) {
  ASSERT_TRUE(call_.receive(server_.said()));
  EXPECT_FALSE(call_.take_output().empty());
}

TEST_F(CriProbeTest, RefusesWhatIsNotHttp2) {
  const auto taken = call_.receive("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind(), ErrorKind::InvalidInput);
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
