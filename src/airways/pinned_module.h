// One module that an Airway or a Flight names, between reconciles: its pin, the supply's last
// answer, its copy in the cluster, and the facts for the status.
//
// Loop thread only.
#pragma once

#include "airways/flight_modules.h"
#include "airways/flight_status.h"
#include "archive/copies.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "modules/pin.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "reconcile/event_log.h"

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::airways {

// The reason of an error: there is no copy of the pinned module, and the source serves another one,
// or none.
inline constexpr std::string_view kReasonModuleUnavailable = "ModuleUnavailable";

struct PinnedModule {
  std::optional<modules::Pin> pin;     // As in the status, or as it will be.
  modules::PinnedAsking asking;        // The requests to the supply.
  std::optional<FlightModule> module;  // The last answer.
  std::string module_of;               // The definition that it answers.
  std::optional<ModuleFacts> facts;    // For the status.
  std::string not_kept;                // Why it has no copy, as an Event said; empty: it has one.

  struct Question {
    const ModuleRole& role;
    modules::Source source;
    modules::Requester requester;
    std::string definition;  // Differs for each definition.
    modules::Supply::Listener listener;
  };
  // The module to use now; std::nullopt while there is none for this definition. Does not change
  // `facts`: call describe() once keep_copy() has succeeded.
  [[nodiscard]] Result<std::optional<FlightModule>> ask(FlightModules& modules, Question question);
  // Keeps a copy of the module in the cluster, if it is pinned; call it when ask() has returned the
  // module. If the cluster refuses the copy, the module is used without one, from this host's cache
  // or from the source, and an Event says so whenever the reason is new. Errors: Unavailable,
  // unless the status of `object` already names the pin; Cancelled.
  [[nodiscard]] io::Task<Result<std::optional<reconcile::EventText>>> keep_copy(
      archive::Copies& copies, const json::Value& object, const ModuleRole& role,
      std::stop_token stop);
  // Sets `facts`. Requires that ask() has returned a module.
  void describe(const modules::Source& source);
  // Whether the pin is the first one for its reference: nobody has approved another module.
  [[nodiscard]] bool is_first_use() const;
};

}  // namespace hangar::airways
