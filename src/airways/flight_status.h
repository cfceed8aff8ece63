// Modules in a status: the flight that evaluates an Airway's instances, the converter that converts
// them, and whether their sources still serve them.
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

// A reason of the condition that says whether the source serves the module that instances run. The
// condition is True if the module cannot change or its changes are followed, False while an upgrade
// waits for the Airway's author, and Unknown while the source does not answer.
inline constexpr std::string_view kReasonSourceChanged = "SourceChanged";

// The role of a module for the object that names it.
struct ModuleRole {
  std::string_view name;            // Its member of the status.
  std::string_view is_up_to_date;   // Type of its condition.
  std::string_view changed;         // Reason of its Event.
  std::string_view checksum_field;  // Field of the spec.
  // Parts of messages.
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
inline constexpr std::array kModuleRoles = {kFlight, kConverter};  // Those of an Airway.
// The module of a Flight, which is its only instance.
inline constexpr ModuleRole kFlightModule{
    .name = "module",
    .is_up_to_date = "FlightUpToDate",
    .changed = "FlightChanged",
    .checksum_field = "spec.checksum",
    .of = "Flight",
    .go = "it goes",
    .no_copy = "the host's cache and the cluster have no copy"};

struct ModuleFacts {
  std::string reference;  // For messages.
  modules::Upgrade upgrade = modules::Upgrade::Followed;
  std::string sha256;
  std::string resolved;
  std::optional<modules::Pin> pin;  // std::nullopt if the reference is followed.
  std::string offered_sha256;       // The other module that the source serves; empty: none.
  std::optional<Error> look_error;  // Why the source's answer is unknown.
  bool is_source_unasked = false;   // This host has not asked the source yet.
};

// The value of status.flight, status.converter or status.module.
[[nodiscard]] json::Value module_status(const ModuleFacts& facts);
// The pin that a host has written there.
[[nodiscard]] std::optional<modules::Pin> pin_in(const json::Value& airway, const ModuleRole& role);

// status.inventory: the resources of a release, as yoke's host writes them for a Flight. Only the
// first kInventoryMax of them, because the size of an object is limited.
[[nodiscard]] json::Value inventory_of(std::span<const Instance::Released> released);

// Without observedGeneration.
[[nodiscard]] Condition module_condition(const ModuleRole& role, const ModuleFacts& facts);

// Puts the module and the condition into the status of an object. Returns an Event when the
// condition first says that the source has changed.
[[nodiscard]] std::optional<reconcile::EventText> put_module(json::Value& status,
                                                             const ModuleRole& role,
                                                             const ModuleFacts& facts,
                                                             std::int64_t generation, WallTime now);

}  // namespace hangar::airways
