// Steps a state machine by hand, as a workflow would, and prints its decisions. For authors of
// machines, and for CI. Needs no cluster and carries out no action.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "host/config.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::commands {

enum class MachineOutput : std::uint8_t { Text, JsonLines, Mermaid, Tree };

struct RunMachineOptions {
  // A module or bundle (file or reference, as in a workflow), a file with a ConfigMap of one, or
  // the directory of a project.
  std::string module;
  // The plugin of a dynamically linked module, unless the file of a ConfigMap has it.
  std::string plugin;
  std::string input = "{}";  // Like spec.input, JSON or YAML.
  // Mermaid and Tree read no events.
  MachineOutput output = MachineOutput::Text;
  std::size_t repeat = 0;  // Further runs with the same events, to measure the time.
  // Receives the step that a person is waiting for until the machine is loaded, and an empty text
  // afterwards.
  Say show = {};
};

// Returns the next event until there is none. An event is JSON ({"type": "GO"}), a type (GO), a
// type and its members (GO {"by": "hand"}), or a running timer (@id). Blank lines and lines that
// begin with # are skipped.
using NextEvent = std::function<std::optional<std::string>()>;
// Receives the output piece by piece.
using PrintMachine = std::function<void(std::string_view)>;

// A failed event is printed, and the next one continues from the state before it; the result is
// then InvalidInput. Other errors: those in the status of a workflow.
[[nodiscard]] Result<> run_machine(const host::Config& config, const RunMachineOptions& options,
                                   const NextEvent& next, const PrintMachine& print,
                                   const Log& log);

// Checks that `module` can be loaded. `show`: as in RunMachineOptions. Errors as above.
[[nodiscard]] Result<> check_machine(const host::Config& config, const std::string& module,
                                     const Say& show, const Log& log);

}  // namespace hangar::commands
