// Steps a state machine by hand, as a workflow would, and shows what it decides: for people who
// write machines, and for CI. No cluster, nothing is carried out.
#pragma once

#include "base/log.h"
#include "base/result.h"
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
  // Of a module that is linked dynamically and does not come with it in a ConfigMap's file.
  std::string plugin;
  std::string input = "{}";  // As spec.input, JSON or YAML.
  // The drawings take no events.
  MachineOutput output = MachineOutput::Text;
  std::size_t repeat = 0;  // Whole lives more with the same events, only to be timed.
};

// Asked for the next event until there is none. One is JSON ({"type": "GO"}), a type (GO), a type
// and its members (GO {"by": "hand"}), or a timer that runs (@id). Blank lines and those that begin
// with # are skipped.
using NextEvent = std::function<std::optional<std::string>()>;
// Takes output as it comes.
using PrintMachine = std::function<void(std::string_view)>;

// An event that fails is shown, and the next one is taken in the state before; then the result is
// InvalidInput. Other errors as a workflow's status would have them.
[[nodiscard]] Result<> run_machine(const host::Config& config, const RunMachineOptions& options,
                                   const NextEvent& next, const PrintMachine& print,
                                   const Log& log);

// Whether `module` can be loaded; errors as above.
[[nodiscard]] Result<> check_machine(const host::Config& config, const std::string& module,
                                     const Log& log);

}  // namespace hangar::commands
