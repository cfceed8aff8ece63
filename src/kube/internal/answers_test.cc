#include "kube/internal/answers.h"

#include "base/limits.h"
#include "base/result.h"
#include "http/client.h"
#include "kube/client.h"
#include "kube/limits.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::kube {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(StatusError, HasTheServersMessageAndReason) {
  const Error error = error_from_status(
      409,
      R"({"kind":"Status","status":"Failure","message":"it exists","reason":"AlreadyExists"})");

  EXPECT_EQ(error.kind(), ErrorKind::Conflict);
  EXPECT_EQ(error.message(), "it exists");
  EXPECT_EQ(reason_of(error), "AlreadyExists");
  EXPECT_EQ(reason_of(Error(error).in("create")), "AlreadyExists");
}

TEST(StatusError, SaysByItsKindWhatTheCallerMayDo) {
  const struct {
    int status;
    ErrorKind want;
  } cases[] = {
      {400, ErrorKind::InvalidInput},  {422, ErrorKind::InvalidInput},
      {405, ErrorKind::InvalidInput},  {401, ErrorKind::Denied},
      {403, ErrorKind::Denied},        {404, ErrorKind::NotFound},
      {409, ErrorKind::Conflict},      {410, ErrorKind::Expired},
      {413, ErrorKind::LimitExceeded}, {408, ErrorKind::Unavailable},
      {429, ErrorKind::Unavailable},   {500, ErrorKind::Unavailable},
      {503, ErrorKind::Unavailable},   {504, ErrorKind::Unavailable},
      {302, ErrorKind::Unavailable},
  };
  for (const auto& [status, want] : cases) {
    EXPECT_EQ(error_from_status(status, "{}").kind(), want) << status;
  }
}

TEST(StatusError, BlamesTheObjectForAWrongTypeInAnApply) {
  const Error error = error_from_status(
      500,
      R"({"kind":"Status","message":"failed to create typed patch object (ns/x; /v1, Kind=X): .a"})");

  EXPECT_EQ(error.kind(), ErrorKind::InvalidInput);
}

TEST(StatusError, ShowsAGlanceOfWhatIsNoStatus) {
  EXPECT_EQ(error_from_status(404, "404 page not found\n").message(),
            "the server answered 404: 404 page not found");
  EXPECT_EQ(error_from_status(502, "").message(), "the server answered 502");
  EXPECT_LT(error_from_status(502, std::string(100'000, 'x')).message().size(), 300);
}

// The API server repeats what it refuses: a label of a megabyte makes a message of several.
TEST(StatusError, IsNotReadFromAnAnswerThatIsTooLong) {
  const auto error = [](int http_status, std::string_view message) {
    return error_from_status(
        http_status,
        fmt::format(
            R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{}{}","reason":"Invalid"}})",
            message, std::string(limits::kMiB, 'x')));
  };

  const Error invalid = error(422, R"(X \"x\" is invalid: )");
  EXPECT_EQ(invalid.kind(), ErrorKind::InvalidInput);
  EXPECT_TRUE(invalid.message().starts_with("the server answered 422: {")) << invalid.message();
  EXPECT_LT(invalid.message().size(), 300);
  EXPECT_EQ(error(500, "failed to create typed patch object (ns/x; /v1, Kind=X): .a").kind(),
            ErrorKind::InvalidInput);
  EXPECT_EQ(error(500, "etcd is full").kind(), ErrorKind::Unavailable);
}

TEST(StatusError, KeepsMessagesOfBoundedSize) {
  // Cut between characters, so that the result is still UTF-8.
  std::string long_text = "x";
  while (long_text.size() < 3 * limits::kServerMessageBytesMax)
    long_text += "\xC3\xA9";

  const Error error = error_from_status(422, R"({"kind":"Status","message":")" + long_text + "\"}");

  EXPECT_LE(error.message().size(), limits::kServerMessageBytesMax);
  EXPECT_TRUE(error.message().ends_with("\xC3\xA9"));
}

TEST(RetryAfter, IsReadFromTheHeaderOrTheStatus) {
  const auto asked = [](http::Headers headers, std::string body) {
    return internal::retry_after({.status = 429, .headers = headers, .body = body});
  };

  EXPECT_EQ(asked({{"Retry-After", "7"}}, ""), seconds(7));
  EXPECT_EQ(asked({{"retry-after", "Fri, 31 Dec 1999 23:59:59 GMT"}}, ""), seconds(1));
  EXPECT_EQ(asked({}, R"({"details":{"retryAfterSeconds":3}})"), seconds(3));
  EXPECT_EQ(asked({}, R"({"details":{"retryAfterSeconds":0}})"), std::nullopt);
  EXPECT_EQ(asked({}, "no json"), std::nullopt);
  EXPECT_EQ(asked({}, R"({"details":{"retryAfterSeconds":3},"message":")" +
                          std::string(limits::kMiB, 'x') + "\"}"),
            std::nullopt)
      << "too long for the loop";
}

TEST(Warnings, AreTheQuotedTextsOfAllHeaders) {
  EXPECT_THAT(internal::warnings({{"warning", R"(299 - "first \"quoted\" \\", 299 - "second")"},
                                  {"Other", R"("no")"},
                                  {"Warning", R"(299 - "third")"}}),
              ElementsAre(R"(first "quoted" \)", "second", "third"));
  EXPECT_THAT(internal::warnings({{"warning", R"(299 - "unended)"}, {"warning", "\"\\"}}),
              ElementsAre());
}

TEST(ServiceAccount, HasTheGroupsThatTheServerGivesIt) {
  const Identity identity = service_account("shop", "robot");

  EXPECT_EQ(identity.user, "system:serviceaccount:shop:robot");
  EXPECT_THAT(identity.groups, ElementsAre("system:serviceaccounts", "system:serviceaccounts:shop",
                                           "system:authenticated"));
}

}  // namespace
}  // namespace hangar::kube
