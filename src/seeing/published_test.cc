#include "seeing/published.h"

#include "json/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hangar::seeing {
namespace {

using testing::HasSubstr;

const Published kPublished{
    .url = "https://h:9444", .pod = "system/hangar-0", .port = 9444, .authority_pem = "pem"};

TEST(Published, IsReadAsItWasWritten) {
  for (Published one : {kPublished, Published{.pod = "a/b", .port = 1, .authority_pem = ""}}) {
    const Result<Published> read = parse_config_map(config_map_of(one, "system"));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, one);
  }
}

TEST(Published, NamesWhatIsMissingOrWrong) {
  const auto words = [](Published one) {
    const Result<Published> read = parse_config_map(config_map_of(one, "system"));
    return read ? std::string() : read.error().message();
  };
  Published wrong = kPublished;
  wrong.port = 0;
  EXPECT_THAT(words(wrong), HasSubstr("\"port\""));
  wrong = kPublished;
  wrong.url = "http://h";
  EXPECT_THAT(words(wrong), HasSubstr("\"url\""));
  wrong = kPublished;
  wrong.pod = "hangar-0/";
  EXPECT_THAT(words(wrong), HasSubstr("\"pod\""));
  wrong = {.port = 9444};
  EXPECT_THAT(words(wrong), HasSubstr("neither a URL nor a pod"));
  // The ConfigMap as the chart creates it, before any host has led.
  EXPECT_FALSE(parse_config_map(json::Object{{"kind", "ConfigMap"}}));
}

}  // namespace
}  // namespace hangar::seeing
