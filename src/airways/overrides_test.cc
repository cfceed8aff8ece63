#include "airways/overrides.h"

#include "airways/terms.h"
#include "base/result.h"
#include "json/value.h"
#include "json/yaml.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hangar::airways {

namespace {

using testing::HasSubstr;

TEST(Overrides, AreReadFromTheAnnotations) {
  const Overrides overrides =
      overrides_of(json::parse_yaml("{metadata: {annotations: {overrides.yoke.cd/flight: f, "
                                    "overrides.yoke.cd/mode: dynamic}}}")
                       .value());

  EXPECT_EQ(overrides, (Overrides{.flight = "f", .mode = "dynamic"}));
  EXPECT_TRUE(overrides.any());
  EXPECT_FALSE(overrides_of(json::parse_yaml("{metadata: {name: a}}").value()).any());
}

TEST(Overrides, OfAModeThatIsNoneAreInvalid) {
  EXPECT_TRUE(check_mode({}));
  EXPECT_TRUE(check_mode({.flight = "f", .mode = "subscription"}));

  const Result<> wrong = check_mode({.flight = {}, .mode = "Dynamic"});

  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind(), ErrorKind::InvalidInput);
  EXPECT_THAT(wrong.error().message(),
              HasSubstr("overrides.yoke.cd/mode: \"Dynamic\" is not one of"));
}

TEST(Overrides, ReplaceTheFlightWithItsChecksumAndTheMode) {
  Terms terms;
  terms.flight = {.reference = "own", .sha256 = "sum", .insecure = true};
  terms.mode = Mode::Subscription;

  const Terms none = overridden(terms, {});
  const Terms flight = overridden(terms, {.flight = "other", .mode = {}});
  const Terms mode = overridden(terms, {.flight = {}, .mode = "dynamic"});

  EXPECT_EQ(none.flight, terms.flight);
  EXPECT_EQ(none.mode, Mode::Subscription);
  EXPECT_EQ(flight.flight, (modules::Source{.reference = "other", .sha256 = {}, .insecure = true}));
  EXPECT_EQ(flight.mode, Mode::Subscription);
  EXPECT_EQ(mode.flight, terms.flight);
  EXPECT_EQ(mode.mode, Mode::Dynamic);
}

TEST(Overrides, HaveAnApprovalForEachInstanceConfigurationAndValue) {
  const auto instance = [](const char* text) {
    return json::parse_yaml(fmt::format("metadata: {}", text)).value();
  };
  const json::Value one = instance("{namespace: team, name: a, uid: i}");
  const std::set<std::string> names{
      approval_name("c", one, {.flight = "f", .mode = "m"}),
      approval_name("d", one, {.flight = "f", .mode = "m"}),
      approval_name("c", instance("{namespace: team, name: a, uid: j}"),
                    {.flight = "f", .mode = "m"}),
      // Only a forged review gives the uid of one instance to another name.
      approval_name("c", instance("{namespace: team, name: b, uid: i}"),
                    {.flight = "f", .mode = "m"}),
      approval_name("c", instance("{namespace: other, name: a, uid: i}"),
                    {.flight = "f", .mode = "m"}),
      approval_name("c", instance("{name: a, uid: i}"), {.flight = "f", .mode = "m"}),
      approval_name("c", one, {.flight = "fm", .mode = {}}),
      approval_name("c", one, {.flight = {}, .mode = "fm"}),
      approval_name("c", one, {.flight = "f\",\"m", .mode = {}}),
  };

  EXPECT_EQ(names.size(), 9U);
  EXPECT_EQ(names.count(approval_name("c", one, {.flight = "f", .mode = "m"})), 1U);
}

}  // namespace

}  // namespace hangar::airways
