#include "operators/fleet.h"

#include "base/assert.h"
#include "budget/memory_pressure.h"
#include "budget/namespace_samples.h"
#include "budget/pressure_watch.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "operators/limits.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/snapshot/snapshot.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

namespace hangar::operators {

namespace {

// Counted from when a guest left memory, so that guests that leave together cost one pass, and
// their code has been unloaded by then.
constexpr auto kGiveBackDelay = 2 * limits::kSleepingCodeKept + std::chrono::seconds(1);

// How often a host that is to be replaced looks whether its guests sleep.
constexpr std::chrono::milliseconds kSettlePeriod{10};

Resident reading_of(const RunningOperator& running, std::uint64_t bytes) {
  const auto expected = running.expected_wake();
  return {.bytes = bytes,
          .idle_since = running.life().idle_since(),
          .cost = running.ledger().figures().last_cpu_time,
          .next_wake = expected ? std::optional(expected->at) : std::nullopt};
}

}  // namespace

std::vector<std::size_t> least_valuable(std::span<const Resident> residents,
                                        std::uint64_t excess_bytes, Instant now) {
  const auto uselessness = [&](std::size_t index) {
    const Resident& resident = residents[index];
    // A wake costs something even if it was too short to measure.
    const std::chrono::duration<double> cost =
        std::max<Duration>(resident.cost, std::chrono::microseconds(10));
    const std::chrono::duration<double> until_wake =
        resident.next_wake
            ? std::max(*resident.next_wake - now, Duration(std::chrono::milliseconds(1)))
            : now - resident.idle_since;
    return static_cast<double>(resident.bytes) * until_wake.count() / cost.count();
  };
  std::vector<std::size_t> order(residents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t left, std::size_t right) {
    return uselessness(left) > uselessness(right);
  });
  std::uint64_t freed = 0;
  std::size_t count = 0;
  while (count < order.size() && freed < excess_bytes)
    freed += residents[order[count++]].bytes;
  order.resize(count);
  return order;
}

std::vector<std::size_t> guests_to_evict(const budget::Contest& contest,
                                         std::span<const Evictable> guests) {
  std::map<budget::Tenant, std::uint64_t> held = contest.held;
  std::uint64_t coming = contest.all_bytes;
  for (const auto& [tenant, bytes] : held)
    coming -= std::min(coming, bytes);
  const budget::EqualParts parts(contest);
  std::uint64_t wanted = 0;
  for (const auto& [tenant, bytes] : contest.claims)
    if (parts.allow(tenant, bytes)) wanted = std::max(wanted, bytes);

  const auto leaves = [&](const Evictable& guest) {
    coming += guest.bytes;
    std::uint64_t& of_tenant = held[guest.tenant];
    of_tenant -= std::min(of_tenant, guest.bytes);
  };
  std::vector<std::size_t> staying;
  for (std::size_t index = 0; index < guests.size(); ++index) {
    if (guests[index].is_leaving) {
      leaves(guests[index]);
    } else if (held[guests[index].tenant] > parts.bytes()) {
      staying.push_back(index);
    }
  }
  std::ranges::sort(staying, std::greater(),
                    [&](std::size_t index) { return guests[index].bytes; });
  std::vector<std::size_t> evicted;
  for (const std::size_t index : staying) {
    if (coming >= wanted) break;
    if (held[guests[index].tenant] <= parts.bytes()) continue;
    leaves(guests[index]);
    evicted.push_back(index);
  }
  return evicted;
}

std::vector<std::size_t> to_leave_early(std::span<const Resident> residents, Instant now) {
  std::uint64_t held = 0;
  std::vector<Resident> idle;
  std::vector<std::size_t> indices;
  for (std::size_t index = 0; index < residents.size(); ++index) {
    held += residents[index].bytes;
    if (now - residents[index].idle_since < limits::kStartedIdle) continue;
    idle.push_back(residents[index]);
    indices.push_back(index);
  }
  if (held <= limits::kStartedBytes) return {};
  std::vector<std::size_t> leaving = least_valuable(idle, held - limits::kStartedBytes, now);
  std::ranges::transform(leaving, leaving.begin(),
                         [&indices](std::size_t index) { return indices[index]; });
  return leaving;
}

