#include "commands/node_fleet.h"

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

#include <stop_token>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

io::Task<Result<std::string>> read_fleet(const kube::Client& client, std::string namespace_,
                                         FleetFormat format) {
  const kube::List list =
      HANGAR_CO_TRY(co_await client.list(nodes::node_resource(), {}, std::stop_token()));
  std::vector<json::Value> objects;
  for (const kube::ObjectPtr& object : list.items)
    objects.push_back(object->to_value());
  const Result<json::Value> config_map = co_await client.get(
      kube::config_map_resource(),
      {.namespace_ = std::move(namespace_), .name = std::string(nodes::kRecordName)},
      std::stop_token());
  nodes::Record record;
  if (config_map) {
    record = nodes::parse_record(*config_map);
  } else if (config_map.error().kind() != ErrorKind::NotFound &&
             config_map.error().kind() != ErrorKind::Denied) {
    co_return std::unexpected(config_map.error());
  }
  const std::vector<nodes::FleetRow> rows = nodes::fleet_rows(objects, record);
  if (format == FleetFormat::Json) {
    co_return json::dump_pretty(nodes::fleet_document(rows, record)) + "\n";
  }
  co_return nodes::fleet_table(rows, record, io::Loop::wall_now());
}

}  // namespace

Result<std::string> node_fleet(const host::Config& config, FleetFormat format, const Log& log) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  return session.run(read_fleet(
      session.client, host::lease_namespace(config, session.credentials->namespace_()), format));
}

}  // namespace hangar::commands
