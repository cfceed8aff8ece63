#include "airways/terms.h"

#include "base/result.h"
#include "json/value.h"
#include "json/yaml.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {
namespace {

TEST(FlightInput, IsTheInstanceOrWhatIsAtTheObjectPath) {
  const json::Value instance =
      json::parse_yaml("{kind: Backend, spec: {inner: {x: 1}, none: null, text: t}}").value();
  struct Case {
    std::string_view name;
    std::vector<std::string> path;
    std::string_view input;
  };
  const Case cases[] = {
      {"whole", {}, R"({"kind":"Backend","spec":{"inner":{"x":1},"none":null,"text":"t"}})"},
      {"inner", {"spec", "inner"}, R"({"x":1})"},
      {"scalar", {"spec", "text"}, R"("t")"},
      {"missing", {"spec", "other"}, "null"},
      {"missing early", {"other", "inner"}, "null"},
      {"through null", {"spec", "none", "x"}, "null"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Terms terms{.object_path = c.path};
    const Result<std::string> input = input_of(terms, instance);
    ASSERT_TRUE(input) << input.error().message();
    EXPECT_EQ(*input, c.input);
  }

  const Result<std::string> input = input_of({.object_path = {"spec", "text", "x"}}, instance);
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(input.error().message(),
            "failed to get object path from: \"spec,text,x\": the parent of \"x\" is not "
            "an object");
}

TEST(Mode, HasTheNamesOfTheManifest) {
  for (const Mode mode : {Mode::Standard, Mode::Static, Mode::Dynamic, Mode::Subscription}) {
    EXPECT_EQ(mode_of(name_of(mode)), mode);
  }
  EXPECT_EQ(mode_of("Dynamic"), std::nullopt);
}

}  // namespace
}  // namespace hangar::airways
