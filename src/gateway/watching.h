// One watch of a guest, answered from a Feed.
//
// A watch begins at a version up to which the guest has seen everything. Usually the feed's history
// reaches back that far. If not, the watch requests the state at that version from the API server
// (which keeps the states of some minutes) and compares it with the present one. Only if the API
// server no longer has that state does the guest get a 410 and list again.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/rates.h"
#include "budget/slices.h"
#include "gateway/caller.h"
#include "gateway/feed.h"
#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/newest.h"
#include "gateway/read_scope.h"
#include "gateway/reply.h"
#include "gateway/request_target.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "kube/client.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

class Watching final : public Feed::Viewer,
                       public Reply::Worker,
                       public std::enable_shared_from_this<Watching> {
 public:
  struct Beginning {
    // Nothing: begin with the objects that exist now.
    std::optional<std::uint64_t> seen;
    // Send the existing objects first, from a state at least as new as `not_older_than` (nothing:
    // as the API server's newest), then a bookmark that ends them.
    bool sends_initial_events = false;
    std::optional<std::uint64_t> not_older_than;
    std::optional<Duration> timeout;
    bool wants_bookmarks = false;
  };

  // Shared by all watches of a gateway.
  struct Tools {
    Tools(const kube::Client& client_in, std::shared_ptr<budget::FairSlots> upstream_in,
          std::shared_ptr<budget::Accounts> feed_memory_in, budget::Rates* rates)
        : client(client_in),
          upstream(std::move(upstream_in)),
          feed_memory(std::move(feed_memory_in)),
          slices(client_in.loop(), rates),
          newest(client_in, upstream),
          catch_ups(client_in.loop()) {}

    const kube::Client& client;  // With the host's rights. Outlives every open answer.
    const std::shared_ptr<budget::FairSlots> upstream;  // Requests at the API server.
    // Counts the objects of feeds, and the lists of `catch_ups`.
    const std::shared_ptr<budget::Accounts> feed_memory;
    budget::Slices slices;
    NewestStates newest;
    // One at a time for each tenant: each is a whole list at the server, with the host's rights.
    io::Turns<std::string> catch_ups;
  };

  Watching(std::shared_ptr<Tools> tools, Feed::Window window, std::shared_ptr<Reply> reply,
           const kube::Identity& identity, Gauge& open_count);
  ~Watching() override;

  // Runs until the watch is attached to its feed, or has finished.
  static io::Task<void> begin(std::shared_ptr<Watching> self, Beginning beginning);

  [[nodiscard]] bool is_open() const { return reply_->is_open(); }
  // The identity and attributes that this watch was authorised with, for authorising it again.
  [[nodiscard]] kube::Identity identity() const { return caller_.identity(); }
  [[nodiscard]] Attributes attributes() const { return window().attributes(Verb::Watch); }
  // Ends the watch normally, so that the guest may start a new one.
  void end();

 private:
  static io::Task<void> resume(std::shared_ptr<Watching> self, std::uint64_t seen);
  static io::Task<void> catch_up(std::shared_ptr<Watching> self, std::uint64_t seen);
  // The version up to which the guest has received everything; nothing when the watch is over.
  static io::Task<std::optional<std::uint64_t>> compare_with(std::shared_ptr<Watching> self,
                                                             std::uint64_t seen);
  // Begins with the state of the feed, as of `newest` if that is not null.
  static io::Task<void> begin_with_known(std::shared_ptr<Watching> self, Beginning beginning,
                                         NewestPtr newest);
  static io::Task<void> begin_with_newest(std::shared_ptr<Watching> self, Beginning beginning);
  // Sends the visible objects, without those that are not in `newest` (null: all), in the order of
  // their versions: a guest that is cut off in between resumes from the last version that it saw,
  // so no earlier one may follow. False when the watch is over.
  static io::Task<bool> give_all(std::shared_ptr<Watching> self, budget::Slices::Job job,
                                 std::vector<kube::ObjectPtr> objects, NewestPtr newest);
  // False when the watch is over.
  static io::Task<bool> take_turn(std::shared_ptr<Watching> self, budget::Slices::Job& job);

  [[nodiscard]] Feed& feed() const { return *window().feed(); }
  [[nodiscard]] budget::Tenant tenant() const override { return consumer_of(identity()).tenant; }
  void on_line(WatchLine line) override;
  void on_progress(std::uint64_t version) override;
  void on_lost(std::uint64_t version) override;
  void on_gone() override;
  void on_close() override;
  [[nodiscard]] Continuation continuation() const override;

  // Sends the head, once.
  void open();
  void give_initial_end(std::uint64_t version);
  [[nodiscard]] std::string bookmark(std::uint64_t version, bool ends_initial_events) const;
  void give_changes(const std::vector<Change>& changes);
  void attach(std::uint64_t seen);
  void expire(const std::string& message);
  void fail_with(const Error& error);
  void stop_looking();
  // The list options that select the objects this watch may see.
  [[nodiscard]] kube::ListOptions selection() const;

  const std::shared_ptr<Tools> tools_;
  const std::shared_ptr<Reply> reply_;
  const Caller caller_;
  Gauge& open_count_;
  bool wants_bookmarks_ = false;
  std::uint64_t told_ = 0;  // The version that the guest named, or received in a bookmark.
  io::Loop::Timer timeout_;
  Instant ends_at_;  // When timeout_ is due. The epoch: never.
};

}  // namespace hangar::gateway
