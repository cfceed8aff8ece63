#include "kube/discovery.h"

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/internal/discovery_documents.h"
#include "kube/internal/percent.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <chrono>
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

using internal::ServedGroup;
using internal::ServedVersion;

constexpr std::chrono::seconds kAskAgain{1};

// Groups that do not exist are remembered, too, until they may be requested again. Users choose
// their names, so their number needs a bound.
constexpr std::size_t kGroupsMax = 10'000;

}  // namespace

struct Discovery::State {
  explicit State(const Client& client_in) : client(client_in), asking(client_in.loop(), 1) {}

  struct Group {
    ServedGroup versions = {};
    Instant ask_again_at = {};
  };

  Client client;
  // One request at a time: a caller that waits finds the answer to the previous request.
  io::Semaphore asking;
  bool asked_for_all = false;
  std::map<std::string, Group, std::less<>> groups = {};

  using Wanted = std::function<bool(const Resource&)>;

  [[nodiscard]] std::optional<Resource> look_up(const std::string& group,
                                                const Wanted& wanted) const {
    const auto found = groups.find(group);
    if (found == groups.end()) return std::nullopt;
    for (const ServedVersion& version : found->second.versions) {
      for (const Resource& resource : version.resources) {
        if (wanted(resource)) return resource;
      }
    }
    return std::nullopt;
  }

  // Requests all groups in two requests, from a server that has aggregated discovery; otherwise
  // groups are requested one by one.
  [[nodiscard]] io::Task<Result<>> ask_for_all(std::stop_token stop) {
    for (const char* path : {"/apis", "/api"}) {
      const json::Value document = HANGAR_CO_TRY(
          co_await client.get_path(path, stop, std::string(internal::kAggregatedDiscovery)));
      auto served = internal::parse_aggregated(document);
      if (!served) break;
      for (auto& [name, versions] : *served) {
        groups.insert_or_assign(name, Group{.versions = std::move(versions),
                                            .ask_again_at = io::Loop::now() + kAskAgain});
      }
    }
    asked_for_all = true;
    co_return Result<>();
  }

  [[nodiscard]] io::Task<Result<>> ask_for(std::string name, std::stop_token stop) {
    const std::string path = name.empty() ? "/api" : "/apis/" + internal::percent_encode(name);
    auto document = co_await client.get_path(path, stop);
    Group group;
    if (document) {
      for (std::string& version : internal::parse_versions(*document)) {
        auto list = co_await client.get_path(path + "/" + internal::percent_encode(version), stop);
        // A version that went away in between is not a failure.
        if (!list && list.error().kind() == ErrorKind::NotFound) continue;
        if (!list) co_return std::unexpected(std::move(list).error());
        auto resources = internal::parse_resources(*list, name, version);
        group.versions.push_back({std::move(version), std::move(resources)});
      }
    } else if (document.error().kind() != ErrorKind::NotFound) {
      co_return std::unexpected(std::move(document).error());
    }
    group.ask_again_at = io::Loop::now() + kAskAgain;
    if (groups.size() >= kGroupsMax) groups.clear();
    groups.insert_or_assign(std::move(name), std::move(group));
    co_return Result<>();
  }

  static io::Task<Result<Resource>> find(std::shared_ptr<State> self, std::string group,
                                         Wanted wanted, std::string missing, std::stop_token stop) {
    if (auto known = self->look_up(group, wanted)) co_return *std::move(known);
    // Text that could change the path is not a group.
    const bool may_exist =
        group.find_first_of("/%") == std::string::npos && !group.starts_with('.');
    const auto slot = co_await self->asking.acquire();
    if (!self->asked_for_all) HANGAR_CO_TRY(co_await self->ask_for_all(stop));
    if (auto known = self->look_up(group, wanted)) co_return *std::move(known);
    const auto found = self->groups.find(group);
    if (may_exist &&
        (found == self->groups.end() || io::Loop::now() >= found->second.ask_again_at)) {
      if (auto asked = co_await self->ask_for(group, stop); !asked) {
        co_return std::unexpected(
            std::move(asked).error().in(fmt::format("discovery of group \"{}\"", group)));
      }
      if (auto known = self->look_up(group, wanted)) co_return *std::move(known);
    }
    co_return fail(ErrorKind::NotFound, std::move(missing));
  }
};

Discovery::Discovery(const Client& client) : state_(std::make_shared<State>(client)) {}

Discovery::~Discovery() = default;

io::Task<Result<Resource>> Discovery::find(GroupVersionKind gvk, std::stop_token stop) {
  std::string missing =
      fmt::format("no matches for kind \"{}\" in version \"{}\"", gvk.kind, gvk.api_version());
  std::string group = gvk.group;
  return State::find(
      state_, std::move(group),
      [gvk = std::move(gvk)](const Resource& resource) { return resource.gvk() == gvk; },
      std::move(missing), std::move(stop));
}

io::Task<Result<Resource>> Discovery::find(GroupKind kind, std::stop_token stop) {
  std::string missing =
      fmt::format("no matches for kind \"{}\" in group \"{}\"", kind.kind, kind.group);
  return State::find(
      state_, std::move(kind.group),
      [name = std::move(kind.kind)](const Resource& resource) { return resource.kind == name; },
      std::move(missing), std::move(stop));
}

io::Task<Result<Resource>> Discovery::find_plural(std::string group, std::string plural,
                                                  std::stop_token stop) {
  std::string missing =
      fmt::format("the server has no resource \"{}\" in group \"{}\"", plural, group);
  return State::find(
      state_, std::move(group),
      [name = std::move(plural)](const Resource& resource) { return resource.plural == name; },
      std::move(missing), std::move(stop));
}

void Discovery::forget(std::string_view group) {
  if (const auto found = state_->groups.find(group); found != state_->groups.end()) {
    state_->groups.erase(found);
  }
}

}  // namespace hangar::kube
