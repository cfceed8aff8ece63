// Watches one collection: drives the WatchMachine with requests and timers.
//
// The watcher decides nothing; the machine handles everything that can go wrong between a list and
// its changes. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/watch/watch_event.h"
#include "kube/watch/watch_machine.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::kube {

class Watcher {
 public:
  // Receives the objects and changes. Any callback may request the stop.
  class Sink {
   public:
    virtual ~Sink() = default;
    // A whole list is requested, for the first time or again. Drop the objects of an earlier list
    // that was not completed.
    virtual void on_list_begin() {}
    // An object of that list; it replaces an earlier one of the same key.
    virtual void on_listed(ObjectPtr object) = 0;
    virtual void on_unlisted(const ObjectKey& key) = 0;
    // The list is complete: it has all objects that exist as of this version.
    virtual void on_replace(std::string resource_version) = 0;
    // A change to what the last complete list delivered.
    virtual void on_change(Change change) = 0;
    // Nothing else has changed up to this version.
    virtual void on_bookmark(std::string resource_version) = 0;
    // The server no longer serves the resource: no object of it exists.
    virtual void on_gone() = 0;
    // The last request failed and will be retried; std::nullopt: it works again.
    virtual void on_health(std::optional<Error> error) = 0;
  };

  // `client`, `traits` and `sink` outlive run().
  Watcher(io::Loop& loop, const Client& client, Scope scope, ServerTraits& traits, Sink& sink);

  // Watches until `stop`. Call it once.
  [[nodiscard]] io::Task<void> run(std::stop_token stop);

  // There is reason to believe that the failed request works now (a CRD appeared): retries at once,
  // and soon again while the server does not know the resource yet.
  void kick();

  [[nodiscard]] std::uint64_t relist_count() const { return machine_.relist_count(); }

 private:
  [[nodiscard]] io::Task<WatchMachine::Next> perform(WatchMachine::Next next, std::stop_token stop);
  [[nodiscard]] io::Task<WatchMachine::Next> list(std::stop_token stop);
  [[nodiscard]] io::Task<WatchMachine::Next> watch(WatchMachine::Watch watch, std::stop_token stop);
  [[nodiscard]] io::Task<WatchMachine::Next> wait(WatchMachine::Wait wait, std::stop_token stop);
  [[nodiscard]] Result<> take_event(Result<WatchEvent> event);
  void look_after_stream(std::stop_source stream);

  io::Loop& loop_;
  const Client& client_;
  const Scope scope_;
  Sink& sink_;
  WatchMachine machine_;
  std::stop_source waiting_{std::nostopstate};  // Of the current wait.
  io::Loop::Timer care_;                        // Checks the open stream.
};

}  // namespace hangar::kube
