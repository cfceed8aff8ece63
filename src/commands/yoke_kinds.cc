#include "commands/yoke_kinds.h"

#include "admission/webhooks.h"
#include "airways/conditions.h"
#include "airways/crd_template.h"
#include "airways/ownership.h"
#include "base/log.h"
#include "base/result.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/client.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

// NOLINTBEGIN(readability-identifier-naming): symbols of the objects that the build makes.
extern "C" const char hangar_airway_kind_begin[], hangar_airway_kind_end[];
extern "C" const char hangar_flight_kind_begin[], hangar_flight_kind_end[];
extern "C" const char hangar_cluster_flight_kind_begin[], hangar_cluster_flight_kind_end[];
// NOLINTEND(readability-identifier-naming)

namespace hangar::commands {

namespace {

// As long as yoke's controller waits.
constexpr std::chrono::seconds kEstablishedMax{60};
constexpr std::chrono::milliseconds kLook{250};

// Webhook configurations of yoke's controller, which deletes them when it exits unless it is
// killed. The API server calls the last two for writes of other resources, and no server answers
// any more.
constexpr std::array<std::string_view, 4> kLeftBehind = {"atc-airway", "atc-flight",
                                                         "atc-resources", "atc-external-resources"};

io::Task<Result<>> apply_kind(host::ClusterSession& session, std::string_view manifest) {
  const kube::Resource crds = airways::crd_resource();
  json::Value wanted = HANGAR_CO_TRY(json::parse_yaml(manifest));
  const std::string name(json::string_at(wanted, {"metadata", "name"}));
  Result<json::Value> live = co_await session.client.apply(
      crds, std::move(wanted),
      {.field_manager = std::string(airways::kFieldManager), .force = true}, {});
  const auto give_up_at = io::Loop::now() + kEstablishedMax;
  while (live && !airways::meets_condition(*live, "Established")) {
    if (io::Loop::now() > give_up_at) {
      co_return fail(ErrorKind::Unavailable, fmt::format("{} is not established", name));
    }
    HANGAR_CO_TRY(co_await session.loop.sleep(kLook, {}));
    live = co_await session.client.get(crds, {.name = name}, {});
  }
  if (!live) co_return std::unexpected(std::move(live).error().in(name));
  co_return Result<>();
}

io::Task<Result<>> apply_all(host::ClusterSession& session, const Log& log) {
  for (const std::string_view manifest :
       {std::string_view(hangar_airway_kind_begin, hangar_airway_kind_end),
        std::string_view(hangar_flight_kind_begin, hangar_flight_kind_end),
        std::string_view(hangar_cluster_flight_kind_begin, hangar_cluster_flight_kind_end)}) {
    HANGAR_CO_TRY(co_await apply_kind(session, manifest));
  }
  for (const std::string_view name : kLeftBehind) {
    const Result<json::Value> removed = co_await session.client.remove(
        admission::configuration_resource(), {.name = std::string(name)}, {}, {});
    if (!removed && removed.error().kind() == ErrorKind::NotFound) continue;
    if (!removed) co_return std::unexpected(Error(removed.error()).in(name));
    log.info("deleted a webhook configuration that yoke's controller had left", {{"name", name}});
  }
  co_return Result<>();
}

}  // namespace

Result<> apply_yoke_kinds(const host::Config& config, const Log& log) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  return session.run(apply_all(session, log));
}

}  // namespace hangar::commands
