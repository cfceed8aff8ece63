#include "airways/flight_status.h"

#include "airways/conditions.h"
#include "airways/instance.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "modules/pin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hangar::airways {
namespace {

using modules::Upgrade;
using testing::HasSubstr;

ModuleFacts pinned() {
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
      json::Object{{"status", json::Object{{"flight", module_status(pinned())}}}};
  EXPECT_EQ(pin_in(airway, kFlight), pinned().pin);
}

TEST(FlightStatus, HasNoPinWhereTheReferenceIsFollowed) {
  ModuleFacts facts = pinned();
  facts.upgrade = Upgrade::Followed;
  facts.pin.reset();
  const json::Value status = module_status(facts);

  EXPECT_EQ(json::string_at(status, {"sha256"}), "old");
  EXPECT_EQ(pin_in(json::Object{{"status", json::Object{{"flight", status}}}}, kFlight),
            std::nullopt);
  EXPECT_EQ(pin_in(json::Object{}, kFlight), std::nullopt);
}

TEST(FlightCondition, SaysWhenAnUpgradeWaitsForTheAuthor) {
  ModuleFacts facts = pinned();
  EXPECT_EQ(module_condition(kFlight, facts).status, ConditionStatus::True);
  EXPECT_EQ(module_condition(kFlight, facts).reason, "Current");

  facts.offered_sha256 = "new";
  const Condition changed = module_condition(kFlight, facts);
  EXPECT_EQ(changed.type, "FlightUpToDate");
  EXPECT_EQ(changed.status, ConditionStatus::False);
  EXPECT_EQ(changed.reason, "SourceChanged");
  EXPECT_THAT(changed.message, HasSubstr("https://domain.io/f.wasm?... has changed: sha256 old -> "
                                         "new"));
  EXPECT_THAT(changed.message, HasSubstr("flightChecksum"));
}

TEST(FlightCondition, IsUnknownWhileTheSourceDoesNotSay) {
  ModuleFacts facts = pinned();
  facts.look_error = Error(ErrorKind::NotFound, "404 not found");

  EXPECT_EQ(module_condition(kFlight, facts).status, ConditionStatus::Unknown);
  EXPECT_THAT(module_condition(kFlight, facts).message, HasSubstr("404 not found"));
  facts.offered_sha256 = "new";
  EXPECT_EQ(module_condition(kFlight, facts).reason, "SourceChanged") << "what was seen was seen";
}

TEST(FlightCondition, IsTrueForWhatCannotChangeAndForWhatIsFollowed) {
  ModuleFacts facts = pinned();
  facts.upgrade = Upgrade::Never;
  EXPECT_EQ(module_condition(kFlight, facts).reason, "Fixed");
  facts.upgrade = Upgrade::Followed;
  EXPECT_EQ(module_condition(kFlight, facts).reason, "Followed");
  EXPECT_EQ(module_condition(kFlight, facts).status, ConditionStatus::True);
}

TEST(FlightCondition, OfAFlightSpeaksOfIt) {
  ModuleFacts facts = pinned();
  facts.offered_sha256 = "new";
  EXPECT_THAT(module_condition(kFlightModule, facts).message,
              HasSubstr("it goes on with the former. Set spec.checksum to the latter"));
  facts.upgrade = Upgrade::Never;
  EXPECT_THAT(module_condition(kFlightModule, facts).message, HasSubstr("the Flight says"));
}

TEST(PutModule, SaysOnceThatTheSourceHasChanged) {
  ModuleFacts facts = pinned();
  json::Value status = json::Object();
  EXPECT_FALSE(put_module(status, kFlightModule, facts, 1, WallTime()));
  facts.offered_sha256 = "new";

  const auto event = put_module(status, kFlightModule, facts, 1, WallTime());

  ASSERT_TRUE(event);
  EXPECT_EQ(event->reason, "FlightChanged");
  EXPECT_EQ(json::string_at(status, {"module", "sha256"}), "old");
  EXPECT_FALSE(put_module(status, kFlightModule, facts, 1, WallTime()));
}

TEST(PutModule, LetsStandWhatAFormerHostWasToldUntilTheSourceIsAsked) {
  ModuleFacts facts = pinned();
  facts.offered_sha256 = "new";
  json::Value status = json::Object();
  EXPECT_TRUE(put_module(status, kFlightModule, facts, 1, WallTime()));
  const json::Value told = status;

  facts.offered_sha256.clear();
  facts.is_source_unasked = true;
  EXPECT_FALSE(put_module(status, kFlightModule, facts, 1, WallTime()));
  EXPECT_EQ(status, told);

  facts.is_source_unasked = false;
  EXPECT_FALSE(put_module(status, kFlightModule, facts, 1, WallTime()));
  EXPECT_NE(status, told);
}

TEST(Inventory, NamesResourcesAsYokeDoesAndFitsIntoAStatus) {
  std::vector<Instance::Released> released{
      {.ref = {.kind = {"", "ConfigMap"}, .namespace_ = "default", .name = "basic"},
       .gvk = {"", "v1", "ConfigMap"},
       .is_ready = true},
      {.ref = {.kind = {"", "Namespace"}, .namespace_ = {}, .name = "made"},
       .gvk = {"", "v1", "Namespace"}}};
  EXPECT_EQ(inventory_of(released),
            json::parse(R"([{"resource":"default/ConfigMap:basic","version":"v1","ready":true},
                            {"resource":"/Namespace:made","version":"v1","ready":false}])")
                .value());

  released.resize(5000, released.front());
  EXPECT_EQ(inventory_of(released).as_array().size(), 1000U);
  EXPECT_EQ(inventory_of({}), json::Value(json::Array()));
}

}  // namespace
}  // namespace hangar::airways
