#include "modules/docker_config.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/text.h"
#include "io/file.h"
#include "json/value.h"
#include "modules/limits.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {

namespace {

struct HostAndPath {
  std::string host;
  std::string path;
};

std::string canonical_host(std::string_view host) {
  std::string lower = to_lower(host);
  if (lower == "index.docker.io" || lower == "registry-1.docker.io") return "docker.io";
  return lower;
}

// "https://index.docker.io/v1/" -> docker.io; "registry.example/team" -> that host and "team".
HostAndPath split_entry_name(std::string_view name) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (name.starts_with(scheme)) name.remove_prefix(scheme.size());
  }
  const std::size_t slash = name.find('/');
  std::string_view path = slash == std::string_view::npos ? "" : name.substr(slash + 1);
  while (path.ends_with('/'))
    path.remove_suffix(1);
  // The path of the API itself, which docker and older tools write.
  if (path == "v1" || path == "v2") path = {};
  return {.host = canonical_host(name.substr(0, slash)), .path = std::string(path)};
}

bool covers(std::string_view path, std::string_view repository) {
  return path.empty() || (repository.starts_with(path) &&
                          (repository.size() == path.size() || repository[path.size()] == '/'));
}

Result<Credential> read_credential(const json::Value& entry, std::string_view name) {
  Credential credential{
      .username = std::string(json::string_at(entry, {"username"})),
      .password = std::string(json::string_at(entry, {"password"})),
      .identity_token = std::string(json::string_at(entry, {"identitytoken"})),
      .registry_token = std::string(json::string_at(entry, {"registrytoken"})),
  };
  const std::string_view packed = json::string_at(entry, {"auth"});
  if (packed.empty()) return credential;
  std::optional<std::string> plain = base64_decode(packed);
  const std::size_t colon = plain ? plain->find(':') : std::string::npos;
  if (colon == std::string::npos) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("auths[\"{}\"].auth is not base64 of user:password", name));
  }
  credential.username = plain->substr(0, colon);
  credential.password = plain->substr(colon + 1);
  // Old versions of docker padded the password with zero bytes.
  while (credential.password.ends_with('\0'))
    credential.password.pop_back();
  return credential;
}

}  // namespace

Result<DockerConfig> DockerConfig::parse(std::string_view text) {
  Result<json::Value> parsed = json::parse(text);
  if (!parsed || !parsed->is_object()) {
    return fail(ErrorKind::InvalidInput, "docker config is not a JSON object");
  }
  DockerConfig config;
  if (const json::Object* const auths = json::object_at(*parsed, {"auths"})) {
    for (const auto& [name, entry] : *auths) {
      auto [host, path] = split_entry_name(name);
      Result<Credential> credential = read_credential(entry, name);
      if (!credential) return std::unexpected(std::move(credential).error().in("docker config"));
      // `docker login` with a credential store leaves an empty entry.
      if (credential->is_anonymous()) continue;
      config.entries_.push_back(
          {.host = std::move(host), .path = std::move(path), .credential = *std::move(credential)});
    }
  }
  if (const json::Object* const helpers = json::object_at(*parsed, {"credHelpers"})) {
    for (const auto& [name, helper] : *helpers) {
      if (!helper.is_string()) continue;
      config.helpers_.emplace_back(split_entry_name(name).host, helper.get_string());
    }
  }
  config.default_helper_ = json::string_at(*parsed, {"credsStore"});
  return config;
}

std::string Credential::id() const {
  if (is_anonymous()) return {};
  // With lengths, so that two different credentials never give the same text.
  std::string all = "hangar credential";
  for (const std::string* const part : {&username, &password, &identity_token, &registry_token})
    all += fmt::format(" {}:{}", part->size(), *part);
  return sha256_hex(all);
}

Result<DockerConfig> DockerConfig::load() {
  // Read at start-up, before another thread could change the environment.
  const char* const directory = std::getenv("DOCKER_CONFIG");  // NOLINT(concurrency-mt-unsafe)
  const char* const home = std::getenv("HOME");                // NOLINT(concurrency-mt-unsafe)
  std::filesystem::path path;
  if (directory != nullptr && *directory != '\0') {
    path = directory;
  } else if (home != nullptr && *home != '\0') {
    path = std::filesystem::path(home) / ".docker";
  } else {
    return DockerConfig();
  }
  path /= "config.json";
  Result<std::string> text = io::read_file(path, limits::kRegistryAnswerBytesMax);
  if (!text && text.error().kind() == ErrorKind::NotFound) return DockerConfig();
  if (!text) return std::unexpected(std::move(text).error().in("docker config"));
  Result<DockerConfig> config = parse(*text);
  if (!config) return std::unexpected(std::move(config).error().in(path.string()));
  return config;
}

Result<Credential> DockerConfig::find(std::string_view registry,
                                      std::string_view repository) const {
  const std::string host = canonical_host(registry);
  const Entry* best = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.host != host || !covers(entry.path, repository)) continue;
    if (best == nullptr || entry.path.size() > best->path.size()) best = &entry;
  }
  if (best != nullptr) return best->credential;
  for (const auto& [helper_host, helper] : helpers_) {
    if (helper_host != host) continue;
    return fail(ErrorKind::Denied,
                fmt::format("credentials for {} are kept by docker-credential-{}, which hangar "
                            "does not run: put them into \"auths\"",
                            registry, helper));
  }
  // The default store may have no entry for this registry: then anonymous access may be enough.
  return Credential();
}

}  // namespace hangar::modules