Fleet::Fleet(const Parts& parts, Listener listener)
    : fleet_parts_(parts),
      listener_(std::move(listener)),
      metrics_(parts.metrics),
      // One namespace alone gets half of them.
      starts_(parts.loop, {.slots = 2 * limits::kOperatorStartsMax}),
      large_starts_(parts.loop, {.slots = 2 * limits::kLargeStartsMax}),
      turns_(parts.loop, {.slots = limits::kOperatorTurnsMax}),
      answers_(parts.answers),
      planners_(parts.metrics),
      pressure_suspends_(parts.metrics.counter("hangar_operator_pressure_suspends_total",
                                               "guests that were suspended because the "
                                               "container or the machine is short of memory")),
      evictions_(parts.metrics.counter(
          "hangar_operator_evictions_total",
          "evicted guests whose namespace held more than an equal share of the memory")),
      page_cache_drops_(parts.metrics.counter(
          "hangar_page_cache_drops_total",
          "files of images, code and snapshots dropped from the page cache under pressure")),
      parts_{
          .loop = parts.loop,
          .engine = parts.engine,
          .guests = parts.guests,
          .output = parts.output,
          .read_inputs = fleet_parts_.read_inputs,
          .log = parts.log,
          .starts = starts_,
          .large_starts = large_starts_,
          .turns = turns_,
          .requests = {.loop = parts.loop,
                       .gateway = parts.gateway,
                       .answers = answers_,
                       .outbound = parts.outbound},
          .ledger = {.metrics = metrics_,
                     .series = series_,
                     .recorder = parts.recorder,
                     .may_record_bodies = parts.may_record_bodies},
          .planners = planners_,
          .may_load_ahead = [this](const budget::Consumer& consumer,
                                   std::uint64_t bytes) { return may_load_ahead(consumer, bytes); },
          .on_change = [this](RunningOperator& changed) { on_change(changed); },
          .on_failure =
              [this](RunningOperator& failed, const Error& error) {
                on_change(failed);
                listener_.on_failure(failed, error);
              },
          .on_bound = [this](RunningOperator& refused,
                             const std::string& message) { listener_.on_bound(refused, message); }},
      dropped_(parts.loop),
      listening_(parts.pressure.listen(
          {.guest_bytes = [this] { return resident_bytes_; },
           .on_advice = [this](const auto& advice) { on_pressure(advice); }})),
      collection_(
          parts.metrics.collect_from([this](Metrics::Families& families) { collect(families); })) {
  parts.metrics.gauge_read("hangar_operators", "operators that this host runs",
                           [this] { return static_cast<double>(operators_.size()); });
  parts.metrics.gauge_read("hangar_operators_resident", "operators in memory",
                           [this] { return static_cast<double>(resident_.size()); });
  parts.metrics.gauge_read(
      "hangar_operator_restless", "operators whose timers wake them for nothing", [this] {
        const Instant now = io::Loop::now();
        return static_cast<double>(std::ranges::count_if(operators_, [now](const auto& running) {
          return running->restlessness().period(now).has_value();
        }));
      });
  parts.metrics.gauge_read("hangar_operator_answer_bytes",
                           "answers that wait for guests, and those of their turns",
                           [this] { return static_cast<double>(answers_.held_bytes()); });
  parts.metrics.gauge_read("hangar_operator_resident_bytes", "memory of all guests",
                           [this] { return static_cast<double>(resident_bytes_); });
  parts.metrics.gauge_read("hangar_operator_disk_bytes", "snapshots of all sleeping guests",
                           [this] {
                             double bytes = 0;
                             for (const auto& running : operators_)
                               bytes += static_cast<double>(running->disk_bytes());
                             return bytes;
                           });
  if (budget::Rates* const rates = parts.engine.rates()) turns_.brake(*rates);
  if (budget::ReservationQueue* const memory = parts.engine.memory()) {
    memory->set_on_shortage(
        [this](const budget::Consumer& waiting, const budget::Shortage& shortage) {
          make_room_for(shortage, waiting.tenant.namespace_name());
        });
  }
}

