#include "gateway/newest.h"

#include "base/random.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::gateway {

namespace {

std::uint64_t version_of(const kube::Object& object) {
  return kube::parse_version(object.resource_version()).value_or(0);
}

}  // namespace

Newest::Newest() {
  const RandomKey seed = random_key();
  seed_.assign(seed.begin(), seed.end());
}

void Newest::add(const kube::Object& object) {
  names_.push_back(hash_of(object.key()));
  last_change_ = std::max(last_change_, version_of(object));
}

void Newest::end(std::uint64_t version) {
  std::ranges::sort(names_);
  version_ = version;
}

bool Newest::has(const kube::Object& object) const {
  return version_of(object) > version_ || std::ranges::binary_search(names_, hash_of(object.key()));
}

std::uint64_t Newest::hash_of(const kube::ObjectKey& key) const {
  // No name has a slash.
  return std::hash<std::string>()(seed_ + key.namespace_ + '/' + key.name);
}

NewestStates::NewestStates(const kube::Client& client, std::shared_ptr<budget::FairSlots> slots)
    : state_(std::make_shared<State>(client, std::move(slots))) {}

io::Task<Result<NewestPtr>> NewestStates::get(kube::Scope scope, budget::Consumer consumer,
                                              std::stop_token stop) {
  Key key(std::move(scope), consumer.tenant);
  return wait(state_, std::move(key), std::move(consumer), std::move(stop));
}

io::Task<Result<NewestPtr>> NewestStates::wait(std::shared_ptr<State> state, Key key,
                                               budget::Consumer consumer, std::stop_token stop) {
  const auto [open, is_new] = state->open.try_emplace(key);
  if (is_new) open->second = std::make_shared<Round>(state->client.loop());
  const RoundPtr round = open->second;
  ++round->waiting_count;
  // The task may run up to its request at once, and then it removes the round from the map.
  if (is_new) state->client.loop().spawn(run(state, key, std::move(consumer), round));
  while (!round->state && !stop.stop_requested())
    (void)co_await round->ended.wait(stop);
  // A round that is not sent yet waits on without callers. If it stopped, a guest that starts and
  // cancels requests could leave any number of tasks in the queue.
  if (--round->waiting_count == 0 && round->is_sent) round->stop.request_stop();
  if (!round->state) co_return fail(ErrorKind::Cancelled, "stopping");
  co_return *round->state;
}

io::Task<void> NewestStates::run(std::shared_ptr<State> state, Key key, budget::Consumer consumer,
                                 RoundPtr round) {
  Result<NewestPtr> asked = co_await ask(state, key, std::move(consumer), round);
  // An error came before the request was sent: the round is still in the map.
  if (!round->is_sent) state->open.erase(key);
  round->state = std::move(asked);
  round->ended.notify_all();
}

io::Task<Result<NewestPtr>> NewestStates::ask(std::shared_ptr<State> state, Key key,
                                              budget::Consumer consumer, RoundPtr round) {
  const auto turn = co_await state->turns.take(key.second);
  std::optional<budget::FairSlots::Slot> slot;
  if (!consumer.tenant.is_host()) {
    auto given = co_await state->slots->acquire(std::move(consumer), {}, {});
    if (!given) co_return std::unexpected(std::move(given).error());
    slot.emplace(*std::move(given));
  }
  state->open.erase(key);
  round->is_sent = true;
  if (round->waiting_count == 0) co_return fail(ErrorKind::Cancelled, "all callers have gone");

  const kube::Scope& scope = key.first;
  auto newest = std::make_shared<Newest>();
  kube::ListOptions options{.namespace_ = scope.namespace_,
                            .label_selector = scope.label_selector,
                            .field_selector = scope.field_selector,
                            .detail = kube::Detail::Metadata};
  options.holds = [&newest](const kube::ObjectPtr& object) -> Result<kube::ObjectPtr> {
    newest->add(*object);
    return nullptr;
  };
  options.on_begin = [&newest] { *newest = Newest(); };
  const Result<kube::List> listed =
      co_await state->client.list(scope.resource, std::move(options), round->stop.get_token());
  if (!listed) co_return std::unexpected(listed.error());
  const auto version = kube::parse_version(listed->resource_version);
  if (!version) co_return fail(ErrorKind::InvalidInput, "resourceVersions of another kind");
  newest->end(*version);
  co_return NewestPtr(std::move(newest));
}

}  // namespace hangar::gateway
