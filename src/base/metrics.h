// Metrics of the running process, recorded here and exposed by ops/ in Prometheus' format.
//
// Names follow controller-runtime and client-go where these have the same metric, so that existing
// dashboards work. Label values come from small closed sets (a controller, a verb, a code), never
// from object names: each new combination is kept for ever. For series that come and go,
// use collect_from().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hangar {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Only grows. Any thread.
class Counter {
 public:
  void add(double amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

// Goes up and down. Any thread.
class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

// Counts of observations in buckets, their sum and count. Any thread.
class Histogram {
 public:
  // `upper_bounds` ascending, without +Inf.
  explicit Histogram(std::vector<double> upper_bounds);

  void observe(double value);

  struct Snapshot {
    std::vector<double> upper_bounds;
    std::vector<std::uint64_t> cumulative_counts;  // One more than bounds: the last is +Inf.
    double sum = 0;
  };
  [[nodiscard]] Snapshot snapshot() const;

 private:
  const std::vector<double> upper_bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

// The metric families of one process. A returned reference is valid as long as this object; the
// same name and labels return the same metric again. Any thread.
class Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  Counter& counter(const std::string& name, const std::string& help, MetricLabels labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, MetricLabels labels = {});
  Histogram& histogram(const std::string& name, const std::string& help,
                       std::vector<double> upper_bounds, MetricLabels labels = {});

  // A gauge whose value is read at each scrape. `read` is called on the scraping thread.
  void gauge_read(const std::string& name, const std::string& help, std::function<double()> read,
                  MetricLabels labels = {});

  // The same for a value that only grows.
  void counter_read(const std::string& name, const std::string& help, std::function<double()> read,
                    MetricLabels labels = {});

  enum class Type : std::uint8_t { Counter, Gauge, Histogram };
  struct Sample {
    MetricLabels labels;
    double value = 0;               // Counter and gauge.
    Histogram::Snapshot histogram;  // Histogram.
  };
  struct Family {
    std::string name;
    std::string help;
    Type type = Type::Counter;
    std::vector<Sample> samples;
  };
  // What one scrape has collected so far.
  class Families {
   public:
    // Returns the same object for the same name; it is valid until the scrape ends. One name has
    // one type.
    Family& family(const std::string& name, const std::string& help, Type type);

   private:
    friend class Metrics;
    std::map<std::string, Family> by_name_;
  };

  // Unregisters the `collect` of collect_from().
  class Collection {
   public:
    Collection(const Collection&) = delete;
    Collection& operator=(const Collection&) = delete;
    ~Collection();

   private:
    friend class Metrics;
    Collection(Metrics& metrics, std::function<void(Families&)> collect)
        : metrics_(metrics), collect_(std::move(collect)) {}

    Metrics& metrics_;
    const std::function<void(Families&)> collect_;
  };

  // For series that come and go with the objects they describe. At each scrape `collect` adds the
  // series that exist at that moment, on the scraping thread, and must not call this object. It is
  // called until the returned Collection is destroyed, which also happens on the scraping thread.
  // `collect` itself bounds how many series it adds.
  [[nodiscard]] std::unique_ptr<Collection> collect_from(std::function<void(Families&)> collect);

  // Every family, by name.
  [[nodiscard]] std::vector<Family> collect() const;

 private:
  struct Series;
  struct Entry {
    std::string help;
    Type type = Type::Counter;
    std::map<MetricLabels, std::unique_ptr<Series>> series;
  };
  Series& series(const std::string& name, const std::string& help, Type type, MetricLabels labels);

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::vector<const Collection*> collections_;
};

// Seconds, as controller-runtime's reconcile and client-go's request histograms have them.
[[nodiscard]] std::vector<double> latency_buckets();
// Seconds, as client-go's histograms of work queues have them: 10 ns to 1000 s.
[[nodiscard]] std::vector<double> queue_buckets();

}  // namespace hangar
