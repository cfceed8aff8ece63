// One module that an Airway or a Flight names, from one reconcile to the next: which one it is
// pinned to, what the supply has answered, and what its status says of that.
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

// The reason of an error: what is pinned cannot be had, and the source serves something else, or
// nothing.
inline constexpr std::string_view kReasonModuleUnavailable = "ModuleUnavailable";

struct PinnedModule {
  std::optional<modules::Pin> pin;     // As the status says it, or is about to.
  modules::PinnedAsking asking;        // For the module.
  std::optional<FlightModule> module;  // The last answer,
  std::string module_of;               // and about which definition.
  std::optional<ModuleFacts> facts;    // For the status.

  struct Question {
    const ModuleRole& role;
    modules::Source source;
    modules::Requester requester;
    std::string definition;  // Another text for another definition.
    modules::Supply::Listener listener;
  };
  // The module to go on with; nothing while there is none yet for this definition. `facts` are as
  // they were: describe() follows, once what is pinned is kept where it has to be.
  [[nodiscard]] Result<std::optional<FlightModule>> ask(FlightModules& modules, Question question);
  // After an ask() that had a module.
  void describe(const modules::Source& source);
  // Whether the first module of this name is what runs, because nobody has taken over another one.
  [[nodiscard]] bool is_first_use() const;
};

}  // namespace hangar::airways
