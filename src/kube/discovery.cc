#include "kube/discovery.h"

#include "base/consumer.h"
#include "base/result.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/internal/discovery_documents.h"
#include "kube/internal/known_groups.h"
#include "kube/internal/percent.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <cstddef>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {

namespace {

using internal::KnownGroups;

// Groups that are asked for at a time. Most answers take milliseconds, but a group whose server
// hangs keeps its slot for a minute: with two a tenant still learns of another group meanwhile.
constexpr std::size_t kRequestsMax = 8;
constexpr std::size_t kRequestsPerTenantMax = 2;

// As many as one guest may have requests open.
constexpr std::size_t kWaitingPerConsumerMax = 256;

// The length of a DNS subdomain, which each name of a group is.
constexpr std::size_t kGroupNameMax = 253;

// Text that could change the path of a request is not the name of a group.
bool may_exist(std::string_view group) {
  return group.size() <= kGroupNameMax && group.find_first_of("/%") == std::string_view::npos &&
         !group.starts_with('.');
}

}  // namespace

struct Discovery::State {
  explicit State(const Client& client_in)
      : client(client_in),
        slots(client_in.loop(), {.slots = kRequestsMax,
                                 .host_slots = 1,
                                 .slots_per_tenant_max = kRequestsPerTenantMax,
                                 .waiting_per_consumer_max = kWaitingPerConsumerMax}) {}

  // The subject of a request: one group, or (std::nullopt) all groups.
  using Subject = std::optional<std::string>;
  // A request, and the callers that wait for it. It goes on without the caller that began it, and
  // is stopped when no caller is left.
  struct Round {
    explicit Round(io::Loop& loop) : ended(loop) {}

    std::optional<Result<>> result = {};  // Set when it has ended.
    io::Event ended;
    std::size_t waiting_count = 0;
    std::stop_source stop = {};
  };
  using RoundPtr = std::shared_ptr<Round>;

  Client client;
  budget::FairSlots slots;
  bool asked_for_all = false;
  KnownGroups groups = {};
  std::map<Subject, RoundPtr> rounds = {};  // Those under way.

  using Wanted = std::function<bool(const Resource&)>;

  // Requests all groups in two requests, from a server that has aggregated discovery; otherwise
  // groups are requested one by one.
  [[nodiscard]] io::Task<Result<>> ask_for_all(std::stop_token stop) {
    for (const char* path : {"/apis", "/api"}) {
      const json::Value document = HANGAR_CO_TRY(
          co_await client.get_path(path, stop, std::string(internal::kAggregatedDiscovery)));
      auto served = internal::parse_aggregated(document);
      if (!served) break;
      for (auto& [name, versions] : *served)
        groups.add(name, std::move(versions), io::Loop::now());
    }
    asked_for_all = true;
    co_return Result<>();
  }

  [[nodiscard]] io::Task<Result<>> ask_for(std::string name, Tenant asker, std::stop_token stop) {
    const std::string path = name.empty() ? "/api" : "/apis/" + internal::percent_encode(name);
    auto document = co_await client.get_path(path, stop);
    if (!document && document.error().kind() == ErrorKind::NotFound) {
      groups.add_missing(std::move(name), asker, io::Loop::now());
      co_return Result<>();
    }
    if (!document) {
      co_return std::unexpected(
          std::move(document).error().in(fmt::format("discovery of group \"{}\"", name)));
    }
    internal::ServedGroup versions;
    for (std::string& version : internal::parse_versions(*document)) {
      auto list = co_await client.get_path(path + "/" + internal::percent_encode(version), stop);
      // A version that went away in between is not a failure.
      if (!list && list.error().kind() == ErrorKind::NotFound) continue;
      if (!list) {
        co_return std::unexpected(
            std::move(list).error().in(fmt::format("discovery of group \"{}\"", name)));
      }
      auto resources = internal::parse_resources(*list, name, version);
      versions.push_back({std::move(version), std::move(resources)});
    }
    groups.add(std::move(name), std::move(versions), io::Loop::now());
    co_return Result<>();
  }

  // Null when nobody asks for it, or when its request is being stopped.
  [[nodiscard]] RoundPtr under_way(const Subject& subject) const {
    const auto found = rounds.find(subject);
    if (found == rounds.end() || found->second->stop.stop_requested()) return nullptr;
    return found->second;
  }

  static RoundPtr begin(const std::shared_ptr<State>& self, Subject subject, Tenant asker,
                        std::optional<budget::FairSlots::Slot> slot) {
    const auto round = std::make_shared<Round>(self->client.loop());
    self->rounds.insert_or_assign(subject, round);
    self->client.loop().spawn(
        run(self, std::move(subject), std::move(asker), round, std::move(slot)),
        io::Loop::Payer::Spawner);
    return round;
  }