Fleet::~Fleet() {
  if (budget::ReservationQueue* const memory = fleet_parts_.engine.memory()) {
    memory->set_on_shortage({});
  }
  HANGAR_ASSERT(operators_.empty(), "a fleet is stopped before it is destroyed");
}

io::Task<void> Fleet::run(Operator spec, OperatorModule module) {
  RunningOperator* const running = co_await add(std::move(spec), std::move(module));
  running->start();
}

io::Task<Result<>> Fleet::take_over(Operator spec, OperatorModule module, CarriedOperator carried) {
  RunningOperator* const running = co_await add(std::move(spec), std::move(module));
  Result<> taken = running->take_over(std::move(carried));
  if (!taken) running->start();
  co_return taken;
}

io::Task<CarriedFleet> Fleet::carry(Duration within) {
  for (const std::shared_ptr<RunningOperator>& running : operators_)
    running->hold();
  const Instant until = io::Loop::now() + within;
  const auto is_settled = [](const auto& running) { return running->is_settled(); };
  while (!std::ranges::all_of(operators_, is_settled) && io::Loop::now() < until)
    std::ignore = co_await fleet_parts_.loop.sleep(kSettlePeriod, {});

  // In one turn of the loop: nothing arrives in between.
  CarriedFleet carried;
  for (const std::shared_ptr<RunningOperator>& running : operators_) {
    Result<CarriedOperator> one = running->carry();
    if (one) {
      carried.operators.push_back(*std::move(one));
    } else {
      carried.left.push_back({.key = running->key(), .reason = one.error().message()});
    }
  }
  co_await stop();
  co_return carried;
}

void Fleet::discard(CarriedOperator carried) {
  fleet_parts_.guests.discard(std::move(carried.guest));
}

io::Task<RunningOperator*> Fleet::add(Operator spec, OperatorModule module) {
  co_await remove(spec.key);
  const auto [running, is_new] = operators_.insert(std::allocate_shared<RunningOperator>(
      slots::Allocator<RunningOperator>(), parts_, spec, std::move(module)));
  HANGAR_ASSERT(is_new, "an operator is run by one task at a time");
  co_return running->get();
}

io::Task<void> Fleet::remove(kube::ObjectKey key) {
  const auto found = operators_.find(key);
  if (found == operators_.end()) co_return;
  const std::shared_ptr<RunningOperator> removed = *found;
  operators_.erase(found);
  co_await removed->stop();
  on_change(*removed);
}

io::Task<void> Fleet::stop() {
  while (!operators_.empty())
    co_await remove((*operators_.begin())->key());
  // The worker has the store.
  while (is_dropping_)
    std::ignore = co_await dropped_.wait({});
}

void Fleet::visit(const std::function<void(const RunningOperator&)>& visitor) const {
  for (const std::shared_ptr<RunningOperator>& one : operators_)
    visitor(*one);
}

const RunningOperator* Fleet::find(const kube::ObjectKey& key) const {
  const auto found = operators_.find(key);
  return found == operators_.end() ? nullptr : found->get();
}

io::Task<Result<std::string>> Fleet::scrape(kube::ObjectKey key) const {
  const auto found = operators_.find(key);
  if (found == operators_.end()) {
    co_return fail(ErrorKind::NotFound, "this host runs no such operator");
  }
  const std::shared_ptr<RunningOperator> running = *found;
  co_return co_await running->scrape();
}

