#include "abi/kube_runtime/messages.h"

#include "abi/kube_runtime/test_bincode.h"
#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::abi::kube_runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t index = 0; index + 1 < hex.size(); index += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(index, 2)), nullptr, 16));
  return bytes;
}

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4U];
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15U];
  }
  return hex;
}

void expect_fault(std::string_view bytes, std::string_view text) {
  const Result<HttpRequest> request = decode_request(bytes);
  ASSERT_FALSE(request.has_value()) << text;
  EXPECT_EQ(request.error().kind(), ErrorKind::GuestFault);
  EXPECT_THAT(request.error().message(), HasSubstr(text));
}

// The bytes that the unmodified ring controller passes to the host.
constexpr std::string_view kList =
    "030000000000000047455433000000000000002f617069732f616d7572616e742e696f2f76312f6e616d6573706163"
    "65732f72696e67302f746573747265736f75726365733f00000000000000000000000000000000";
constexpr std::string_view kWatch =
    "030000000000000047455463000000000000002f617069732f616d7572616e742e696f2f76312f6e616d6573706163"
    "65732f72696e67302f746573747265736f75726365733f2677617463683d74727565267265736f7572636556657273"
    "696f6e3d372674696d656f75745365636f6e64733d32393000000000000000000000000000000000";
constexpr std::string_view kGet =
    "030000000000000047455437000000000000002f617069732f616d7572616e742e696f2f76312f6e616d6573706163"
    "65732f72696e67312f746573747265736f75726365732f72756e3000000000000000000000000000000000";

// The encoding of http-serde 1.1.0's structures by bincode 1.3.
constexpr std::string_view kPostOfOneHeader =
    "0400000000000000504f535403000000000000002f613f01000000000000000c00000000000000636f6e74656e742d"
    "74797065010000000000000010000000000000006170706c69636174696f6e2f6a736f6e02000000000000007b7d";
constexpr std::string_view kPostOfTwoHeaders =
    "0400000000000000504f53540c0000000000000068747470733a2f2f682f613f02000000000000000c000000000000"
    "00636f6e74656e742d74797065010000000000000010000000000000006170706c69636174696f6e2f6a736f6e0600"
    "0000000000006163636570740200000000000000010000000000000061020000000000000062630200000000000000"
    "7b7d";
constexpr std::string_view kMetaOfTwoHeaders =
    "c800020000000000000006000000000000006163636570740200000000000000010000000000000061020000000000"
    "0"
    "00062630c00000000000000636f6e74656e742d74797065010000000000000010000000000000006170706c6963617"
    "4"
    "696f6e2f6a736f6e";

TEST(DecodeRequest, ReadsWhatThePublishedControllerPasses) {
  const Result<HttpRequest> list = decode_request(bytes_of(kList));
  ASSERT_TRUE(list.has_value()) << list.error().message();
  EXPECT_EQ(*list, (HttpRequest{.method = "GET",
                                .uri = "/apis/amurant.io/v1/namespaces/ring0/testresources?"}));

  EXPECT_EQ(decode_request(bytes_of(kWatch))->uri,
            "/apis/amurant.io/v1/namespaces/ring0/testresources?&watch=true&resourceVersion=7"
            "&timeoutSeconds=290");
  EXPECT_EQ(decode_request(bytes_of(kGet))->uri,
            "/apis/amurant.io/v1/namespaces/ring1/testresources/run0");
}

TEST(DecodeRequest, ReadsHeadersAsHttpSerdeWritesThem) {
  const Result<HttpRequest> one = decode_request(bytes_of(kPostOfOneHeader));
  ASSERT_TRUE(one.has_value()) << one.error().message();
  EXPECT_EQ(*one, (HttpRequest{.method = "POST",
                               .uri = "/a?",
                               .headers = {{"content-type", "application/json"}},
                               .body = "{}"}));

  const Result<HttpRequest> two = decode_request(bytes_of(kPostOfTwoHeaders));
  ASSERT_TRUE(two.has_value()) << two.error().message();
  EXPECT_EQ(two->uri, "https://h/a?");
  EXPECT_THAT(two->headers, ElementsAre(Pair("content-type", "application/json"),
                                        Pair("accept", "a"), Pair("accept", "bc")));
}

