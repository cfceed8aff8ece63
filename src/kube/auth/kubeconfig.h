// Kubeconfig files: read, merged and resolved to one context as kubectl does it. This code uses no
// network and no clock; Credentials reads the files that a context names.
//
// The contents of these files are secret: no error repeats a value; each names the file and
// the field.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

// PEM text, either in the kubeconfig itself or in a file; the text wins when both are given.
struct Pem {
  std::string text = {};
  std::filesystem::path file = {};
  [[nodiscard]] bool is_given() const { return !text.empty() || !file.empty(); }
};

struct KubeconfigCluster {
  std::string server;
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  Pem certificate_authority;
  std::string proxy_url;
  // The extension "client.authentication.k8s.io/exec", which is passed to exec plugins; often null.
  json::Value exec_config;
};

// A program that prints credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> args = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  std::string install_hint = {};
  bool provide_cluster_info = false;
};

struct KubeconfigUser {
  Pem client_certificate;
  Pem client_key;
  std::string token;
  std::filesystem::path token_file;
  std::string username;
  std::string password;
  std::optional<ExecPlugin> exec;
  // Impersonation: every request acts as this user.
  std::string as;
  std::string as_uid;
  std::vector<std::string> as_groups;
  std::map<std::string, std::vector<std::string>> as_user_extra;
};

struct KubeconfigContext {
  std::string cluster;
  std::string user;
  std::string namespace_;
};

struct Kubeconfig {
  // An entry, and the file that it came from, for messages.
  template <class T>
  struct From {
    T value;
    std::filesystem::path file;
  };
  std::map<std::string, From<KubeconfigCluster>> clusters;
  std::map<std::string, From<KubeconfigUser>> users;
  std::map<std::string, From<KubeconfigContext>> contexts;
  std::string current_context;
};

// Errors name `file`; relative paths in it are relative to its directory. InvalidInput.
[[nodiscard]] Result<Kubeconfig> parse_kubeconfig(std::string_view bytes,
                                                  const std::filesystem::path& file);

// Where both files define a name (or a current context), the first wins, as in a KUBECONFIG list.
[[nodiscard]] Kubeconfig merge(Kubeconfig first, Kubeconfig second);

// How to reach one cluster as one user.
struct Login {
  // "context dev of /home/me/.kube/config", for messages.
  std::string source;
  KubeconfigCluster cluster;
  KubeconfigUser user;
  std::string namespace_;
};
// `context`: empty for the current one. InvalidInput when an entry that it names is missing, or
// when fields contradict each other by kubectl's rules.
[[nodiscard]] Result<Login> resolve(const Kubeconfig& config, std::string_view context);

}  // namespace hangar::kube
