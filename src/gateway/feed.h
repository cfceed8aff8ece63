// One subscription to the cache, shared by all guests' watches of some part of its objects.
//
// The cache keeps the collection and reports changes; a Feed remembers the changes (History) and
// shows each of them to the viewers whose View it concerns. After the cache had to list again, the
// feed reports the differences as changes too, in an order that in_order() makes safe.
//
// Changes are shown one after the other, each to its viewers in the order in which they were
// attached. Between any two viewers the feed may pause: many viewers, and many changes, take more
// than one slice. Later changes wait meanwhile. Loop thread only.
#pragma once

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "gateway/feed_memory.h"
#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/own_writes.h"
#include "gateway/read_scope.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/shared_slice.h"
#include "io/task.h"
#include "kube/audience.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::gateway {

class Feed : public std::enable_shared_from_this<Feed> {
 public:
  // The part of a feed that an identity may see. There is no other way to the objects.
  class Window {
   public:
    [[nodiscard]] const std::shared_ptr<Feed>& feed() const { return feed_; }
    [[nodiscard]] const View& view() const { return view_; }
    // The attributes with which the identity is authorised again.
    [[nodiscard]] Attributes attributes(Verb verb) const;
    // The objects that may be visible at Feed::version(). The caller checks each with
    // view().sees(): for thousands of objects that takes more than one slice.
    [[nodiscard]] std::vector<kube::ObjectPtr> candidates() const;
    // The feed's own object if it has this one in this version; null otherwise.
    [[nodiscard]] kube::ObjectPtr same_as(const kube::Object& object) const;

   private:
    friend class Feed;
    Window(std::shared_ptr<Feed> feed, View view)
        : feed_(std::move(feed)), view_(std::move(view)) {}

    std::shared_ptr<Feed> feed_;
    View view_;
  };

  // Receives the changes of a feed. Any of its calls may detach, end and destroy any viewer.
  class Viewer {
   public:
    explicit Viewer(Window window) : window_(std::move(window)) {}
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;
    virtual ~Viewer() = default;

    [[nodiscard]] const Window& window() const { return window_; }
    [[nodiscard]] const View& view() const { return window_.view(); }
    virtual void on_line(WatchLine line) = 0;
    // The viewer has been shown everything up to `version`.
    virtual void on_progress(std::uint64_t version) = 0;
    // The viewer was detached: it has seen everything up to `version`, and some changes after that
    // are unknown. (A viewer is never shown changes with a gap between them.)
    virtual void on_lost(std::uint64_t version) = 0;
    // The viewer was detached and cannot resume: the server no longer serves the resource, or was
    // restored to an earlier state.
    virtual void on_gone() = 0;

    // The tenant that the watch belongs to.
    [[nodiscard]] virtual budget::Tenant tenant() const = 0;

    [[nodiscard]] const kube::ObjectKey& place() const { return view().place(); }
    [[nodiscard]] bool is_attached() const { return is_attached_; }
    // Everything up to here was shown when it was attached.
    [[nodiscard]] std::uint64_t attached_at() const { return seen_; }

   private:
    friend class Feed;
    const Window window_;
    std::uint64_t seen_ = 0;  // Everything up to here was shown.
    bool is_attached_ = false;
  };

  // `slice`: shared by all feeds (limits::kGatewaySliceChanges); each change counts one, and one
  // for each viewer that it concerns. `memory` bounds the objects; null: no bound. The processor
  // time of changes is charged to `rates`, which outlives the feed (null: nothing is charged): in
  // equal parts to the tenants whose watches a change concerns; if it concerns no watch, to the
  // payer.
  Feed(io::Loop& loop, io::SharedSlice slice, kube::Cache& cache, OwnWrites& own_writes,
       kube::Scope scope, Counter& shown, std::shared_ptr<FeedMemory> memory, budget::Rates* rates);

  void start();
  // Instead of start(): the feed could not be started and has failed for good.
  void refuse(Error error);

  // Waits for the first complete list. Returns the error of the first request that was refused, or
  // of the last of several that failed: then the feed has failed for good. Cancelled.
  [[nodiscard]] io::Task<Result<>> wait_ready(std::stop_token stop);
  [[nodiscard]] bool is_ready() const { return phase_ == Phase::Ready; }
  // Waits for all changes up to `version`. NotFound when the feed has failed; Cancelled.
  [[nodiscard]] io::Task<Result<>> wait_for(std::uint64_t version, std::stop_token stop);
  // Why the feed failed; nothing unless it did.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  // The tenant that pays for the objects: at first the one that opened the feed. If that has no
  // room for them, or watches no longer, it is a tenant that watches and has room. Without one, the
  // feed fails.
  [[nodiscard]] const budget::Tenant& payer() const;

  [[nodiscard]] const kube::Scope& scope() const { return scope_; }
  [[nodiscard]] const History& history() const { return history_; }
  // The version of the objects. While the cache is still reporting the differences of a list, this
  // is the version of the list, and history() is behind.
  [[nodiscard]] std::uint64_t version() const { return listed_at_.value_or(history_.version()); }
  // Whether the viewers have been shown everything up to history().version(). False while some of
  // them have not been shown a change that history() already has, or has skipped.
  [[nodiscard]] bool has_shown_all() const { return !is_showing_ && !has_unshown(); }
  // Whether the feed has all objects of `scope`, in the place that the scope names, and as much of
  // each as the scope shows.
  [[nodiscard]] bool covers(const ReadScope& scope) const;
  // Nothing when the feed does not cover the scope.
  [[nodiscard]] std::optional<Window> open(AuthorizedScope scope);