TEST(DecodeRequest, RefusesEveryBeginningOfARequest) {
  const std::string whole = bytes_of(kPostOfTwoHeaders);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Result<HttpRequest> request = decode_request(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(request.has_value()) << size;
    EXPECT_EQ(request.error().kind(), ErrorKind::GuestFault);
  }
}

TEST(DecodeRequest, IgnoresWhatFollowsTheRequest) {
  const Result<HttpRequest> request = decode_request(bytes_of(kGet) + "rest");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->body, "");
}

TEST(DecodeRequest, RefusesLengthsThatTheBytesDoNotHave) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  std::string bytes;
  append_number(bytes, kMost);
  expect_fault(bytes, "the method is to have 18446744073709551615 bytes, 0 are left");

  bytes.clear();
  append_text(bytes, "GET");
  append_text(bytes, "/");
  std::string map = bytes;
  append_number(map, kMost);
  expect_fault(map + std::string(64, '\0'), "the map of headers is to have");
  append_number(bytes, 1);
  append_text(bytes, "accept");
  append_number(bytes, kMost / 8);
  expect_fault(bytes + std::string(64, '\0'), "the values of a header is to have");
}

TEST(DecodeRequest, RefusesWhatCouldEndALineOfHttp) {
  const auto encoded = [](const HttpRequest& request) { return encode_request(request); };
  expect_fault(encoded({.method = "GET /x HTTP/1.1\r\n", .uri = "/"}), "method is not a token");
  expect_fault(encoded({.method = "", .uri = "/"}), "method is not a token");
  expect_fault(encoded({.method = std::string(65, 'A'), .uri = "/"}), "method is not a token");
  expect_fault(encoded({.method = "GET", .uri = ""}), "the URI is empty");
  expect_fault(encoded({.method = "GET", .uri = "/a b"}), "the URI");
  expect_fault(encoded({.method = "GET", .uri = "/\r\nhost: h"}), "the URI");
  expect_fault(encoded({.method = "GET", .uri = std::string(65535, '/')}), "the URI");
  expect_fault(encoded({.method = "GET", .uri = "/", .headers = {{"a:b", ""}}}), "is not a token");
  expect_fault(encoded({.method = "GET", .uri = "/", .headers = {{"a", "b\r\nc: d"}}}),
               "control characters");
  expect_fault(encoded({.method = "GET", .uri = "/", .headers = {{"a", std::string(1, '\0')}}}),
               "control characters");
}

TEST(DecodeRequest, NamesOfHeadersAreLowerCase) {
  const auto request =
      decode_request(encode_request({.method = "GET", .uri = "/", .headers = {{"Accept", "B"}}}));
  EXPECT_THAT(request->headers, ElementsAre(Pair("accept", "B")));
}

TEST(DecodeRequest, HeadersAreBoundedByWhatTheyTakeWhenTheyAreCopied) {
  // A name of 4 KiB, and a thousand values that take eight bytes each in the message.
  std::string bytes;
  append_text(bytes, "GET");
  append_text(bytes, "/");
  append_number(bytes, 1);
  append_text(bytes, std::string(4096, 'a'));
  append_number(bytes, 1000);
  for (int index = 0; index < 1000; ++index)
    append_text(bytes, "");
  append_text(bytes, "");
  expect_fault(bytes, "headers take more than 262144 bytes");
}

TEST(Messages, TakeMoreMemoryThanTheirBytesIfTheyHaveManyHeaders) {
  HttpRequest request{.method = "GET", .uri = "/", .headers = {}, .body = "abc"};
  EXPECT_EQ(memory_bytes_of(request), 7U);
  request.headers.assign(1000, {"a", ""});
  EXPECT_EQ(memory_bytes_of(request.headers), 1000 * (1 + 2 * sizeof(std::string)));
  EXPECT_EQ(memory_bytes_of(request), 7U + 1000 * (1 + 2 * sizeof(std::string)));
  EXPECT_EQ(memory_bytes_of(InboundAnswer{.id = 1, .status = 200, .headers = request.headers}),
            1000 * (1 + 2 * sizeof(std::string)));
}

