// The names of the objects that exist at the API server now, for watches that begin from the newest
// state (sendInitialEvents without a resourceVersion).
//
// A feed does not know by itself that it is up to date: the API server sends a version to an idle
// watch once a minute. A list of names settles it: a feed that has received the latest change of
// each listed object has the listed state, except that it may still have objects that are not in
// the list any more.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

// The names that exist at one version. No I/O.
class Newest {
 public:
  Newest();
  void add(const kube::Object& object);
  // Requires all objects to have been added.
  void end(std::uint64_t version);

  // The state is that of this version.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  // A feed with all changes up to here has all objects of the state.
  [[nodiscard]] std::uint64_t last_change() const { return last_change_; }
  // False for an object of such a feed that was deleted by version(): the feed receives that change
  // later, and watches that begin at version() skip it.
  [[nodiscard]] bool has(const kube::Object& object) const;

 private:
  [[nodiscard]] std::uint64_t hash_of(const kube::ObjectKey& key) const;

  // Hashes instead of names, since watches that wait for a slice keep this object. Without the
  // seed, a tenant cannot construct names with equal hashes.
  std::string seed_;
  std::vector<std::uint64_t> names_;
  std::uint64_t last_change_ = 0;
  std::uint64_t version_ = 0;
};
using NewestPtr = std::shared_ptr<const Newest>;

// Requests a Newest, in a slot of the tenant. All watches of one tenant and one scope that wait
// when the request is sent share its answer. A tenant has one such request under way at a time,
// because a page of the list may be large. Loop thread.
class NewestStates {
 public:
  // `client` has the host's rights, and outlives all tasks of this object.
  NewestStates(const kube::Client& client, std::shared_ptr<budget::FairSlots> slots);

  // Returns the state of a moment after this call. The host itself needs no slot. Errors:
  // LimitExceeded when too many requests of the tenant wait for a slot; those of the list;
  // Cancelled.
  [[nodiscard]] io::Task<Result<NewestPtr>> get(kube::Scope scope, budget::Consumer consumer,
                                                std::stop_token stop);

 private:
  using Key = std::pair<kube::Scope, budget::Tenant>;
  // One request, and the tasks that wait for it.
  struct Round {
    explicit Round(io::Loop& loop) : ended(loop) {}
    std::size_t waiting_count = 0;
    bool is_sent = false;
    std::stop_source stop;  // Stops the request when no task waits for it any more.
    io::Event ended;
    std::optional<Result<NewestPtr>> state;
  };
  using RoundPtr = std::shared_ptr<Round>;
  struct State {
    State(const kube::Client& client_in, std::shared_ptr<budget::FairSlots> slots_in)
        : client(client_in), slots(std::move(slots_in)), turns(client_in.loop()) {}

    const kube::Client& client;
    const std::shared_ptr<budget::FairSlots> slots;
    std::map<Key, RoundPtr> open;  // Rounds that can be joined: their request is not sent yet.
    io::Turns<budget::Tenant> turns;
  };

  static io::Task<Result<NewestPtr>> wait(std::shared_ptr<State> state, Key key,
                                          budget::Consumer consumer, std::stop_token stop);
  static io::Task<void> run(std::shared_ptr<State> state, Key key, budget::Consumer consumer,
                            RoundPtr round);
  static io::Task<Result<NewestPtr>> ask(std::shared_ptr<State> state, Key key,
                                         budget::Consumer consumer, RoundPtr round);

  const std::shared_ptr<State> state_;
};

}  // namespace hangar::gateway
