#include "host/node_fleet.h"

#include "base/metrics.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"
#include "kube/object.h"
#include "nodes/fleet.h"
#include "nodes/manifests.h"
#include "nodes/names.h"
#include "nodes/node_view.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace hangar::host {

namespace {

io::Task<Result<std::string>> read_fleet(const kube::Client& client, std::string namespace_,
                                         FleetFormat format) {
  const kube::List list =
      HANGAR_CO_TRY(co_await client.list(nodes::node_resource(), {}, std::stop_token()));
  std::vector<json::Value> objects;
  for (const kube::ObjectPtr& object : list.items)
    objects.push_back(object->to_value());
  const Result<json::Value> config_map = co_await client.get(
      nodes::config_map_resource(),
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

io::Task<void> keep(io::Task<Result<std::string>> task,
                    std::optional<Result<std::string>>& result) {
  Result<std::string> ended = co_await std::move(task);
  result.emplace(std::move(ended));
}

}  // namespace

Result<std::string> node_fleet(const Config& config, FleetFormat format, const Log& log) {
  kube::Login login =
      HANGAR_TRY(kube::find_login({.kubeconfig = config.kubeconfig, .context = config.context}));
  Metrics metrics;
  io::Loop loop;
  http::Client http(loop);
  const auto credentials = std::make_shared<kube::Credentials>(loop, std::move(login), log);
  const kube::Client client(loop, http, credentials, metrics, log);
  std::optional<Result<std::string>> result;
  loop.spawn(
      keep(read_fleet(client, lease_namespace(config, credentials->namespace_()), format), result));
  loop.run_until([&] { return result.has_value(); });
  return *std::move(result);
}

}  // namespace hangar::host