TEST(DecodeRequest, ReadsBodiesOfAnyBytes) {
  HttpRequest request{.method = "PUT", .uri = "/x", .body = std::string(100'000, '\0')};
  request.body += "\xff\r\n";
  EXPECT_EQ(*decode_request(encode_request(request)), request);
}

TEST(EncodeResponseMeta, WritesWhatGuestsRead) {
  EXPECT_EQ(hex_of(encode_response_meta(404, {})), "94010000000000000000");
  EXPECT_EQ(hex_of(encode_response_meta(
                200, {{"Accept", "a"}, {"content-type", "application/json"}, {"accept", "bc"}})),
            kMetaOfTwoHeaders);
}

TEST(EncodeResponseMeta, LeavesOutWhatGuestsTrapOn) {
  const std::optional<ResponseMeta> meta = decode_response_meta(encode_response_meta(
      200, {{"", "x"}, {"a b", "x"}, {"a", "x\ny"}, {"b", "tab\tand \xc3\xa4"}}));
  ASSERT_TRUE(meta);
  EXPECT_THAT(meta->headers, ElementsAre(Pair("b", "tab\tand \xc3\xa4")));

  for (const int status : {-1, 0, 99, 1000, 70000}) {
    EXPECT_EQ(decode_response_meta(encode_response_meta(status, {}))->status, 502) << status;
  }
  EXPECT_EQ(decode_response_meta(encode_response_meta(999, {}))->status, 999);
}

TEST(Messages, AnAnswerOfAGuestIsReadLikeARequest) {
  // 200, "content-type: text/plain", "x 1".
  const auto answer = decode_inbound_answer(
      bytes_of("c80001000000000000000c00000000000000436f6e74656e742d547970650100000000000000"
               "0a00000000000000746578742f706c61696e0300000000000000782031"));

  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_EQ(
      *answer,
      (InboundAnswer{.status = 200, .headers = {{"content-type", "text/plain"}}, .body = "x 1"}));
}

TEST(Messages, BytesThatAreNoAnswerAreRefused) {
  const std::string rest(16, '\0');
  const struct {
    std::string bytes;
    std::string_view reason;
  } cases[] = {
      {"", "the bytes are not an answer: they end in the status"},
      {std::string("\x63\x00", 2) + rest, "the status is 99"},
      {std::string("\x64\x00", 2) + rest, "the status is 100, it is to be 200 to 599"},
      {std::string("\x58\x02", 2) + rest, "the status is 600"},
      {std::string("\xc8\x00", 2), "they end in the map of headers"},
      {std::string("\xc8\x00", 2) + rest.substr(8), "they end in the body"},
      {bytes_of("c80001000000000000000300000000000000610d0a01000000000000000000000000000000"),
       "the name of a header is not a token"},
      {bytes_of("c800000000000000000002000000000000007a"), "the body is to have 2 bytes"},
  };
  for (const auto& [bytes, reason] : cases) {
    const Result<InboundAnswer> answer = decode_inbound_answer(bytes);
    ASSERT_FALSE(answer.has_value()) << reason;
    EXPECT_EQ(answer.error().kind(), ErrorKind::GuestFault);
    EXPECT_THAT(answer.error().message(), HasSubstr(reason));
  }
}

TEST(Messages, ARequestIntoAGuestBeginsWithItsId) {
  const HttpRequest request{
      .method = "GET", .uri = "/metrics", .headers = {{"Accept", "text/plain"}, {"bad\n", "x"}}};

  const std::string bytes = encode_inbound_request(258, request);

  EXPECT_EQ(hex_of(bytes.substr(0, 8)), "0201000000000000");
  const Result<HttpRequest> read = decode_request(std::string_view(bytes).substr(8));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_THAT(read->headers, ElementsAre(Pair("accept", "text/plain")));
  EXPECT_EQ(read->uri, "/metrics");
}

TEST(Messages, AreReadAsTheyWereWritten) {
  const HttpRequest request{.method = "PATCH",
                            .uri = "/api/v1/pods?limit=1",
                            .headers = {{"accept", "a"}, {"accept", "b"}, {"x", ""}},
                            .body = std::string("a\0b", 3)};
  EXPECT_EQ(decode_request(to_bytes(request)).value(), request);
  InboundAnswer answer{.id = 0, .status = 503, .headers = {{"x", "y"}}, .body = "text"};
  EXPECT_EQ(decode_inbound_answer(to_bytes(answer)).value(), answer);
}

}  // namespace
}  // namespace hangar::abi::kube_runtime
