// One guest's watch, answered from a Feed.
//
// Where it begins is a version that the guest has seen everything up to. Mostly the feed's history
// reaches back that far. Where it does not, the state as of that version is asked of the API server
// (it remembers some minutes) and compared with now; only what the API server does not remember
// either is a 410, after which the guest lists again.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "gateway/caller.h"
#include "gateway/feed.h"
#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/read_scope.h"
#include "gateway/reply.h"
#include "gateway/request_target.h"
#include "gateway/slices.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "kube/client.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hangar::gateway {

class Watching final : public Feed::Viewer,
                       public Reply::Worker,
                       public std::enable_shared_from_this<Watching> {
 public:
  struct Beginning {
    // Nothing: with what exists now.
    std::optional<std::uint64_t> seen;
    // What exists comes first, at least as new as this (nothing: as new as the server has it), then
    // a bookmark that says so.
    bool sends_initial_events = false;
    std::optional<std::uint64_t> not_older_than;
    std::optional<Duration> timeout;
    bool wants_bookmarks = false;
  };

  // What all of them work with.
  struct Tools {
    explicit Tools(const kube::Client& client_in)
        : client(client_in), slices(client_in.loop()), catch_ups(client_in.loop()) {}

    const kube::Client& client;  // Asks as the host. Outlives every answer that is open.
    Slices slices;
    // Of a tenant one at a time: each is a whole list of the server's, as the host.
    io::Turns<std::string> catch_ups;
  };

  Watching(std::shared_ptr<Tools> tools, Feed::Window window, std::shared_ptr<Reply> reply,
           const kube::Identity& identity, Gauge& open_count);
  ~Watching() override;

  // Until the watch is attached to its feed, or over.
  static io::Task<void> begin(std::shared_ptr<Watching> self, Beginning beginning);

  [[nodiscard]] bool is_open() const { return reply_->is_open(); }
  // What this watch was authorised by, and is authorised by again.
  [[nodiscard]] kube::Identity identity() const { return caller_.identity(); }
  [[nodiscard]] Attributes attributes() const { return window().attributes(Verb::Watch); }
  // In order: the guest may watch again, if it may.
  void end();

 private:
  static io::Task<void> resume(std::shared_ptr<Watching> self, std::uint64_t seen);
  static io::Task<void> catch_up(std::shared_ptr<Watching> self, std::uint64_t seen);
  // Up to which version the guest has been told everything; nothing when the watch is over.
  static io::Task<std::optional<std::uint64_t>> compare_with(std::shared_ptr<Watching> self,
                                                             std::uint64_t seen);
  static io::Task<void> begin_with_known(std::shared_ptr<Watching> self, Beginning beginning);
  static io::Task<void> begin_with_newest(std::shared_ptr<Watching> self);
  // What is seen of them, by version: a guest that is cut off in between goes on from the last one
  // that it saw, which must not be older than any before it. False when the watch is over.
  static io::Task<bool> give_all(std::shared_ptr<Watching> self, Slices::Job job,
                                 std::vector<kube::ObjectPtr> objects);
  // False when the watch is over.
  static io::Task<bool> take_turn(std::shared_ptr<Watching> self, Slices::Job& job);

  [[nodiscard]] Feed& feed() const { return *window().feed(); }
  void on_line(WatchLine line) override;
  void on_progress(std::uint64_t version) override;
  void on_lost(std::uint64_t version) override;
  void on_gone() override;
  void on_close() override;

  // The head, once.
  void open();
  void give_initial_end(std::uint64_t version);
  void give_changes(const std::vector<Change>& changes);
  void attach(std::uint64_t seen);
  void expire(const std::string& message);
  void fail_with(const Error& error);
  void stop_looking();
  // What is seen of the collection, at one version.
  [[nodiscard]] kube::ListOptions selection() const;

  const std::shared_ptr<Tools> tools_;
  const std::shared_ptr<Reply> reply_;
  const Caller caller_;
  Gauge& open_count_;
  bool wants_bookmarks_ = false;
  std::uint64_t told_ = 0;  // By the last bookmark.
  io::Loop::Timer timeout_;
};

}  // namespace hangar::gateway
