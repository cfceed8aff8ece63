#include "kube/watch/watch_machine.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::kube {

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// As client-go's reflector: 800 ms doubled up to 30 s, reset after two minutes without a failure.
constexpr ExponentialBackoff kBackoff{.min = milliseconds(800), .max = seconds(30), .jitter = 1};
constexpr minutes kHealthyAfter{2};

// A server that restarts ends all streams at once; they reconnect spread over this time.
constexpr milliseconds kReconnectSpread{200};

// People change permissions and CRDs, so retrying after minutes is too slow and every second is
// a burden.
constexpr seconds kDeniedRetry{15};
constexpr seconds kGoneRetry{30};

// One 404 may come from an API server that has not read its CRDs yet. Reporting all objects as
// deleted is too grave for one answer: a second one, this much later, must agree.
constexpr seconds kGoneConfirm{2};

// A CRD is announced, and even established, before the API server serves its resource.
constexpr seconds kServedMax{30};

// client-go requests streams of 5 to 10 minutes, so that the load spreads over API servers again.
constexpr minutes kStreamMin{5};
constexpr minutes kStreamMax{10};
constexpr seconds kStreamGrace{30};

// A stream that ends sooner did not work, whatever it sent. Without a pause such streams would
// follow each other as fast as the network allows.
constexpr seconds kStreamTooShort{1};

// The server sends initial events as fast as it can. A server whose etcd lacks progress
// notifications never sends the bookmark that ends them.
constexpr seconds kInitialEventsSilenceMax{30};

// A server that sends bookmarks sends one a minute; after three missing ones it is gone.
constexpr minutes kBookmarkSilenceMax{3};

constexpr bool is_about_our_place(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Expired:        // The server forgot our place.
    case ErrorKind::InvalidInput:   // It never knew it, or sent what we cannot read.
    case ErrorKind::Corrupt:        // The same.
    case ErrorKind::LimitExceeded:  // An event too large for us.
      return true;
    default:
      return false;
  }
}

}  // namespace

WatchMachine::WatchMachine(ServerTraits& traits, std::uint64_t seed, std::optional<Listing> listing)
    : traits_(traits), listing_(std::move(listing)), random_(seed) {}

WatchMachine::Next WatchMachine::start(Instant now) {
  HANGAR_ASSERT(phase_ == Phase::Idle, "a machine starts once");
  return request(now);
}

WatchMachine::Next WatchMachine::on_listed(std::string resource_version, Instant now) {
  HANGAR_ASSERT(phase_ == Phase::Listing, "only an open list ends");
  if (resource_version.empty()) {
    return fail_with(Error(ErrorKind::InvalidInput, "list has no resourceVersion"), now);
  }
  if (use_plain_list_) traits_.has_watch_list = false;
  not_found_count_ = 0;
  resume_at_ = std::move(resource_version);
  return request(now);
}

WatchMachine::Next WatchMachine::on_list_failed(Error error, Instant now) {
  HANGAR_ASSERT(phase_ == Phase::Listing, "only an open list fails");
  return fail_with(std::move(error), now);
}

WatchMachine::Effect WatchMachine::on_event(Result<WatchEvent> event, Instant now) {
  HANGAR_ASSERT(phase_ == Phase::InitialEvents || phase_ == Phase::Streaming,
                "events come from an open stream");
  if (closed_by_) return Close{};  // The rest of a piece of the body that was already read.
  last_line_at_ = now;
  if (!event) {
    closed_by_ = std::move(event).error();
    return Close{};
  }
  if (auto* change = std::get_if<Change>(&*event)) return on_change(std::move(*change));
  if (auto* bookmark = std::get_if<Bookmark>(&*event)) return on_bookmark(std::move(*bookmark));
  closed_by_ = std::get<StreamError>(*std::move(event)).error;
  return Close{};
}

WatchMachine::Next WatchMachine::on_ended(std::optional<Error> error, Instant now) {
  HANGAR_ASSERT(phase_ == Phase::InitialEvents || phase_ == Phase::Streaming,
                "only an open stream ends");
  const bool was_initial = phase_ == Phase::InitialEvents;
  const bool was_stalled = is_stalled(now);
  initial_.clear();  // Half a list is useless.
  if (closed_by_) error = std::exchange(closed_by_, std::nullopt);

  if (was_initial && (was_stalled || (error && error->kind() == ErrorKind::InvalidInput))) {
    use_plain_list_ = true;
    return request(now);
  }
  if (error) return fail_with(*std::move(error), now);
  if (was_initial) {
    return fail_with(Error(ErrorKind::Unavailable, "watch ended within the initial list"), now);
  }
  if (was_stalled) return fail_with(Error(ErrorKind::Unavailable, "watch went silent"), now);
  if (now - opened_at_ < kStreamTooShort) {
    return fail_with(Error(ErrorKind::Unavailable, "watch ended as soon as it began"), now);
  }
  note_progress();
  phase_ = Phase::Waiting;
  return Wait{.delay = spread(Duration::zero(), 1.0)};
}

WatchMachine::Next WatchMachine::on_due(Instant now) {
  HANGAR_ASSERT(phase_ == Phase::Waiting, "only a wait can be over");
  return request(now);
}

bool WatchMachine::is_stalled(Instant now) const {
  const Duration silence = now - last_line_at_;
  if (phase_ == Phase::InitialEvents) return silence >= kInitialEventsSilenceMax;
  return phase_ == Phase::Streaming && has_bookmarks_ && silence >= kBookmarkSilenceMax;
}

