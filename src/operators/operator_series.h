// What /metrics says of each operator: under the names that controller-runtime and client-go have
// for it in a container, with `controller` being <namespace>/<name>, so that dashboards and alerts
// that were made for controllers work; and what only a controller that sleeps has.
#pragma once

#include "base/metrics.h"
#include "base/packing.h"
#include "base/time.h"
#include "kube/object.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

// A Histogram of the loop thread's alone, whose bounds all of its kind share: thousands of these
// lie in a host whose operators sleep.
class SlimHistogram {
 public:
  // `bounds` outlive it, and are as a Histogram's.
  explicit SlimHistogram(std::span<const double> bounds);

  void observe(double value);
  [[nodiscard]] Histogram::Snapshot snapshot() const;

  // What it has counted, for a Packer or an Unpacker.
  template <class Archive>
  void visit(this auto& self, Archive& archive) {
    for (auto& count : self.counts_)
      archive(count);
    archive(self.sum_);
  }

 private:
  std::span<const double> bounds_;
  std::array<std::uint64_t, 16> counts_{};  // Of these as many as there are bounds, and one.
  double sum_ = 0;
};

// Guests choose their methods; what is shown is one of HTTP's, or "other".
enum class KnownMethod : std::uint8_t { Get, Post, Put, Patch, Delete, Head, Options, Other };
[[nodiscard]] KnownMethod known_method(std::string_view method);

// What has happened to one operator since the host has run it, or to several that share one. Loop
// thread.
struct OperatorSeries {
  OperatorSeries();

  // One answer of the API server, as the operator's guest got it.
  void answered(KnownMethod method, int code);

  std::uint64_t turns_succeeded = 0;
  std::uint64_t failures = 0;  // Turns that failed, and whatever else ended a guest.
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
    KnownMethod method = KnownMethod::Other;  // This when there are too many kinds,
    int code = 0;                             // and this zero.
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
};

// "<namespace>/<name>"; the name alone where there is no namespace.
[[nodiscard]] std::string controller_label(const kube::ObjectKey& key);

// All series of `readings`.
void add_series(Metrics::Families& families, std::span<const OperatorReading> readings);

class OperatorSeriesPool;

// The series that one operator's are counted in: its own, or those that it shares with others.
// Loop thread.
class OperatorSeriesAccount {
 public:
  OperatorSeriesAccount(const OperatorSeriesAccount&) = delete;
  OperatorSeriesAccount& operator=(const OperatorSeriesAccount&) = delete;
  ~OperatorSeriesAccount();

  [[nodiscard]] OperatorSeries& series();
  // Nothing is to be counted for a while: its own take some tens of bytes until series() is asked
  // for.
  void rest();

  [[nodiscard]] bool is_own() const { return is_own_; }
  [[nodiscard]] OperatorSeries read() const;

 private:
  friend class OperatorSeriesPool;
  OperatorSeriesAccount(OperatorSeriesPool& pool, bool is_own) : pool_(pool), is_own_(is_own) {}

  OperatorSeriesPool& pool_;
  const bool is_own_;
  std::unique_ptr<OperatorSeries> open_;  // Of its own, while they are not packed.
  PackedBytes packed_;                    // Empty: nothing was counted.
};

// Who has series of its own: the first kOperatorSeriesMax that ask. The others share one, so that
// there are never more. Loop thread.
class OperatorSeriesPool {
 public:
  explicit OperatorSeriesPool(std::size_t own_max) : own_max_(own_max) {}

  // The pool outlives it.
  [[nodiscard]] OperatorSeriesAccount take();
  [[nodiscard]] const OperatorSeries& shared() const { return shared_; }

 private:
  friend class OperatorSeriesAccount;

  const std::size_t own_max_;
  std::size_t own_count_ = 0;
  OperatorSeries shared_;
};

}  // namespace hangar::operators
