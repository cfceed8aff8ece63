// Records occurrences at an object where `kubectl describe` shows them: as core v1 Events.
//
// Recording never fails and never waits: the Event is written later, merged with earlier ones
// (event_log.h), and dropped if the server does not accept it. Loop thread only.
#pragma once

#include "base/log.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "reconcile/event_log.h"

#include <memory>
#include <string>

namespace hangar::reconcile {

class EventRecorder {
 public:
  // `component` names the reporter ("hangar"), `instance` its process; empty: the component's name.
  // `client` outlives it.
  EventRecorder(io::Loop& loop, const kube::Client& client, Log log, std::string component,
                std::string instance = {});
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;
  ~EventRecorder();

  // Records an Event about `object`; reads its apiVersion, kind and metadata.
  void record(const json::Value& object, EventText text);

  // Writes the remaining Events, for at most two seconds. Later ones are dropped.
  [[nodiscard]] io::Task<void> stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::reconcile
