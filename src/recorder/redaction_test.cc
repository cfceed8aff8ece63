#include "recorder/redaction.h"

#include "json/value.h"
#include "recorder/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace hangar::recorder {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr std::string_view kHidden = "hunter2";

RandomKey key_of(std::uint8_t byte) {
  RandomKey key{};
  key.fill(byte);
  return key;
}

RedactedBody redacted(std::string_view body, std::uint8_t key = 1) {
  return Redactor(key_of(key)).redact(body);
}

json::Value value_of(std::string_view body) {
  const RedactedBody found = redacted(body);
  EXPECT_EQ(found.state, BodyState::Whole) << body;
  return json::parse(found.text).value();
}

std::string text_at(std::string_view body, json::Path path) {
  return std::string(json::string_at(value_of(body), path));
}

TEST(LooksSecret, KnowsTheWordsHoweverTheyAreWritten) {
  for (const std::string_view key :
       {"password", "PASSWORD", "db_password", "userPasswd", "token", "TOKEN_FILE", "clientSecret",
        "apikey", "api_key", "API-KEY", "apiKey", "private_key", "private key", "privateKey",
        "credentials", "Authorization", "auth", "aws_access_key_id", ".dockerconfigjson"})
    EXPECT_TRUE(looks_secret(key)) << key;
  for (const std::string_view key : {"", "pass", "key", "author", "replicas", "data", "name"})
    EXPECT_FALSE(looks_secret(key)) << key;
}

TEST(Redactor, ReplacesValuesUnderSecretKeysOfAnyType) {
  const std::string body =
      R"({"a":1,"data":{"plain":"seen","DB_PASSWORD":"hunter2"},"token":["x",{"y":"hunter2"}],)"
      R"("list":[{"apiKey":17}],"secret":null})";
  const json::Value value = value_of(body);

  EXPECT_EQ(json::int_at(value, {"a"}), 1);
  EXPECT_EQ(json::string_at(value, {"data", "plain"}), "seen");
  EXPECT_THAT(std::string(json::string_at(value, {"data", "DB_PASSWORD"})),
              MatchesRegex("hmac:[0-9a-f]{16}"));
  EXPECT_THAT(std::string(json::string_at(value, {"token"})), HasSubstr("hmac:"));
  EXPECT_THAT(std::string(json::string_at(value, {"secret"})), HasSubstr("hmac:"));
  EXPECT_THAT(redacted(body).text, Not(HasSubstr(":17")));
  EXPECT_THAT(redacted(body).text, Not(HasSubstr("hunter2")));
}

TEST(Redactor, LeavesOutWhatIsNamedBesideItsValue) {
  for (const std::string_view body :
       {R"({"env":[{"name":"DB_PASSWORD","value":"hunter2"}]})",
        R"({"headers":[{"name":"authorization","values":["hunter2"]}]})",
        R"([{"op":"replace","path":"/data/api_key","value":"hunter2"}])",
        R"([{"op":"add","path":"/spec/containers/0/env/3/value","value":"hunter2"}])",
        R"([{"op":"add","path":"/data","value":{"password":"hunter2"}}])",
        R"({"args":["--token","hunter2"]})", R"({"args":["--token=hunter2"]})"})
    EXPECT_THAT(redacted(body).text, Not(HasSubstr(std::string(kHidden)))) << body;
  EXPECT_EQ(text_at(R"({"name":"plain","value":"seen"})", {"value"}), "seen");
  EXPECT_EQ(text_at(R"({"name":"DB_PASSWORD","kind":"seen"})", {"kind"}), "seen");
}

TEST(Redactor, LeavesOutTextsThatHaveSecrets) {
  for (const std::string_view text :
       {"user=me\\npassword=hunter2\\n", "db:\\n  password: hunter2\\n", "export API_KEY='hunter2'",
        "mysql --password hunter2", "https://me:hunter2@example.org/x", "Bearer hunter2",
        "{broken \\\"token\\\": \\\"hunter2\\\"", "<password>hunter2</password>",
        "-----BEGIN RSA PRIVATE KEY-----\\nhunter2", "eyJhbGci.hunter2"}) {
    const std::string body = R"({"data":{"file":")" + std::string(text) + R"("}})";
    EXPECT_THAT(text_at(body, {"data", "file"}), MatchesRegex("hmac:[0-9a-f]{16}")) << text;
  }
  for (const std::string_view text :
       {"a text", "the password was wrong", "https://example.org/a@b:c", "a: b", "basically"}) {
    const std::string body = R"({"data":{"file":")" + std::string(text) + R"("}})";
    EXPECT_EQ(text_at(body, {"data", "file"}), text);
  }
}