io::Task<GuestReviews::Answer> Fleet::review(kube::ObjectKey key,
                                             abi::kube_runtime::HttpRequest request,
                                             std::stop_token stop) const {
  const auto found = operators_.find(key);
  if (found == operators_.end()) {
    co_return fail(ErrorKind::NotFound, "this host runs no such operator");
  }
  const std::shared_ptr<RunningOperator> running = *found;
  co_return co_await running->review(std::move(request), std::move(stop));
}

void Fleet::on_change(RunningOperator& changed) {
  if (const auto known = resident_.find(&changed); known != resident_.end()) {
    resident_bytes_ -= known->second;
    resident_.erase(known);
  }
  if (const std::uint64_t bytes = changed.resident_bytes(); bytes > 0) {
    resident_.emplace(&changed, bytes);
    resident_bytes_ += bytes;
  }
  make_room();
  make_room_for_starts();
  // Also for flights and machines: operators that have become idle since a wait began may leave.
  if (const budget::ReservationQueue* const memory = fleet_parts_.engine.memory()) {
    const std::string& namespace_name = changed.key().namespace_;
    for (const budget::Tenant& tenant :
         {budget::Tenant::host(), budget::Tenant::of_namespace(namespace_name)}) {
      // What makes room for the largest wait makes room for the others.
      if (const budget::Shortage* const shortage = memory->largest_wait(tenant)) {
        make_room_for(*shortage, namespace_name);
      }
    }
  }
  if (!resident_.contains(&changed)) give_back_later();
  if (find(changed.key()) == &changed) listener_.on_change(changed);
}

// The memory of a wake besides the guest's (answers, JSON, buffers) is freed in small pieces all
// over the heap, which the allocator keeps: with ten thousand operators, that is more than they
// need asleep.
void Fleet::give_back_later() {
  has_left_ = true;
  if (std::exchange(will_give_back_, true)) return;
  has_left_ = false;
  give_back_timer_ = fleet_parts_.loop.after(kGiveBackDelay, [this] {
    will_give_back_ = false;
    // Guests that left since the timer was set may have left too late for this pass.
    if (has_left_) {
      give_back_later();
    } else {
      wasm::drop_snapshot_spares();
    }
    wasm::trim_heaps();
  });
}

void Fleet::on_pressure(const budget::PressureGuard::Advice& advice) {
  is_pressed_ = advice.is_pressed;
  if (operators_.empty()) return;
  if (advice.give_back_bytes > 0) press_least_valuable(advice.give_back_bytes);
  if (advice.drop_page_cache && !std::exchange(is_dropping_, true)) {
    fleet_parts_.loop.spawn(drop_page_cache());
  }
  evict();
}

void Fleet::press_least_valuable(std::uint64_t bytes) {
  std::vector<Resident> residents;
  std::vector<RunningOperator*> candidates;
  for (const auto& [resident, held] : resident_) {
    if (!resident->life().may_be_pressed()) continue;
    candidates.push_back(resident);
    residents.push_back(reading_of(*resident, held));
  }
  for (const std::size_t index : least_valuable(residents, bytes, io::Loop::now())) {
    candidates[index]->press();
    pressure_suspends_.add();
  }
}

void Fleet::evict() {
  const budget::ReservationQueue* const memory = fleet_parts_.engine.memory();
  if (memory == nullptr || memory->largest_wait(budget::Tenant::host()) == nullptr) return;
  std::vector<Evictable> guests;
  std::vector<RunningOperator*> running_ones;
  for (const std::shared_ptr<RunningOperator>& running : operators_) {
    const bool is_leaving = running->life().is_pressed() || running->life().is_evicted();
    if (!is_leaving && !running->may_be_evicted()) continue;
    const budget::Consumer consumer = running->consumer();
    const std::uint64_t bytes = memory->accounts().held_bytes(consumer);
    if (bytes == 0) continue;
    guests.push_back({.tenant = consumer.tenant, .bytes = bytes, .is_leaving = is_leaving});
    running_ones.push_back(running.get());
  }
  for (const std::size_t index : guests_to_evict(memory->contest(), guests)) {
    running_ones[index]->evict();
    evictions_.add();
  }
}