WatchMachine::Next WatchMachine::request(Instant now) {
  const bool wants_all = resume_at_.empty();
  if (wants_all) {
    // A plain list after a refused WatchList counts as the same attempt.
    const bool is_same_attempt = phase_ == Phase::InitialEvents;
    if (has_listed_ && !is_same_attempt) ++relist_count_;
    has_listed_ = true;
    if (use_plain_list_ || !traits_.has_watch_list) {
      phase_ = Phase::Listing;
      return List{};
    }
  }
  phase_ = wants_all ? Phase::InitialEvents : Phase::Streaming;
  opened_at_ = now;
  last_line_at_ = now;
  has_bookmarks_ = false;

  const auto lifetime = std::uniform_int_distribution<std::int64_t>(
      seconds(kStreamMin).count(), seconds(kStreamMax).count())(random_);
  std::string query = fmt::format("allowWatchBookmarks=true&timeoutSeconds={}", lifetime);
  if (wants_all) {
    // Without a resourceVersion the list is at least as new as any write before this request.
    query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  } else {
    query += "&resourceVersion=" + resume_at_;
  }
  return Watch{std::move(query), seconds(lifetime) + kStreamGrace};
}

WatchMachine::Next WatchMachine::on_broken(Error error, Instant now) {
  resume_at_.clear();
  initial_.clear();
  closed_by_.reset();
  return fail_with(std::move(error), now);
}

WatchMachine::Next WatchMachine::fail_with(Error error, Instant now) {
  phase_ = Phase::Waiting;
  if (error.kind() != ErrorKind::NotFound) not_found_count_ = 0;

  switch (error.kind()) {
    case ErrorKind::Denied:
      return Wait{.delay = spread(kDeniedRetry, 0.2), .cause = std::move(error)};
    case ErrorKind::NotFound: {
      ++not_found_count_;
      const bool is_confirmed = not_found_count_ >= 2;
      if (is_confirmed) resume_at_.clear();
      const bool is_expected = expected_until_ && now < *expected_until_;
      return Wait{.delay = spread(is_confirmed && !is_expected ? kGoneRetry : kGoneConfirm, 0.2),
                  .cause = std::move(error),
                  .is_gone = is_confirmed};
    }
    default:
      break;
  }
  if (is_about_our_place(error.kind())) resume_at_.clear();
  // An expired place is not the server's fault, unless it happens again at once.
  const bool is_first = failure_count_ == 0 || now - last_failure_at_ >= kHealthyAfter;
  Duration delay = next_backoff(now);
  if (error.kind() == ErrorKind::Expired && is_first) delay = spread(Duration::zero(), 1.0);
  return Wait{.delay = delay, .cause = std::move(error)};
}

void WatchMachine::expect_resource(Instant now) {
  expected_until_ = now + kServedMax;
}

WatchMachine::Effect WatchMachine::on_change(Change change) {
  if (!change.object) {
    closed_by_ = Error(ErrorKind::InvalidInput, "watch event has no object");
    return Close{};
  }
  if (phase_ == Phase::InitialEvents) {
    on_initial(change.type, std::move(change.object));
    return Nothing{};
  }
  note_progress();
  // A change without a version is unheard of, but must not cause a new list.
  if (!change.object->resource_version().empty()) resume_at_ = change.object->resource_version();
  return change;
}

void WatchMachine::on_initial(Change::Type type, ObjectPtr object) {
  const bool is_gone = type == Change::Type::Deleted;
  if (listing_ && is_gone) return listing_->on_unlisted(object->key());
  if (listing_) return listing_->on_listed(std::move(object));
  const ObjectKey key = object->key();
  if (is_gone) {
    initial_.erase(key);
  } else {
    initial_.insert_or_assign(key, std::move(object));
  }
}

WatchMachine::Effect WatchMachine::on_bookmark(Bookmark bookmark) {
  if (phase_ == Phase::Streaming) {
    has_bookmarks_ = true;
    note_progress();
    if (!bookmark.resource_version.empty()) resume_at_ = std::move(bookmark.resource_version);
    return Nothing{};
  }
  // Others may come before the list is complete; only the bookmark that ends it gives a place to
  // resume from.
  if (!bookmark.ends_initial_events) return Nothing{};
  if (bookmark.resource_version.empty()) {
    closed_by_ = Error(ErrorKind::InvalidInput, "list has no resourceVersion");
    return Close{};
  }
  phase_ = Phase::Streaming;
  not_found_count_ = 0;
  resume_at_ = std::move(bookmark.resource_version);
  Replace replace;
  replace.objects.reserve(initial_.size());
  for (auto& [key, object] : initial_)
    replace.objects.push_back(std::move(object));
  initial_.clear();
  return replace;
}

// Called for events that only a working stream delivers. A list is not enough: if each list were
// followed by a failure, the lists would continue at the shortest delay.
void WatchMachine::note_progress() {
  failure_count_ = 0;
  not_found_count_ = 0;
}

Duration WatchMachine::next_backoff(Instant now) {
  if (now - last_failure_at_ >= kHealthyAfter) failure_count_ = 0;
  last_failure_at_ = now;
  return kBackoff.delay(failure_count_++, fraction());
}

// Returns `base` lengthened by up to `share` of itself; for a base of zero, a part of the
// reconnect spread.
Duration WatchMachine::spread(Duration base, double share) {
  if (base > Duration::zero()) return with_jitter(base, share, fraction());
  return with_jitter(kReconnectSpread, share, fraction()) - kReconnectSpread;
}

double WatchMachine::fraction() {
  return std::uniform_real_distribution<double>(0, 1)(random_);
}

}  // namespace hangar::kube
