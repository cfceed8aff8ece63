#include "base/metrics.h"

#include "base/assert.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hangar {

struct Metrics::Series {
  Counter counter;
  Gauge gauge;
  std::function<double()> read;
  std::unique_ptr<Histogram> histogram;
};

Histogram::Histogram(std::vector<double> upper_bounds)
    : upper_bounds_(std::move(upper_bounds)), counts_(upper_bounds_.size() + 1) {
  HANGAR_ASSERT(std::ranges::is_sorted(upper_bounds_), "buckets are searched by bisection");
}

void Histogram::observe(double value) {
  const auto bound = std::ranges::lower_bound(upper_bounds_, value);
  const auto index = static_cast<std::size_t>(bound - upper_bounds_.begin());
  counts_[index].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot result{.upper_bounds = upper_bounds_, .sum = sum_.load(std::memory_order_relaxed)};
  std::uint64_t running = 0;
  for (const auto& count : counts_) {
    running += count.load(std::memory_order_relaxed);
    result.cumulative_counts.push_back(running);
  }
  return result;
}

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

Metrics::Series& Metrics::series(const std::string& name, const std::string& help, Type type,
                                 MetricLabels labels) {
  std::ranges::sort(labels);
  Entry& entry = entries_.try_emplace(name, Entry{.help = help, .type = type}).first->second;
  HANGAR_ASSERT(entry.type == type, "one name has one type");
  auto& slot = entry.series[std::move(labels)];
  if (!slot) slot = std::make_unique<Series>();
  return *slot;
}

Counter& Metrics::counter(const std::string& name, const std::string& help, MetricLabels labels) {
  const std::scoped_lock lock(mutex_);
  return series(name, help, Type::Counter, std::move(labels)).counter;
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help, MetricLabels labels) {
  const std::scoped_lock lock(mutex_);
  return series(name, help, Type::Gauge, std::move(labels)).gauge;
}

Histogram& Metrics::histogram(const std::string& name, const std::string& help,
                              std::vector<double> upper_bounds, MetricLabels labels) {
  const std::scoped_lock lock(mutex_);
  Series& found = series(name, help, Type::Histogram, std::move(labels));
  if (!found.histogram) found.histogram = std::make_unique<Histogram>(std::move(upper_bounds));
  return *found.histogram;
}

void Metrics::gauge_read(const std::string& name, const std::string& help,
                         std::function<double()> read, MetricLabels labels) {
  const std::scoped_lock lock(mutex_);
  series(name, help, Type::Gauge, std::move(labels)).read = std::move(read);
}

void Metrics::counter_read(const std::string& name, const std::string& help,
                           std::function<double()> read, MetricLabels labels) {
  const std::scoped_lock lock(mutex_);
  series(name, help, Type::Counter, std::move(labels)).read = std::move(read);
}

Metrics::Family& Metrics::Families::family(const std::string& name, const std::string& help,
                                           Type type) {
  const auto [found, is_new] = by_name_.try_emplace(name);
  Family& family = found->second;
  if (is_new) family = {.name = name, .help = help, .type = type};
  HANGAR_ASSERT(family.type == type, "one name has one type");
  return family;
}

Metrics::Collection::~Collection() {
  const std::scoped_lock lock(metrics_.mutex_);
  std::erase(metrics_.collections_, this);
}

std::unique_ptr<Metrics::Collection> Metrics::collect_from(std::function<void(Families&)> collect) {
  std::unique_ptr<Collection> collection(new Collection(*this, std::move(collect)));
  const std::scoped_lock lock(mutex_);
  collections_.push_back(collection.get());
  return collection;
}

std::vector<Metrics::Family> Metrics::collect() const {
  const std::scoped_lock lock(mutex_);
  Families found;
  for (const auto& [name, entry] : entries_) {
    Family& family = found.family(name, entry.help, entry.type);
    for (const auto& [labels, one] : entry.series) {
      Sample sample{.labels = labels};
      switch (entry.type) {
        case Type::Counter:
          sample.value = one->read ? one->read() : one->counter.value();
          break;
        case Type::Gauge:
          sample.value = one->read ? one->read() : one->gauge.value();
          break;
        case Type::Histogram:
          sample.histogram = one->histogram->snapshot();
          break;
      }
      family.samples.push_back(std::move(sample));
    }
  }
  for (const Collection* const collection : collections_)
    collection->collect_(found);
  std::vector<Family> families;
  families.reserve(found.by_name_.size());
  for (auto& [name, family] : found.by_name_)
    families.push_back(std::move(family));
  return families;
}

std::vector<double> latency_buckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
}

std::vector<double> queue_buckets() {
  return {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000};
}

}  // namespace hangar