// What a guest in memory has mapped stays: the kernel drops only pages that nobody uses. On a
// worker, because the kernel begins to write what is not yet on disk, and a slow disk blocks then.
io::Task<void> Fleet::drop_page_cache() {
  std::set<const wasm::SleepableModule*> modules;
  for (const std::shared_ptr<RunningOperator>& running : operators_) {
    if (modules.size() >= limits::kPageCacheDropsMax) break;
    modules.insert(&running->module());
  }
  std::vector<std::move_only_function<std::size_t()>> drops;
  for (const wasm::SleepableModule* const module : modules)
    drops.push_back(module->page_cache_drop());
  if (const wasm::SnapshotStore* const snapshots = fleet_parts_.snapshots) {
    drops.emplace_back([snapshots, idle_since = io::Loop::now() - limits::kLayerFileIdle] {
      return snapshots->drop_page_cache(idle_since);
    });
  }
  const std::size_t files = co_await fleet_parts_.engine.workers().run(
      {.tenant = budget::Tenant::host(), .name = "page cache"},
      [drops = std::move(drops)]() mutable {
        std::size_t dropped = 0;
        for (auto& drop : drops)
          dropped += drop();
        return dropped;
      });
  page_cache_drops_.add(static_cast<double>(files));
  is_dropping_ = false;
  dropped_.notify_all();
}

// Loading ahead takes nothing from others: a guest for which there is no room is loaded when it
// wakes, and may then make room.
bool Fleet::may_load_ahead(const budget::Consumer& consumer, std::uint64_t bytes) const {
  if (is_pressed_) return false;
  const std::uint64_t budget = fleet_parts_.memory_budget_bytes;
  if (budget > 0 && resident_bytes_ + bytes > budget) return false;
  const budget::Accounts* const accounts = fleet_parts_.engine.accounts();
  if (accounts == nullptr) return true;
  const budget::ReservationQueue* const waiting = fleet_parts_.engine.memory();
  if (waiting->largest_wait(budget::Tenant::host()) != nullptr) return false;
  const std::uint64_t needed = bytes + limits::kLoadAheadHeadroom;
  const std::uint64_t all = accounts->limits().host_bytes_max;
  const std::uint64_t own = accounts->limit_of(consumer.tenant).bytes_max;
  return accounts->held_bytes() <= all - std::min(all, needed) &&
         accounts->held_bytes(consumer.tenant) <= own - std::min(own, needed);
}

// For the namespaces with the largest reservations; the others share one series.
void Fleet::collect_memory(Metrics::Families& families) const {
  const budget::Accounts* const accounts = fleet_parts_.engine.accounts();
  if (accounts == nullptr) return;
  families
      .family("hangar_guest_memory_limit_bytes", "maximum memory of all guests together, in bytes",
              Metrics::Type::Gauge)
      .samples.push_back(
          {.value = static_cast<double>(accounts->limits().host_bytes_max), .histogram = {}});
  Metrics::Family& family = families.family(
      "hangar_guest_memory_reserved_bytes",
      "memory that guests have reserved, by namespace, in bytes", Metrics::Type::Gauge);
  Metrics::Family& limits =
      families.family("hangar_guest_memory_namespace_limit_bytes",
                      "maximum memory that guests of a namespace may reserve together, in bytes",
                      Metrics::Type::Gauge);
  for (const budget::Tenant& tenant : budget::add_largest(family, accounts->holdings())) {
    if (tenant.is_host()) continue;
    budget::add_sample(limits, tenant.label(),
                       static_cast<double>(accounts->limit_of(tenant).bytes_max));
  }
}

