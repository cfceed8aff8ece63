#include "host/costs.h"

#include "base/metrics.h"
#include "base/seconds.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/rates.h"
#include "io/loop.h"
#include "io/process_use.h"
#include "operators/fleet.h"
#include "operators/running_operator.h"
#include "recorder/record.h"
#include "seeing/cost.h"
#include "seeing/cost_book.h"
#include "wasm/digest.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::host {

namespace {

// How often memory and disk are measured.
constexpr std::chrono::seconds kCostLookEvery{10};

using PerNamespace = seeing::CostBook::PerNamespace;

PerNamespace by_label(const std::vector<budget::Accounts::Holding>& holdings) {
  PerNamespace bytes;
  for (const budget::Accounts::Holding& one : holdings) {
    // Memory that the host holds for itself is not charged to a tenant.
    if (!one.tenant.is_host()) bytes[std::string(one.tenant.label())] += one.bytes;
  }
  return bytes;
}

void take(PerNamespace& from, const std::string& name, std::uint64_t bytes) {
  const auto found = from.find(name);
  if (found != from.end()) found->second -= std::min(found->second, bytes);
}

}  // namespace

Costs::Costs(Sources sources, recorder::Recorder& recorder, Metrics& metrics)
    : sources_(sources),
      recorder_(recorder),
      began_(io::Loop::wall_now()),
      looked_(io::Loop::now()),
      collection_(
          metrics.collect_from([this](Metrics::Families& families) { collect(families); })) {
  recorder_.observe(*this);
  look_later();
}

Costs::~Costs() {
  recorder_.forget(*this);
}

void Costs::look_later() {
  timer_ = sources_.loop.after(kCostLookEvery, [this] {
    (void)look();
    look_later();
  });
}

std::string Costs::module_of(const recorder::Guest& guest) const {
  if (guest.contract != recorder::Contract::Operator) return {};
  const operators::RunningOperator* const found = sources_.operators.fleet().find(
      {.namespace_ = std::string(guest.namespace_), .name = std::string(guest.name)});
  return found == nullptr ? std::string() : found->module().digest().to_hex();
}

void Costs::on_turn(const recorder::Turn& turn) {
  book_.on_turn(turn);
}

void Costs::on_asked(const recorder::Asked& asked) {
  book_.on_asked(asked, module_of(asked.guest));
}

void Costs::on_answered(const recorder::Answered& answered) {
  book_.on_answered(answered, module_of(answered.guest));
}

std::vector<seeing::CostRow> Costs::look() {
  const Instant now = io::Loop::now();
  const io::ProcessUse use = io::process_use();
  // An exiting process is briefly counted neither as running nor as waited for.
  processes_cpu_ = std::max(processes_cpu_, use.cpu);
  seeing::CostBook::Look look{.guests = {},
                              .other_memory = by_label(sources_.memory.holdings()),
                              .other_disk = by_label(sources_.disk.holdings()),
                              .cache = by_label(sources_.gateway.feed_holdings()),
                              .cache_bytes = sources_.cache.statistics().bytes,
                              .resident_bytes = use.resident_bytes};
  // Operators of one namespace and module together: there may be ten thousand of them.
  using Key = std::pair<std::string_view, wasm::Digest>;
  std::map<Key, seeing::CostBook::Look::Guests> guests;
  sources_.operators.fleet().visit([&](const operators::RunningOperator& one) {
    const std::uint64_t memory = one.resident_bytes();
    const std::uint64_t disk = one.disk_bytes();
    if (memory == 0 && disk == 0) return;
    const std::string& name = one.key().namespace_;
    seeing::CostBook::Look::Guests& sum = guests[Key(name, one.module().digest())];
    sum.memory_bytes += memory;
    sum.disk_bytes += disk;
    if (memory > 0) {
      take(look.other_memory, name, sources_.memory.held_bytes(one.consumer()));
    }
    take(look.other_disk, name, disk);
  });
  for (auto& [key, sum] : guests) {
    sum.namespace_ = std::string(key.first);
    sum.module = key.second.to_hex();
    look.guests.push_back(std::move(sum));
  }
  book_.look(std::move(look), now - looked_);
  looked_ = now;
  std::vector<seeing::CostRow> rows = book_.rows(processor_time(), processes_cpu_);
  std::vector<seeing::CostRow> shown = series_.look(rows, now);
  const std::scoped_lock lock(mutex_);
  shown_ = std::move(shown);
  return rows;
}

std::map<std::string, Duration> Costs::processor_time() const {
  std::map<std::string, Duration> times;
  for (const auto& [tenant, use] : sources_.rates.uses(io::Loop::now()))
    times[std::string(tenant.label())] += use.total;
  return times;
}

seeing::FoundCost Costs::now() {
  std::vector<seeing::CostRow> rows = look();
  const WallTime at = io::Loop::wall_now();
  return {.at = at,
          .window = at - began_,
          .rows = std::move(rows),
          .processes = book_.whole(processes_cpu_),
          .problems = {}};
}

void Costs::collect(Metrics::Families& families) const {
  const std::scoped_lock lock(mutex_);
  const auto add = [&](const std::string& name, const std::string& help, auto value_of) {
    Metrics::Family& family = families.family(name, help, Metrics::Type::Counter);
    for (const seeing::CostRow& row : shown_) {
      family.samples.push_back({.labels = {{"namespace", row.namespace_}},
                                .value = static_cast<double>(value_of(row.cost)),
                                .histogram = {}});
    }
  };
  add("hangar_cost_cpu_seconds_total",
      "Processor time of a namespace, in seconds; (host) is the host itself.",
      [](const seeing::Cost& cost) { return in_seconds(cost.cpu); });
  add("hangar_cost_memory_byte_seconds_total",
      "Resident memory of a namespace's guests over time; (host) is the host itself.",
      [](const seeing::Cost& cost) { return cost.memory_byte_seconds; });
  add("hangar_cost_cache_byte_seconds_total",
      "Memory of the cache of objects over time, by share of use.",
      [](const seeing::Cost& cost) { return cost.cache_byte_seconds; });
  add("hangar_cost_disk_byte_seconds_total", "Disk of a namespace's sleeping guests over time.",
      [](const seeing::Cost& cost) { return cost.disk_byte_seconds; });
  add("hangar_cost_requests_total", "Requests of a namespace's guests to the API server.",
      [](const seeing::Cost& cost) { return cost.requests; });
  add("hangar_cost_bytes_total",
      "Bodies of requests and answers of a namespace's guests, in bytes.",
      [](const seeing::Cost& cost) { return cost.read_bytes + cost.written_bytes; });
}

}  // namespace hangar::host
