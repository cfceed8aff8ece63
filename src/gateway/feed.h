// One upstream watch, for everybody who looks at a part of what it covers.
//
// The cache keeps the collection and tells what changes; a Feed remembers the changes (History) and
// shows each to those whose View it concerns. What the cache finds out by listing anew is told as
// changes too, in an order that fits (in_order). Loop thread only.
#pragma once

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/own_writes.h"
#include "gateway/read_scope.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/audience.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

class Feed : public std::enable_shared_from_this<Feed> {
 public:
  // The part of a feed that somebody may see. There is no other way to the objects.
  class Window {
   public:
    [[nodiscard]] const std::shared_ptr<Feed>& feed() const { return feed_; }
    [[nodiscard]] const View& view() const { return view_; }
    // What a review asks again.
    [[nodiscard]] Attributes attributes(Verb verb) const;
    // What may be seen as of history().version(), each if view().sees() it: to look at thousands is
    // work for more than one slice.
    [[nodiscard]] std::vector<kube::ObjectPtr> candidates() const;

   private:
    friend class Feed;
    Window(std::shared_ptr<Feed> feed, View view)
        : feed_(std::move(feed)), view_(std::move(view)) {}

    std::shared_ptr<Feed> feed_;
    View view_;
  };

  // Who is shown changes. Any of the calls may detach, end and destroy any viewer.
  class Viewer {
   public:
    explicit Viewer(Window window) : window_(std::move(window)) {}
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;
    virtual ~Viewer() = default;

    [[nodiscard]] const Window& window() const { return window_; }
    [[nodiscard]] const View& view() const { return window_.view(); }
    virtual void on_line(WatchLine line) = 0;
    // Everything up to `version` has been shown.
    virtual void on_progress(std::uint64_t version) = 0;
    // Detached: it waits for what comes after `version`, and what did come is not known. (No viewer
    // is ever told less than everything.)
    virtual void on_lost(std::uint64_t version) = 0;
    // Detached: there is nothing to go on from. The server does not serve the resource any more, or
    // was set back to an earlier state.
    virtual void on_gone() = 0;

    [[nodiscard]] const kube::ObjectKey& place() const { return view().place(); }
    [[nodiscard]] bool is_attached() const { return is_attached_; }

   private:
    friend class Feed;
    const Window window_;
    std::uint64_t seen_ = 0;  // It knows everything up to here.
    bool is_attached_ = false;
  };

  Feed(io::Loop& loop, kube::Cache& cache, OwnWrites& own_writes, kube::Scope scope,
       Counter& shown);

  void start();

  // Until there is a whole list. The error of the first request that was refused (or of the last of
  // some that failed): then this feed is of no use and never will be. Cancelled.
  [[nodiscard]] io::Task<Result<>> wait_ready(std::stop_token stop);
  [[nodiscard]] bool is_ready() const { return phase_ == Phase::Ready; }
  // Why it is of no use; nothing while it may be.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  [[nodiscard]] const kube::Scope& scope() const { return scope_; }
  [[nodiscard]] const History& history() const { return history_; }
  // Whether this has all that `scope` is about, in the place that it names.
  [[nodiscard]] bool covers(const ReadScope& scope) const;
  // Nothing when it does not cover the scope.
  [[nodiscard]] std::optional<Window> open(AuthorizedScope scope);

  // Shows everything after `seen` that has not been shown; what there was until now is up to the
  // caller.
  void attach(std::shared_ptr<Viewer> viewer, std::uint64_t seen);
  void detach(Viewer& viewer);
  [[nodiscard]] std::vector<std::shared_ptr<Viewer>> viewers() const { return audience_.all(); }

  // From time to time: tells all viewers how far they are, and forgets old changes.
  void on_care();

  // Nobody has looked since then; nothing while somebody does.
  [[nodiscard]] std::optional<Instant> unused_since() const;
  // Somebody is about to look.
  void touch() { used_at_ = io::Loop::now(); }

 private:
  enum class Phase : std::uint8_t { Starting, Ready, Failed };

  [[nodiscard]] std::vector<kube::ObjectPtr> candidates(const View& view) const;

  void tell_progress();
  void on_delta(const kube::Delta& delta);
  void on_synced();
  void on_progress(std::string_view resource_version, bool is_list);
  void on_list(std::uint64_t version);
  void on_failed(const Error& error);
  void on_gone();
  void fail_with(Error error);
  void show(const Change& change);
  void lose(Viewer& viewer);
  void drop(Viewer& viewer);

  kube::Cache& cache_;
  OwnWrites& own_writes_;
  const kube::Scope scope_;
  Counter& shown_;

  Phase phase_ = Phase::Starting;
  int failure_count_ = 0;       // While Starting.
  std::optional<Error> error_;  // Of Failed.
  io::Event changed_;           // phase_.
  std::unique_ptr<kube::Cache::Subscription> subscription_;
  History history_;
  std::vector<kube::Delta> differences_;  // Of a list that is being compared.
  kube::Audience<Viewer> audience_;
  Instant used_at_;
};

}  // namespace hangar::gateway