  // Whether the view shows every object of the feed, and as much of each as the feed has.
  [[nodiscard]] bool is_all_of(const View& view) const;
  // The differences between the state at `from` and the one at `to`, which a watch that sees all of
  // the feed has learned from the API server: others need not ask for them.
  void reach_back(std::vector<kube::Delta> differences, std::uint64_t from, std::uint64_t to);

  // From now on, shows the viewer each new change whose version is after `seen`. Changes that came
  // before this call are the caller's to show.
  void attach(std::shared_ptr<Viewer> viewer, std::uint64_t seen);
  void detach(Viewer& viewer);

  // Call this periodically: it tells each viewer the version reached, drops old changes, and finds
  // a new payer where the present one has left.
  void on_care();

  // When the feed was last used; nothing while it has a viewer, or is starting.
  [[nodiscard]] std::optional<Instant> unused_since() const;
  // A reader or viewer is about to use the feed.
  void touch() { used_at_ = io::Loop::now(); }

 private:
  enum class Phase : std::uint8_t { Starting, Ready, Failed };

  [[nodiscard]] std::vector<kube::ObjectPtr> candidates(const View& view) const;
  [[nodiscard]] bool has_unshown() const { return showing_ || !unshown_.empty(); }

  // Now, or once the viewers have been shown everything.
  void tell_progress();
  // The tenants of the viewers, each once.
  [[nodiscard]] std::vector<budget::Tenant> sharers() const;
  void check_payer();
  void on_delta(const kube::Delta& delta);
  void on_synced();
  void on_list();
  void on_progress(std::string_view resource_version, bool is_list);
  void on_differences(std::uint64_t version);
  void on_failed(const Error& error);
  void on_gone();
  // Ends a feed that was ready.
  void end_with(Error error);
  void fail_with(Error error);
  struct Later;
  void show_later(Change change, std::optional<Duration> read_time);
  // Limits unshown_bytes_: shows the oldest changes at once, or drops all viewers.
  void bound_unshown();
  void begin_showing();
  static io::Task<void> show_in_slices(std::shared_ptr<Feed> self);
  // One step: goes on with showing_, or begins with the next change of unshown_.
  void show_next();
  void show(Later later);
  // Shows showing_ until the slice is used up or all viewers have been shown it.
  void go_on_showing();
  void show_to(Viewer& viewer);
  void charge_shown();
  // The rest of showing_, and the changes in unshown_, are dropped without being shown to any
  // viewer.
  void forget_unshown();
  void drop_all();
  void lose(Viewer& viewer);
  void drop(Viewer& viewer);

  io::Loop& loop_;
  const io::SharedSlice slice_;
  kube::Cache& cache_;
  OwnWrites& own_writes_;
  const kube::Scope scope_;
  Counter& shown_;
  const std::shared_ptr<FeedMemory> memory_;  // Null: no bound.
  budget::Rates* const rates_;

  Phase phase_ = Phase::Starting;
  int failure_count_ = 0;       // While Starting.
  std::optional<Error> error_;  // Set when Failed.
  io::Event changed_;           // Notified when phase_ changes.
  io::Event advanced_;          // Notified when history_.version() or phase_ changes.
  std::unique_ptr<kube::Cache::Subscription> subscription_;
  History history_;
  std::optional<std::uint64_t> listed_at_;  // While the cache reports the differences of a list.
  Differences differences_;                 // Those reported so far.
  // Changes that history_ has, or has skipped, and that viewers have not been shown: first
  // showing_, then unshown_, in this order.
  struct Later {
    Change change;
    std::optional<Duration> read_time;  // Nothing for a change from a list: no tenant pays for it.
  };
  struct Unshown {
    std::variant<Differences, Later> what;
    bool is_forgotten = false;
  };
  std::list<Unshown> unshown_;
  std::uint64_t unshown_bytes_ = 0;  // Of each Later.
  // A change while it is shown to its viewers.
  struct Showing {
    Showing(Later what, std::vector<std::shared_ptr<Viewer>> to)
        : later(std::move(what)), viewers(std::move(to)) {}
    Showing(const Showing&) = delete;
    Showing& operator=(const Showing&) = delete;

    const Later later;
    Sight sight{later.change};
    // Those that were attached when it began. One that is attached later has seen the change; one
    // that was detached meanwhile is left out. Null: its turn has come.
    std::vector<std::shared_ptr<Viewer>> viewers;
    std::size_t next = 0;
    std::vector<budget::Tenant> concerned;  // The tenants of those that it concerned so far.
    Duration took{};                        // The processor time so far.
  };
  std::optional<Showing> showing_;
  bool is_showing_ = false;     // show_in_slices() runs.
  bool is_in_step_ = false;     // show_next() is on the call stack.
  bool owes_progress_ = false;  // Viewers are to learn the version once has_shown_all().
  kube::Audience<Viewer> audience_;
  Instant used_at_;
};

}  // namespace hangar::gateway
