#include "console/cluster.h"

#include "console/cluster_paths.h"
#include "console/limits.h"
#include "console/projection.h"
#include "http/client.h"
#include "io/loop.h"
#include "json/value.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace hangar::console {

namespace {

// Checks that the cluster has an Airway of that name with that version.
io::Task<Result<>> check_airway(const kube::Client& client, std::string name,
                                std::string_view version, std::stop_token stop) {
  const kube::Resource airways{.group = "yoke.cd",
                               .version = "v1alpha1",
                               .plural = "airways",
                               .kind = "Airway",
                               .namespaced = false};
  const Result<json::Value> airway =
      co_await client.get(airways, {.namespace_ = {}, .name = name}, stop);
  if (!airway) {
    co_return fail(ErrorKind::Denied,
                   fmt::format("the console shows instances of Airways only, and could not read an "
                               "Airway {}: {}",
                               name, airway.error().message()));
  }
  if (const json::Array* const versions =
          json::array_at(*airway, {"spec", "template", "versions"})) {
    for (const json::Value& one : *versions)
      if (json::string_at(one, {"name"}) == version) co_return Result<>();
  }
  co_return fail(ErrorKind::Denied, fmt::format("the Airway {} has no version {}", name, version));
}

}  // namespace

io::Task<Result<std::string>> ask_cluster(const kube::Client& client, gateway::RequestTarget target,
                                          std::stop_token stop) {
  ClusterGet get = HANGAR_CO_TRY(cluster_get(target));
  if (!get.airway.empty()) {
    HANGAR_CO_TRY(co_await check_airway(client, std::move(get.airway), target.version, stop));
  }
  // A separate stop, since a stream has no time limit.
  std::stop_source ended;
  const std::stop_callback passed_on(stop, [&ended] { ended.request_stop(); });
  bool is_late = false;
  const io::Loop::Timer timer = client.loop().after(limits::kConsoleClusterMax, [&] {
    is_late = true;
    ended.request_stop();
  });
  std::string body;
  int status = 0;
  const Result<http::Response> response = co_await client.stream(
      {.target = std::move(get.target)},
      {.on_headers =
           [&status](int found, const http::Headers&) {
             status = found;
             return Result<>();
           },
       .on_bytes = [&body](std::string_view bytes) -> Result<> {
         body += bytes;
         if (body.size() <= limits::kConsoleAnswerBytesMax) return {};
         return fail(ErrorKind::LimitExceeded,
                     fmt::format("the cluster's answer has more than {} bytes",
                                 limits::kConsoleAnswerBytesMax));
       }},
      ended.get_token());
  if (is_late) {
    co_return fail(ErrorKind::Unavailable, fmt::format("the cluster did not answer within {} s",
                                                       limits::kConsoleClusterMax.count()));
  }
  if (!response) co_return std::unexpected(response.error());
  if (status != 200) co_return std::unexpected(kube::error_from_status(status, body));
  json::Value answer = HANGAR_CO_TRY(json::parse(body));
  project(answer, target.group, target.plural);
  co_return json::dump(answer);
}

}  // namespace hangar::console
