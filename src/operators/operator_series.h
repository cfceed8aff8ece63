// The series of each operator in /metrics: under the names that controller-runtime and client-go
// have in a container, with `controller` being <namespace>/<name>, so that dashboards and alerts
// for controllers work; and series that only a controller that sleeps has.
#pragma once

#include "base/metrics.h"
#include "base/packing.h"
#include "base/time.h"
#include "kube/object.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

// A Histogram for the loop thread only. All of one kind share their bounds, since a host keeps
// thousands of these for operators that sleep.
class SlimHistogram {
 public:
  // `bounds` outlive it, and are as a Histogram's.
  explicit SlimHistogram(std::span<const double> bounds);

  void observe(double value);
  [[nodiscard]] Histogram::Snapshot snapshot() const;

  // Visits the counts, for a Packer or an Unpacker.
  template <class Archive>
  void visit(this auto& self, Archive& archive) {
    for (auto& count : self.counts_)
      archive(count);
    archive(self.sum_);
  }

 private:
  std::span<const double> bounds_;
  std::array<std::uint64_t, 16> counts_{};  // One for each bound, and one more.
  double sum_ = 0;
};

// Guests choose their methods; the label is one of HTTP's, or "other".
enum class KnownMethod : std::uint8_t { Get, Post, Put, Patch, Delete, Head, Options, Other };
[[nodiscard]] KnownMethod known_method(std::string_view method);
// Whether a request of this method may change something.
[[nodiscard]] bool is_write(KnownMethod method);

// The counts of one operator since the host started it, or of several that share one set.
// Loop thread.
struct OperatorSeries {
  OperatorSeries();

  // Counts one answer, as the operator's guest got it.
  void answered(KnownMethod method, int code);

  std::uint64_t turns_succeeded = 0;
  std::uint64_t failures = 0;  // Failed turns, and all else that ended a guest.
  std::uint64_t traps = 0;
  std::uint64_t restarts = 0;
  std::uint64_t wakes = 0;
  std::uint64_t events = 0;
  std::uint64_t events_coalesced = 0;
  std::uint64_t resumes = 0;
  std::uint64_t suspends = 0;
  Duration resume_time{};
  Duration suspend_time{};
  Duration cpu_time{};
  SlimHistogram turn_seconds;
  SlimHistogram queue_seconds;  // From the first event's arrival to the beginning of the turn.

  struct Answers {
    KnownMethod method = KnownMethod::Other;  // Other if there are too many kinds,
    int code = 0;                             // and then zero.
    std::uint64_t count = 0;
  };
  std::vector<Answers> answers;
};

// One operator at the moment of a scrape.
struct OperatorReading {
  std::string controller;  // The label.
  OperatorSeries series;
  std::uint64_t resident_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t events_waiting = 0;
  std::uint64_t turns_under_way = 0;
  std::uint64_t operators = 1;  // More where several share the series.
  // Restlessness::period; nothing where several share the series.
  std::optional<Duration> restless_period = {};
};

// "<namespace>/<name>"; the name alone where there is no namespace.
[[nodiscard]] std::string controller_label(const kube::ObjectKey& key);

// All series of `readings`.
void add_series(Metrics::Families& families, std::span<const OperatorReading> readings);

class OperatorSeriesPool;

// The series that one operator is counted in: its own, or those that it shares with others.
// Loop thread.
class OperatorSeriesAccount {
 public:
  OperatorSeriesAccount(const OperatorSeriesAccount&) = delete;
  OperatorSeriesAccount& operator=(const OperatorSeriesAccount&) = delete;
  ~OperatorSeriesAccount();

  [[nodiscard]] OperatorSeries& series();
  // Nothing is counted for a while: packs the operator's own series into some tens of bytes until
  // series() is called.
  void rest();

  [[nodiscard]] bool is_own() const { return is_own_; }
  [[nodiscard]] OperatorSeries read() const;

 private:
  friend class OperatorSeriesPool;
  OperatorSeriesAccount(OperatorSeriesPool& pool, bool is_own) : pool_(pool), is_own_(is_own) {}

  OperatorSeriesPool& pool_;
  const bool is_own_;
  std::unique_ptr<OperatorSeries> open_;  // Its own series while unpacked.
  PackedBytes packed_;                    // Empty: nothing was counted.
};

// Gives series of its own to each of the first kOperatorSeriesMax operators. The others share one
// set, so that the number stays bounded. Loop thread.
class OperatorSeriesPool {
 public:
  explicit OperatorSeriesPool(std::size_t own_max) : own_max_(own_max) {}

  // The pool outlives the account.
  [[nodiscard]] OperatorSeriesAccount take();
  [[nodiscard]] const OperatorSeries& shared() const { return shared_; }

 private:
  friend class OperatorSeriesAccount;

  const std::size_t own_max_;
  std::size_t own_count_ = 0;
  OperatorSeries shared_;
};

}  // namespace hangar::operators
