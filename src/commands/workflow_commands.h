// `hangar workflow show` and `signal`: show a workflow, and send it an event.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hangar::commands {

struct WorkflowName {
  std::string namespace_;  // Empty: the kubeconfig's, or "default".
  std::string name;
};

// Definition: JSON with `definition`, `value` and `actors`, as the console draws them.
enum class Drawing : std::uint8_t { Tree, Mermaid, Definition };

struct ShownWorkflow {
  std::string text;
  std::optional<Error> trouble;  // Why the text is incomplete.
};

// The workflow's machine with its current state, its conditions, its last transitions, its pending
// actions and timers, and the latest warnings about it. Loads the machine as a host would. If the
// machine cannot be loaded or drawn, a line has the reason; so does one for Events that may not be
// read. If the workflow cannot be read, Mermaid and Definition return InvalidInput; a tree has
// `trouble`.
[[nodiscard]] Result<ShownWorkflow> show_workflow(const host::Config& config, WorkflowName workflow,
                                                  Drawing drawing, const Log& log);

struct WorkflowSignal {
  std::string event;  // {"type": ...} or only the type.
  std::string data;   // An object with further members; empty: none.
  std::string id;     // Deduplicates the event. Empty: a new id, after all before.
};

// Returns the id. InvalidInput for an invalid event, NotFound when there is no such workflow,
// Conflict when it has finished; nothing is written then. A workflow that finishes meanwhile drops
// the event.
[[nodiscard]] Result<std::string> signal_workflow(const host::Config& config, WorkflowName workflow,
                                                  WorkflowSignal signal, const Log& log);
// The same over an existing connection; `client` must outlive the task.
[[nodiscard]] io::Task<Result<std::string>> send_signal(const kube::Client& client,
                                                        kube::ObjectKey key, WorkflowSignal signal);

}  // namespace hangar::commands
