// Credentials for registries, as `docker login` and Kubernetes' image pull secrets write them.
//
// Credential helpers (credsStore, credHelpers) are not run: a helper is a program of the user's
// desktop, and the host starts no program that a Secret names. An entry that needs a helper gives
// an error that says so.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {

// A secret: never logged, never part of a message. All members empty: anonymous.
struct Credential {
  std::string username;
  std::string password;
  std::string identity_token;  // An OAuth2 refresh token, from "identitytoken".
  std::string registry_token;  // A bearer token, from "registrytoken".

  [[nodiscard]] bool is_anonymous() const {
    return username.empty() && password.empty() && identity_token.empty() && registry_token.empty();
  }
  // Distinguishes credentials without revealing any part of them: a digest. Empty: anonymous.
  [[nodiscard]] std::string id() const;
};

class DockerConfig {
 public:
  // No credentials at all.
  DockerConfig() = default;

  // The text of ~/.docker/config.json or of a Secret's .dockerconfigjson. InvalidInput; the message
  // names at most an entry, and repeats nothing of its contents.
  [[nodiscard]] static Result<DockerConfig> parse(std::string_view text);

  // Loads $DOCKER_CONFIG/config.json, else ~/.docker/config.json; without such a file there are no
  // credentials. Blocking: for start-up. Reads the environment.
  [[nodiscard]] static Result<DockerConfig> load();

  // The credential for a repository ("team/backend") of a registry ("registry.example:5000"). An
  // entry matches when its host is the same (docker.io has its aliases) and its path, if it has
  // one, is the beginning of the repository; the longest path wins. Anonymous when nothing matches.
  // Denied when only a credential helper has the answer.
  [[nodiscard]] Result<Credential> find(std::string_view registry,
                                        std::string_view repository) const;

 private:
  struct Entry {
    std::string host;
    std::string path;
    Credential credential;
  };

  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> helpers_;  // By host.
  std::string default_helper_;
};

}  // namespace hangar::modules
