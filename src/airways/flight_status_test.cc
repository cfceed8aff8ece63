#include "airways/flight_status.h"

#include "airways/conditions.h"
#include "base/result.h"
#include "json/value.h"
#include "modules/pin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace hangar::airways {
namespace {

using modules::Upgrade;
using testing::HasSubstr;

FlightFacts pinned() {
  return {.reference = "https://domain.io/f.wasm?...",
          .upgrade = Upgrade::Deliberate,
          .sha256 = "old",
          .resolved = "https://domain.io/f.wasm",
          .pin = modules::Pin{.definition = "d",
                              .sha256 = "old",
                              .resolved = "https://domain.io/f.wasm",
                              .replaces = "older"}};
}

TEST(FlightStatus, IsReadAsItWasWritten) {
  const json::Value airway =
      json::Object{{"status", json::Object{{"flight", flight_status(pinned())}}}};
  EXPECT_EQ(pin_in(airway), pinned().pin);
}

TEST(FlightStatus, HasNoPinWhereTheReferenceIsFollowed) {
  FlightFacts facts = pinned();
  facts.upgrade = Upgrade::Followed;
  facts.pin.reset();
  const json::Value status = flight_status(facts);

  EXPECT_EQ(json::string_at(status, {"sha256"}), "old");
  EXPECT_EQ(pin_in(json::Object{{"status", json::Object{{"flight", status}}}}), std::nullopt);
  EXPECT_EQ(pin_in(json::Object{}), std::nullopt);
}

TEST(FlightCondition, SaysWhenAnUpgradeWaitsForTheAuthor) {
  FlightFacts facts = pinned();
  EXPECT_EQ(flight_condition(facts).status, ConditionStatus::True);
  EXPECT_EQ(flight_condition(facts).reason, "Current");

  facts.offered_sha256 = "new";
  const Condition changed = flight_condition(facts);
  EXPECT_EQ(changed.type, "FlightUpToDate");
  EXPECT_EQ(changed.status, ConditionStatus::False);
  EXPECT_EQ(changed.reason, "SourceChanged");
  EXPECT_THAT(changed.message, HasSubstr("https://domain.io/f.wasm?... has changed: sha256 old -> "
                                         "new"));
  EXPECT_THAT(changed.message, HasSubstr("flightChecksum"));
}

TEST(FlightCondition, IsUnknownWhileTheSourceDoesNotSay) {
  FlightFacts facts = pinned();
  facts.look_error = Error(ErrorKind::NotFound, "404 not found");

  EXPECT_EQ(flight_condition(facts).status, ConditionStatus::Unknown);
  EXPECT_THAT(flight_condition(facts).message, HasSubstr("404 not found"));
  facts.offered_sha256 = "new";
  EXPECT_EQ(flight_condition(facts).reason, "SourceChanged") << "what was seen was seen";
}

TEST(FlightCondition, IsTrueForWhatCannotChangeAndForWhatIsFollowed) {
  FlightFacts facts = pinned();
  facts.upgrade = Upgrade::Never;
  EXPECT_EQ(flight_condition(facts).reason, "Fixed");
  facts.upgrade = Upgrade::Followed;
  EXPECT_EQ(flight_condition(facts).reason, "Followed");
  EXPECT_EQ(flight_condition(facts).status, ConditionStatus::True);
}

}  // namespace
}  // namespace hangar::airways
