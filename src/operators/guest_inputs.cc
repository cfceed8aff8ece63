#include "operators/guest_inputs.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "operators/limits.h"
#include "operators/operator.h"
#include "operators/pod_view.h"
#include "operators/running_operator.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::operators {

namespace {

kube::Resource core_resource(bool is_secret) {
  return is_secret ? kube::secret_resource() : kube::config_map_resource();
}

// The value of one key, decoded; nothing if there is no such key.
std::optional<std::string> value_at(const json::Value& object, bool is_secret,
                                    std::string_view key) {
  const auto text_of = [&](std::string_view member) -> const json::Value* {
    const json::Value* const value = json::find(object, {member, key});
    return value != nullptr && value->is_string() ? value : nullptr;
  };
  const json::Value* const text = is_secret ? nullptr : text_of("data");
  if (text != nullptr) return std::string(text->get_string());
  const json::Value* const encoded = text_of(is_secret ? "data" : "binaryData");
  if (encoded == nullptr) return std::nullopt;
  return base64_decode(encoded->get_string());
}

std::vector<std::string> keys_of(const json::Value& object, bool is_secret) {
  std::vector<std::string> keys;
  for (const std::string_view member : {"data", "binaryData"}) {
    if (is_secret && member == "binaryData") continue;
    const json::Object* const values = json::object_at(object, {member});
    if (values == nullptr) continue;
    for (const auto& value : *values)
      keys.emplace_back(value.key());
  }
  return keys;
}

io::Task<Result<json::Value>> read_source(kube::Client client, std::string namespace_,
                                          std::string name, bool is_secret, bool is_optional,
                                          std::stop_token stop) {
  Result<json::Value> object = co_await client.get(
      core_resource(is_secret), {.namespace_ = std::move(namespace_), .name = name}, stop);
  if (!object && object.error().kind() == ErrorKind::NotFound && is_optional) {
    co_return json::Value(json::Object{});
  }
  if (!object) {
    co_return std::unexpected(std::move(object).error().in(
        fmt::format("{} {}", is_secret ? "Secret" : "ConfigMap", name)));
  }
  co_return object;
}

// Counts what is read for one operator.
class InputBytes {
 public:
  [[nodiscard]] Result<> add(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= limits::kOperatorInputBytesMax) return {};
    return fail(ErrorKind::LimitExceeded,
                fmt::format("spec.env and spec.files: their values have more than {} MiB together",
                            limits::kOperatorInputBytesMax / limits::kMiB));
  }

 private:
  std::uint64_t bytes_ = 0;
};

}  // namespace

io::Task<Result<GuestInputs>> read_guest_inputs(kube::Client client, const Operator& spec,
                                                std::stop_token stop) {
  GuestInputs inputs;
  InputBytes read;
  inputs.in_pod = pod_view({.namespace_ = spec.key.namespace_,
                            .name = spec.key.name,
                            .cluster_ca = HANGAR_CO_TRY(co_await client.server_ca(stop))});
  for (const EnvironmentEntry& entry : spec.environment) {
    if (entry.source == EnvironmentEntry::Source::Literal) {
      inputs.environment.push_back(fmt::format("{}={}", entry.name, entry.value));
      continue;
    }
    const bool is_secret = entry.source == EnvironmentEntry::Source::Secret;
    const json::Value object = HANGAR_CO_TRY(co_await read_source(
        client, spec.key.namespace_, entry.object, is_secret, entry.is_optional, stop));
    const std::optional<std::string> value = value_at(object, is_secret, entry.key);
    if (!value && entry.is_optional) continue;
    if (!value || value->find('\0') != std::string::npos) {
      co_return fail(ErrorKind::NotFound,
                     fmt::format("env {}: {} {} has no text at the key {}", entry.name,
                                 is_secret ? "Secret" : "ConfigMap", entry.object, entry.key));
    }
    HANGAR_CO_TRY(read.add(value->size()));
    inputs.environment.push_back(fmt::format("{}={}", entry.name, *value));
  }
  for (const FileEntry& entry : spec.files) {
    const json::Value object = HANGAR_CO_TRY(co_await read_source(
        client, spec.key.namespace_, entry.object, entry.is_secret, entry.is_optional, stop));
    for (const std::string& key : keys_of(object, entry.is_secret)) {
      if (std::optional<std::string> value = value_at(object, entry.is_secret, key)) {
        HANGAR_CO_TRY(read.add(value->size()));
        inputs.files[fmt::format("{}/{}", entry.path, key)] = *std::move(value);
      }
    }
  }
  co_return inputs;
}

}  // namespace hangar::operators