void Fleet::collect(Metrics::Families& families) const {
  collect_memory(families);
  std::vector<OperatorReading> readings;
  // An operator cannot have this name.
  OperatorReading others{.controller = "(others)", .series = series_.shared(), .operators = 0};
  for (const std::shared_ptr<RunningOperator>& running : operators_) {
    const bool is_own = running->ledger().series().is_own();
    OperatorReading own;
    if (is_own) {
      own = {.controller = controller_label(running->key()),
             .series = running->ledger().series().read(),
             .operators = 0,
             .restless_period = running->restlessness().period(io::Loop::now())};
    }
    OperatorReading& reading = is_own ? own : others;
    reading.resident_bytes += running->resident_bytes();
    reading.disk_bytes += running->disk_bytes();
    reading.events_waiting += running->waiting_count();
    if (running->life().is_busy()) ++reading.turns_under_way;
    ++reading.operators;
    if (is_own) readings.push_back(std::move(own));
  }
  if (others.operators > 0) readings.push_back(std::move(others));
  add_series(families, readings);
}

void Fleet::make_room() {
  const std::uint64_t budget = fleet_parts_.memory_budget_bytes;
  if (budget == 0 || resident_bytes_ <= budget) return;
  std::vector<Resident> residents;
  std::vector<RunningOperator*> candidates;
  std::uint64_t leaving = 0;  // Bytes of those that were asked to leave already.
  for (const auto& [resident, bytes] : resident_) {
    if (resident->life().may_be_pressed()) {
      candidates.push_back(resident);
      residents.push_back(reading_of(*resident, bytes));
    } else if (resident->life().is_pressed()) {
      leaving += bytes;
    }
  }
  const std::uint64_t excess = resident_bytes_ - budget;
  if (leaving >= excess) return;
  for (const std::size_t index : least_valuable(residents, excess - leaving, io::Loop::now())) {
    candidates[index]->press();
  }
}

// Those that are at work count too: their memory is as large. They are not asked to leave.
void Fleet::make_room_for_starts() {
  if (large_starts_.waiting_count() == 0 || resident_bytes_ <= limits::kStartedBytes) return;
  std::vector<Resident> residents;
  std::vector<RunningOperator*> candidates;
  for (const auto& [resident, bytes] : resident_) {
    if (resident->life().is_pressed()) continue;
    residents.push_back(reading_of(*resident, bytes));
    const bool may_leave = resident->life().may_be_pressed() && resident->has_all_answers();
    if (!may_leave) residents.back().idle_since = Instant::max();
    candidates.push_back(resident);
  }
  for (const std::size_t index : to_leave_early(residents, io::Loop::now()))
    candidates[index]->press();
}

// Counts what each operator has reserved: that is what becomes free.
void Fleet::make_room_for(const budget::Shortage& shortage, std::string_view namespace_name) {
  const budget::Accounts* const accounts = fleet_parts_.engine.accounts();
  if (accounts == nullptr) return;
  const bool is_own_only = shortage.level != budget::Shortage::Level::Host;
  std::vector<Resident> residents;
  std::vector<RunningOperator*> candidates;
  std::uint64_t leaving = 0;
  for (const auto& [resident, bytes] : resident_) {
    if (is_own_only && resident->key().namespace_ != namespace_name) continue;
    const std::uint64_t reserved = accounts->held_bytes(resident->consumer());
    if (resident->life().may_be_pressed()) {
      candidates.push_back(resident);
      residents.push_back(reading_of(*resident, reserved));
    } else if (resident->life().is_pressed()) {
      leaving += reserved;
    }
  }
  const std::uint64_t lacking = shortage.wanted_bytes - shortage.free_bytes;
  if (leaving >= lacking) return;
  for (const std::size_t index : least_valuable(residents, lacking - leaving, io::Loop::now())) {
    candidates[index]->press();
  }
}

}  // namespace hangar::operators