TEST(Redactor, LooksIntoTextsThatAreJson) {
  const std::string inner = R"({\"spec\":{\"replicas\":3,\"password\":\"hunter2\"}})";
  const std::string body = R"({"metadata":{"annotations":{"last":")" + inner + R"("}}})";
  const std::string text = text_at(body, {"metadata", "annotations", "last"});
  EXPECT_THAT(text, HasSubstr(R"("replicas":3)"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(kHidden))));

  // However deep they are.
  std::string deep = R"({"password":"hunter2"})";
  for (int depth = 0; depth < 8; ++depth)
    deep = json::dump(json::Object{{"inner", deep}});
  EXPECT_THAT(redacted(deep).text, Not(HasSubstr(std::string(kHidden))));
}

TEST(Redactor, GivesEqualValuesTheSameTextWithOneKeyOnly) {
  const std::string body = R"({"a":{"password":"x"},"b":{"token":"x"},"c":{"token":1}})";
  const json::Value value = value_of(body);
  EXPECT_EQ(json::string_at(value, {"a", "password"}), json::string_at(value, {"b", "token"}));
  EXPECT_NE(json::string_at(value, {"a", "password"}), json::string_at(value, {"c", "token"}));
  EXPECT_EQ(redacted(body, 1).text, redacted(body, 1).text);
  EXPECT_NE(redacted(body, 1).text, redacted(body, 2).text);
}

TEST(Redactor, ReadsShortYaml) {
  const std::string yaml = "apiVersion: v1\ndata:\n  plain: seen\n  password: hunter2\n";
  EXPECT_EQ(text_at(yaml, {"data", "plain"}), "seen");
  EXPECT_THAT(redacted(yaml).text, Not(HasSubstr(std::string(kHidden))));
  const std::string long_yaml = yaml + "  more: " + std::string(kBodyYamlBytesMax, 'x') + "\n";
  EXPECT_EQ(redacted(long_yaml).state, BodyState::Unreadable);
}

TEST(Redactor, ReadsYamlWhoseAliasesStandForLittle) {
  const auto with_aliases = [](std::size_t count) {
    std::string yaml = "a: &a [" + std::string(10'000, 'x') + "]\nb: [plain";
    for (std::size_t alias = 0; alias < count; ++alias)
      yaml += ", *a";
    return yaml + "]\n";
  };

  EXPECT_EQ(redacted(with_aliases(1)).state, BodyState::Cut);
  EXPECT_EQ(redacted(with_aliases(100)).state, BodyState::Unreadable);
}

TEST(Redactor, KeepsNothingThatItCannotRead) {
  for (const std::string_view body :
       {std::string_view("k8s\0\n\rhunter2", 13), std::string_view("hunter2"),
        std::string_view("\"hunter2\""), std::string_view("{\"a\":"), std::string_view(""),
        std::string_view("a: \xff"), std::string_view("a: 1\n---\nb: 2\n"),
        std::string_view("a: 1\na: 2\n")}) {
    const RedactedBody found = redacted(body);
    EXPECT_EQ(found.state, BodyState::Unreadable) << body;
    EXPECT_EQ(found.text, "");
  }
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(redacted(deep).state, BodyState::Unreadable);
}

TEST(Redactor, CutsWhatIsLongAfterItIsRedacted) {
  const std::string filler(kBodyBytesMax - 20, 'x');
  const RedactedBody found = redacted(R"({"a":")" + filler + R"(","password":"hunter2"})");
  EXPECT_EQ(found.state, BodyState::Cut);
  EXPECT_EQ(found.text.size(), kBodyBytesMax);
  EXPECT_THAT(found.text, Not(HasSubstr("hunt")));
}

TEST(Redactor, WritesPrintableAsciiAlone) {
  const std::string body = "{\"a\":\"\xc3\xa9\xe2\x80\xae\xf0\x9f\x98\x80\x7f\\u001b\"}";
  const RedactedBody found = redacted(body);
  EXPECT_TRUE(std::ranges::all_of(found.text, [](char one) { return one >= ' ' && one < 0x7f; }))
      << found.text;
  EXPECT_TRUE(json::equal(json::parse(found.text).value(), json::parse(body).value()));
}

}  // namespace
}  // namespace hangar::recorder