  static io::Task<void> run(std::shared_ptr<State> self, Subject subject, Tenant asker,
                            RoundPtr round, std::optional<budget::FairSlots::Slot> slot) {
    Result<> asked;
    if (subject) {
      asked = co_await self->ask_for(*subject, std::move(asker), round->stop.get_token());
    } else {
      asked = co_await self->ask_for_all(round->stop.get_token());
    }
    // A stopped one may have been replaced.
    const auto found = self->rounds.find(subject);
    if (found != self->rounds.end() && found->second == round) self->rounds.erase(found);
    slot.reset();
    round->result = std::move(asked);
    round->ended.notify_all();
  }

  static io::Task<Result<>> join(RoundPtr round, std::stop_token stop) {
    ++round->waiting_count;
    while (!round->result && !stop.stop_requested())
      (void)co_await round->ended.wait(stop);
    if (--round->waiting_count == 0 && !round->result) {
      round->stop.request_stop();
      // So that no request outlives all of its callers.
      while (!round->result)
        (void)co_await round->ended.wait({});
    }
    if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
    co_return *round->result;
  }

  static io::Task<Result<Resource>> find(std::shared_ptr<State> self, std::string group,
                                         Wanted wanted, std::string missing, Consumer whose,
                                         std::stop_token stop) {
    if (auto known = self->groups.find(group, wanted)) co_return *std::move(known);
    if (!self->asked_for_all) {
      RoundPtr all = self->under_way(std::nullopt);
      if (!all) all = begin(self, std::nullopt, whose.tenant, std::nullopt);
      HANGAR_CO_TRY(co_await join(std::move(all), stop));
      if (auto known = self->groups.find(group, wanted)) co_return *std::move(known);
    }
    if (!may_exist(group) || self->groups.is_recent(group, io::Loop::now())) {
      co_return fail(ErrorKind::NotFound, std::move(missing));
    }
    // Once the request is sent, it does not matter for which tenant: it ends for all its callers.
    RoundPtr round = self->under_way(group);
    if (!round) {
      Tenant asker = whose.tenant;
      std::optional<budget::FairSlots::Slot> slot =
          HANGAR_CO_TRY(co_await self->slots.acquire(std::move(whose), {}, stop));
      // Others may have asked meanwhile.
      if (auto known = self->groups.find(group, wanted)) co_return *std::move(known);
      if (self->groups.is_recent(group, io::Loop::now())) {
        co_return fail(ErrorKind::NotFound, std::move(missing));
      }
      round = self->under_way(group);
      if (!round) round = begin(self, group, std::move(asker), std::move(slot));
    }
    HANGAR_CO_TRY(co_await join(std::move(round), stop));
    if (auto known = self->groups.find(group, wanted)) co_return *std::move(known);
    co_return fail(ErrorKind::NotFound, std::move(missing));
  }
};

Discovery::Discovery(const Client& client) : state_(std::make_shared<State>(client)) {}

Discovery::~Discovery() = default;

io::Task<Result<Resource>> Discovery::find(GroupVersionKind gvk, Consumer whose,
                                           std::stop_token stop) {
  std::string missing =
      fmt::format("no matches for kind \"{}\" in version \"{}\"", gvk.kind, gvk.api_version());
  std::string group = gvk.group;
  return State::find(
      state_, std::move(group),
      [gvk = std::move(gvk)](const Resource& resource) { return resource.gvk() == gvk; },
      std::move(missing), std::move(whose), std::move(stop));
}

io::Task<Result<Resource>> Discovery::find(GroupKind kind, Consumer whose, std::stop_token stop) {
  std::string missing =
      fmt::format("no matches for kind \"{}\" in group \"{}\"", kind.kind, kind.group);
  return State::find(
      state_, std::move(kind.group),
      [name = std::move(kind.kind)](const Resource& resource) { return resource.kind == name; },
      std::move(missing), std::move(whose), std::move(stop));
}

io::Task<Result<Resource>> Discovery::find_plural(std::string group, std::string plural,
                                                  Consumer whose, std::stop_token stop) {
  std::string missing =
      fmt::format("the server has no resource \"{}\" in group \"{}\"", plural, group);
  return State::find(
      state_, std::move(group),
      [name = std::move(plural)](const Resource& resource) { return resource.plural == name; },
      std::move(missing), std::move(whose), std::move(stop));
}

io::Task<Result<Resource>> Discovery::find(GroupVersionResource named, Consumer whose,
                                           std::stop_token stop) {
  std::string missing =
      fmt::format("the server has no resource \"{}\" in version \"{}\" of group \"{}\"",
                  named.resource, named.version, named.group);
  std::string group = named.group;
  return State::find(
      state_, std::move(group),
      [named = std::move(named)](const Resource& resource) {
        return resource.version == named.version && resource.plural == named.resource;
      },
      std::move(missing), std::move(whose), std::move(stop));
}

void Discovery::forget(std::string_view group) {
  state_->groups.forget(group);
}

}  // namespace hangar::kube
