#include "commands/node_fleet.h"

#include "commands/streams.h"
#include "host/cluster_session.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "nodes/fleet.h"
#include "nodes/manifests.h"
#include "nodes/names.h"
#include "nodes/node_view.h"
#include "nodes/rollout.h"

#include <chrono>
#include <expected>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

constexpr std::chrono::seconds kWatchEvery{2};

struct Fleet {
  std::vector<json::Value> objects;
  nodes::Record record;
};

io::Task<Result<Fleet>> read_fleet(const kube::Client& client, std::string namespace_) {
  const kube::List list =
      HANGAR_CO_TRY(co_await client.list(nodes::node_resource(), {}, std::stop_token()));
  Fleet fleet;
  for (const kube::ObjectPtr& object : list.items)
    fleet.objects.push_back(object->to_value());
  const Result<json::Value> config_map = co_await client.get(
      kube::config_map_resource(),
      {.namespace_ = std::move(namespace_), .name = std::string(nodes::kRecordName)},
      std::stop_token());
  if (config_map) {
    fleet.record = nodes::parse_record(*config_map);
  } else if (config_map.error().kind() != ErrorKind::NotFound &&
             config_map.error().kind() != ErrorKind::Denied) {
    co_return std::unexpected(config_map.error());
  }
  co_return fleet;
}

std::string text_of(const Fleet& fleet, FleetFormat format) {
  const std::vector<nodes::FleetRow> rows = nodes::fleet_rows(fleet.objects, fleet.record);
  if (format == FleetFormat::Json) {
    return json::dump_pretty(nodes::fleet_document(rows, fleet.record)) + "\n";
  }
  return nodes::fleet_table(rows, fleet.record, io::Loop::wall_now());
}

io::Task<Result<WatchedFleet>> read_until_still(host::ClusterSession& session,
                                                std::string namespace_, FleetFormat format,
                                                Say show) {
  Result<Fleet> fleet = co_await read_fleet(session.client, namespace_);
  // Until the first answer the address may be wrong.
  if (!fleet) co_return std::unexpected(std::move(fleet).error());
  while (fleet || fleet.error().kind() == ErrorKind::Unavailable) {
    if (fleet) {
      const nodes::FleetProgress progress = nodes::fleet_progress(fleet->objects, fleet->record);
      if (!progress.is_moving) {
        co_return WatchedFleet{.text = text_of(*fleet, format),
                               .is_halted = progress.standing == nodes::Standing::Halted};
      }
      show(nodes::progress_text(progress));
    } else {
      show(fleet.error().message());
    }
    HANGAR_CO_TRY(co_await session.loop.sleep(kWatchEvery, std::stop_token()));
    fleet = co_await read_fleet(session.client, namespace_);
  }
  co_return std::unexpected(std::move(fleet).error());
}

}  // namespace

Result<std::string> node_fleet(const host::Config& config, FleetFormat format, const Log& log) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  const Fleet fleet = HANGAR_TRY(session.run(read_fleet(
      session.client, host::lease_namespace(config, session.credentials->namespace_()))));
  return text_of(fleet, format);
}

Result<WatchedFleet> watch_fleet(const host::Config& config, FleetFormat format, const Say& show,
                                 const Log& log) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  bool is_shown = false;
  Result<WatchedFleet> watched = session.run(
      read_until_still(session, host::lease_namespace(config, session.credentials->namespace_()),
                       format, [&show, &is_shown](std::string_view text) {
                         if (!show) return;
                         is_shown = true;
                         show(text);
                       }));
  if (is_shown) show({});
  return watched;
}

}  // namespace hangar::commands
