// The list-then-watch protocol of one collection, without any I/O.
//
// The shell (watcher.h) reports what happened and does what the machine answers. Exactly one
// request or wait is open at any time. Keeping sockets and timers out lets tests and a fuzzer
// walk every path: the server forgets our place, ends streams, answers nonsense, loses the
// whole resource.
//
// Guarantees: the machine delivers objects either as a whole list (Replace, on_listed) or as
// changes to the last whole list (Change), in the server's order and without a gap. Whenever a gap
// is possible, the next delivery is a whole list.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace hangar::kube {

// What the watches of one server share about it.
struct ServerTraits {
  // It sends the initial list as events of the watch (WatchList). Assumed until it refuses.
  bool has_watch_list = true;
};

class WatchMachine {
 public:
  // Takes the objects of a whole list as they arrive, so that no turn of the loop handles all of
  // them.
  struct Listing {
    std::function<void(ObjectPtr object)> on_listed;
    // The list has no object of that key, or no longer has it.
    std::function<void(const ObjectKey& key)> on_unlisted;
  };

  // `traits` outlives the machine; `seed` is for jitter. Without `listing` the machine collects the
  // objects of the initial events itself.
  WatchMachine(ServerTraits& traits, std::uint64_t seed, std::optional<Listing> listing = {});

  // What the shell does next; it then reports how that went.
  struct List {};  // The whole collection, in pages: on_listed() or on_failed().
  struct Watch {   // on_event() for each line, then on_ended().
    std::string query;
    // After this time the shell ends the stream itself: it had asked the server to end it earlier.
    Duration lifetime_max{};
  };
  struct Wait {  // Call on_due() after `delay`, or earlier if success is likely.
    Duration delay{};
    // The reason; std::nullopt for the pause between two streams of a healthy watch.
    std::optional<Error> cause = {};
    // The server no longer serves the resource, so none of its objects exists.
    bool is_gone = false;
  };
  using Next = std::variant<List, Watch, Wait>;

  // What the shell does with an event, at once.
  struct Nothing {};
  struct Replace {                   // The list is complete: these are all objects that exist.
    std::vector<ObjectPtr> objects;  // Empty where a Listing has taken them.
  };
  struct Close {};  // End the stream and call on_ended() with no error of its own.
  using Effect = std::variant<Nothing, Change, Replace, Close>;

  [[nodiscard]] Next start(Instant now);

  // `resource_version` is that of the list, not of an object in it. The shell delivers the objects.
  [[nodiscard]] Next on_listed(std::string resource_version, Instant now);
  [[nodiscard]] Next on_list_failed(Error error, Instant now);

  [[nodiscard]] Effect on_event(Result<WatchEvent> event, Instant now);
  // The stream ended: by itself, by Close, by the shell (is_stalled(), lifetime_max) or
  // with `error`.
  [[nodiscard]] Next on_ended(std::optional<Error> error, Instant now);

  [[nodiscard]] Next on_due(Instant now);

  // Called instead of any of these when the shell has failed and does not know how much it
  // has delivered.
  [[nodiscard]] Next on_broken(Error error, Instant now);

  // The caller knows that the resource is served, or will be soon: for the next half minute a 404
  // is retried soon instead of at the usual interval.
  void expect_resource(Instant now);

  // True when the open stream has been silent for longer than a healthy one can be: the shell then
  // ends it. Called periodically.
  [[nodiscard]] bool is_stalled(Instant now) const;

  // Everything up to this version has been delivered; empty while a whole list is needed.
  [[nodiscard]] const std::string& resource_version() const { return resume_at_; }

  // How often the whole collection was requested again, after the first time.
  [[nodiscard]] std::uint64_t relist_count() const { return relist_count_; }

 private:
  enum class Phase : std::uint8_t { Idle, Listing, InitialEvents, Streaming, Waiting };

  [[nodiscard]] Next request(Instant now);
  [[nodiscard]] Next fail_with(Error error, Instant now);
  [[nodiscard]] Effect on_change(Change change);
  void on_initial(Change::Type type, ObjectPtr object);
  [[nodiscard]] Effect on_bookmark(Bookmark bookmark);
  void note_progress();
  [[nodiscard]] Duration next_backoff(Instant now);
  [[nodiscard]] Duration spread(Duration base, double share);
  [[nodiscard]] double fraction();  // At random, from 0 to 1.

  ServerTraits& traits_;
  const std::optional<Listing> listing_;
  std::mt19937_64 random_;
  Phase phase_ = Phase::Idle;

  // Where the next stream resumes. Empty: the next request is for the whole collection.
  std::string resume_at_;
  bool has_listed_ = false;  // At least one request for the whole collection was made.
  std::uint64_t relist_count_ = 0;
  // This server or this collection refused WatchList. The other watches learn of it only once the
  // plain list works, since the reason for the refusal may have been the selector.
  bool use_plain_list_ = false;

  // Of the open stream.
  Instant opened_at_;
  Instant last_line_at_;
  bool has_bookmarks_ = false;
  std::optional<Error> closed_by_;  // Why the machine answered Close.
  std::map<ObjectKey, ObjectPtr> initial_;

  std::uint32_t failure_count_ = 0;  // In a row.
  Instant last_failure_at_;
  std::uint32_t not_found_count_ = 0;  // In a row.
  std::optional<Instant> expected_until_;
};

}  // namespace hangar::kube
