// What a status says about modules: which flight an Airway's instances are evaluated with, which
// converter converts them, and whether their sources still serve those.
#pragma once

#include "airways/conditions.h"
#include "airways/instance.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "modules/pin.h"
#include "reconcile/event_log.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hangar::airways {

// Whether the source serves the module that instances run. True for what cannot change and for
// what is followed; False when an upgrade waits for the Airway's author; Unknown while the source
// does not say.
inline constexpr std::string_view kReasonSourceChanged = "SourceChanged";

// What a module is to the object that names it.
struct ModuleRole {
  std::string_view name;            // In the status.
  std::string_view is_up_to_date;   // The condition.
  std::string_view changed;         // The reason of the Event.
  std::string_view checksum_field;  // Of the spec.
  // For people.
  std::string_view of = "Airway";
  std::string_view go = "instances go";
  std::string_view no_copy = "the host's cache and its namespace have no copy";
};
inline constexpr ModuleRole kFlight{.name = "flight",
                                    .is_up_to_date = "FlightUpToDate",
                                    .changed = "FlightChanged",
                                    .checksum_field = "spec.wasmUrls.flightChecksum"};
inline constexpr ModuleRole kConverter{.name = "converter",
                                       .is_up_to_date = "ConverterUpToDate",
                                       .changed = "ConverterChanged",
                                       .checksum_field = "spec.wasmUrls.converterChecksum"};
inline constexpr std::array kModuleRoles = {kFlight, kConverter};  // Of Airways.
// Of a Flight, which is its only instance.
inline constexpr ModuleRole kFlightModule{.name = "module",
                                          .is_up_to_date = "FlightUpToDate",
                                          .changed = "FlightChanged",
                                          .checksum_field = "spec.checksum",
                                          .of = "Flight",
                                          .go = "it goes",
                                          .no_copy = "the host's cache does not have it"};

struct ModuleFacts {
  std::string reference;  // For people.
  modules::Upgrade upgrade = modules::Upgrade::Followed;
  std::string sha256;
  std::string resolved;
  std::optional<modules::Pin> pin;  // Nothing where the reference is followed.
  std::string offered_sha256;       // What the source serves in place of that; empty: nothing.
  std::optional<Error> look_error;  // Why nobody knows.
  bool is_source_unasked = false;   // This host knows the pin alone, so far.
};

// status.flight, or status.converter.
[[nodiscard]] json::Value module_status(const ModuleFacts& facts);
// What an earlier host wrote there.
[[nodiscard]] std::optional<modules::Pin> pin_in(const json::Value& airway, const ModuleRole& role);

// status.inventory: what a release has, as yoke's host says it of a Flight. Of very many resources
// the first ones: a status has to fit into the API server.
[[nodiscard]] json::Value inventory_of(std::span<const Instance::Released> released);

// Without its generation.
[[nodiscard]] Condition module_condition(const ModuleRole& role, const ModuleFacts& facts);

// Both of them, in the status of an object. What is to be said in an Event: once, that the source
// has changed.
[[nodiscard]] std::optional<reconcile::EventText> put_module(json::Value& status,
                                                             const ModuleRole& role,
                                                             const ModuleFacts& facts,
                                                             std::int64_t generation, WallTime now);

}  // namespace hangar::airways
