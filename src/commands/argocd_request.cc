#include "commands/argocd_request.h"

#include "base/base64.h"
#include "base/invalid.h"
#include "base/result.h"
#include "base/time.h"
#include "json/fields.h"
#include "json/texts.h"
#include "json/value.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

Result<std::vector<std::string>> environment_of(const json::Object* given) {
  std::vector<std::string> variables;
  if (given == nullptr) return variables;
  for (const auto& member : *given) {
    const std::string_view name = member.key();
    if (name.empty() || name.contains('=') || name.contains('\0')) {
      return invalid("Env has a name that no variable can have");
    }
    if (!member.value().is_string()) {
      return invalid(fmt::format("Env.{}: must be a string", name));
    }
    variables.push_back(fmt::format("{}={}", name, std::string_view(member.value().get_string())));
  }
  return variables;
}

}  // namespace

std::string to_json(const ArgoRequest& request) {
  json::Object environment;
  for (const std::string& variable : request.environment) {
    const std::size_t equals = variable.find('=');
    environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return json::dump(json::Object{
      {"Source",
       request.source.empty() ? json::Value() : json::Value(base64_encode(request.source))},
      {"ClusterAccess",
       json::Object{{"Enabled", request.cluster_access},
                    {"ResourceMatchers", json::array_of(request.resource_matchers)}}},
      {"Path", request.path},
      {"Checksum", request.checksum},
      {"Release", request.release},
      {"Namespace", request.namespace_},
      {"Args", json::array_of(request.args)},
      {"Env", std::move(environment)},
      {"Input", request.input},
      {"MaxMemoryMib", request.memory_mib_max},
      {"Timeout", std::chrono::duration_cast<std::chrono::nanoseconds>(request.timeout).count()},
      {"Insecure", request.insecure}});
}

Result<ArgoRequest> parse_argo_request(std::string_view text) {
  const json::Value document = HANGAR_TRY(json::parse(text));
  if (!document.is_object()) return invalid("the request is not a JSON object");
  const json::Fields members(document.get_object(), "", json::Names::AnyCase);
  ArgoRequest request;
  std::optional<std::string> source = base64_decode(HANGAR_TRY(members.text("Source")));
  if (!source) return members.wrong("Source", "in base64");
  request.source = *std::move(source);
  request.path = HANGAR_TRY(members.text("Path"));
  request.checksum = HANGAR_TRY(members.text("Checksum"));
  request.release = HANGAR_TRY(members.text("Release"));
  request.namespace_ = HANGAR_TRY(members.text("Namespace"));
  request.args = HANGAR_TRY(members.texts("Args"));
  const json::Object* const environment = HANGAR_TRY(members.object("Env"));
  request.environment = HANGAR_TRY(environment_of(environment));
  request.input = HANGAR_TRY(members.text("Input"));
  request.insecure = HANGAR_TRY(members.flag("Insecure"));
  const std::int64_t memory = HANGAR_TRY(members.integer("MaxMemoryMib"));
  if (memory < 0 || memory > std::numeric_limits<std::uint32_t>::max()) {
    return members.wrong("MaxMemoryMib", "a number of MiB");
  }
  request.memory_mib_max = static_cast<std::uint32_t>(memory);
  request.timeout = std::chrono::duration_cast<Duration>(
      std::chrono::nanoseconds(HANGAR_TRY(members.integer("Timeout"))));
  if (const json::Object* const access = HANGAR_TRY(members.object("ClusterAccess"))) {
    const json::Fields access_members(*access, "ClusterAccess", json::Names::AnyCase);
    request.cluster_access = HANGAR_TRY(access_members.flag("Enabled"));
    request.resource_matchers = HANGAR_TRY(access_members.texts("ResourceMatchers"));
  }
  return request;
}

}  // namespace hangar::commands
