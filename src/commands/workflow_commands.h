// `hangar workflow show` and `signal`: looking at a workflow, and telling it something.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hangar::commands {

struct WorkflowName {
  std::string namespace_;  // Empty: the kubeconfig's, else "default".
  std::string name;
};

enum class Drawing : std::uint8_t { Tree, Mermaid };

struct ShownWorkflow {
  std::string text;
  std::optional<Error> trouble;  // What keeps the text from being all of it.
};

// The workflow's machine with its current state, its conditions, its last transitions, what is
// under way and the latest warnings about it. The machine is loaded as a host would load it; where
// it cannot be had or cannot be drawn, a line says why instead. So does one for Events that may not
// be read. InvalidInput for a drawing as Mermaid of what cannot be read; otherwise that is trouble.
[[nodiscard]] Result<ShownWorkflow> show_workflow(const host::Config& config, WorkflowName workflow,
                                                  Drawing drawing, const Log& log);

struct WorkflowSignal {
  std::string event;  // {"type": ...} or only the type.
  std::string data;   // An object whose members the event gets; empty: none.
  std::string id;     // Sent twice, it counts once. Empty: a new one, later than all before.
};

// Returns the id. InvalidInput for what is no event, NotFound when there is no such workflow,
// Conflict when it has ended; then nothing is written. One that ends meanwhile drops the event.
[[nodiscard]] Result<std::string> signal_workflow(const host::Config& config, WorkflowName workflow,
                                                  WorkflowSignal signal, const Log& log);

}  // namespace hangar::commands
