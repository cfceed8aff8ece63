// One module that an Airway or a Flight names, between reconciles: its pin, the supply's last
// answer, and the facts for the status.
//
// No I/O of its own; loop thread only.
#pragma once

#include "airways/flight_modules.h"
#include "airways/flight_status.h"
#include "base/result.h"
#include "modules/pin.h"
#include "modules/requester.h"
#include "modules/supply.h"

#include <optional>
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

  struct Question {
    const ModuleRole& role;
    modules::Source source;
    modules::Requester requester;
    std::string definition;  // Differs for each definition.
    modules::Supply::Listener listener;
  };
  // The module to use now; nothing while there is none for this definition. `facts` do not change:
  // call describe() once the pinned module is stored where it has to be.
  [[nodiscard]] Result<std::optional<FlightModule>> ask(FlightModules& modules, Question question);
  // Sets `facts`. Requires that ask() has returned a module.
  void describe(const modules::Source& source);
  // Whether the pin is the first one for its reference: nobody has approved another module.
  [[nodiscard]] bool is_first_use() const;
};

}  // namespace hangar::airways
