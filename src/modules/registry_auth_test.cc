#include "modules/internal/registry_auth.h"

#include "base/result.h"
#include "http/client.h"
#include "modules/docker_config.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules {
namespace {

std::optional<Challenge> challenge_in(std::string value) {
  return find_challenge({{"Content-Type", "text/plain"}, {"www-authenticate", std::move(value)}});
}

TEST(FindChallenge, ReadsBearerWithItsParameters) {
  const auto challenge = challenge_in(
      R"(Bearer realm="https://auth.example/token?x=\"1\"",service="reg, istry", scope="repository:a:pull,push")");

  ASSERT_TRUE(challenge.has_value());
  EXPECT_EQ(challenge->scheme, Challenge::Scheme::Bearer);
  EXPECT_EQ(challenge->realm, R"(https://auth.example/token?x="1")");
  EXPECT_EQ(challenge->service, "reg, istry");
  EXPECT_EQ(challenge->scope, "repository:a:pull,push");
}

TEST(FindChallenge, PrefersBearerAndSkipsWhatItDoesNotKnow) {
  const auto challenge = challenge_in(
      R"(Negotiate abc==, Digest realm="d", Basic realm="b", BEARER realm=https://auth.example)");

  ASSERT_TRUE(challenge.has_value());
  EXPECT_EQ(challenge->scheme, Challenge::Scheme::Bearer);
  EXPECT_EQ(challenge->realm, "https://auth.example");
}

TEST(FindChallenge, FindsNoneInNonsense) {
  for (const std::string_view value :
       {"", ",,,", "Digest realm=\"x\"", "=\"", "\"\"\"", "realm="}) {
    EXPECT_FALSE(challenge_in(std::string(value)).has_value()) << value;
  }
}

TEST(TokenRequest, AsksAnonymouslyForPulling) {
  const auto request = token_request({.scheme = Challenge::Scheme::Bearer,
                                      .realm = "https://auth.example/token",
                                      .service = "r.example"},
                                     {}, "team/f", PlainText::Refused);

  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->url,
            "https://auth.example/token?service=r.example&scope=repository%3Ateam%2Ff%3Apull");
  EXPECT_FALSE(http::find_header(request->headers, "Authorization").has_value());
}

TEST(TokenRequest, SendsUserAndPasswordOrTheRefreshToken) {
  const Challenge challenge{.scheme = Challenge::Scheme::Bearer,
                            .realm = "https://auth.example/token?a=b",
                            .service = "s",
                            .scope = "x"};

  const auto basic =
      token_request(challenge, {.username = "u", .password = "p"}, "f", PlainText::Refused);
  EXPECT_EQ(http::find_header(basic->headers, "Authorization"), "Basic dTpw");
  EXPECT_EQ(basic->url, "https://auth.example/token?a=b&service=s&scope=x");

  const auto refresh = token_request(challenge, {.identity_token = "a&b"}, "f", PlainText::Refused);
  EXPECT_EQ(refresh->method, "POST");
  EXPECT_EQ(refresh->body,
            "grant_type=refresh_token&client_id=hangar&service=s&scope=x&refresh_token=a%26b");
}

TEST(TokenRequest, SendsNothingInPlainTextUnlessAllowed) {
  const Challenge plain{.scheme = Challenge::Scheme::Bearer, .realm = "http://auth.example/token"};

  EXPECT_EQ(token_request(plain, {}, "f", PlainText::Refused).error().kind(), ErrorKind::Denied);
  EXPECT_TRUE(token_request(plain, {}, "f", PlainText::Allowed).has_value());
}

TEST(TokenRequest, RefusesARealmThatIsNoUrl) {
  for (const std::string realm :
       {"", "auth", "file:///etc/passwd", "https://a b", "https://a\r\nX: y"}) {
    EXPECT_FALSE(token_request({.scheme = Challenge::Scheme::Bearer, .realm = realm}, {}, "f",
                               PlainText::Allowed)
                     .has_value())
        << realm;
  }
}

TEST(ReadToken, TakesEitherName) {
  EXPECT_EQ(read_token({.status = 200, .body = R"({"token": "a"})"}).value(), "a");
  EXPECT_EQ(read_token({.status = 200, .body = R"({"access_token": "b"})"}).value(), "b");
}

TEST(ReadToken, TakesNoneThatWouldBreakAHeader) {
  EXPECT_FALSE(read_token({.status = 200, .body = R"({"token": "a\r\nX: y"})"}).has_value());
  EXPECT_FALSE(read_token({.status = 200, .body = "{}"}).has_value());
  EXPECT_EQ(read_token({.status = 401, .body = "{}"}).error().kind(), ErrorKind::Denied);
}

TEST(RegistryError, SaysWhatTheRegistrySays) {
  const Error error = registry_error(
      404, R"({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest\nunknown"}]})");

  EXPECT_EQ(error.kind(), ErrorKind::NotFound);
  EXPECT_EQ(error.message(), "404 not found: MANIFEST_UNKNOWN: manifest?unknown");
}

TEST(RegistryError, HasAKindForEveryStatus) {
  EXPECT_EQ(registry_error(401, "").kind(), ErrorKind::Denied);
  EXPECT_EQ(registry_error(403, "<html>").kind(), ErrorKind::Denied);
  EXPECT_EQ(registry_error(429, "").kind(), ErrorKind::Unavailable);
  EXPECT_EQ(registry_error(503, "").kind(), ErrorKind::Unavailable);
  EXPECT_EQ(registry_error(302, "").kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(registry_error(400, "").message(), "unexpected status 400");
}

}  // namespace
}  // namespace hangar::modules
