// Says what happens to an object where `kubectl describe` shows it: as Events of core v1.
//
// Saying something never fails and never waits: it is written later, merged with what was said
// before (event_log.h), and given up if the server does not take it. Loop thread only.
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
  // `component` is who speaks ("hangar"), `instance` which process of it; empty: the component's
  // name. `client` outlives it.
  EventRecorder(io::Loop& loop, const kube::Client& client, Log log, std::string component,
                std::string instance = {});
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;
  ~EventRecorder();

  // About `object`, of which apiVersion, kind and metadata are looked at.
  void record(const json::Value& object, EventText text);

  // Writes what is left, for two seconds at most. What is said after is dropped.
  [[nodiscard]] io::Task<void> stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::reconcile
