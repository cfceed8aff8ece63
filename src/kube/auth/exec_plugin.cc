#include "kube/auth/exec_plugin.h"

#include "base/base64.h"
#include "base/result.h"
#include "base/time.h"
#include "io/program.h"
#include "json/value.h"
#include "kube/auth/kubeconfig.h"
#include "kube/limits.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kInfoVariable = "KUBERNETES_EXEC_INFO";

Result<ExecCredential> run(const ExecPlugin& plugin, const std::string& info, milliseconds deadline,
                           const std::stop_token& stop) {
  io::Program program{.path = plugin.command, .arguments = plugin.args};
  for (const auto& [name, value] : plugin.env)
    program.environment.push_back(fmt::format("{}={}", name, value));
  program.environment.push_back(fmt::format("{}={}", kInfoVariable, info));
  Result<std::string> output = io::run_bounded(
      program, {.deadline = deadline, .bytes_max = limits::kExecPluginOutputBytesMax}, stop);
  if (output) return parse_exec_credential(*output, plugin);
  if (output.error().kind() != ErrorKind::NotFound) {
    return std::unexpected(std::move(output).error());
  }
  return fail(ErrorKind::Unavailable,
              plugin.install_hint.empty()
                  ? "program not found"
                  : fmt::format("program not found ({})", plugin.install_hint));
}

}  // namespace

std::string exec_info(const ExecPlugin& plugin, const KubeconfigCluster& cluster,
                      std::string_view ca_pem) {
  json::Value spec = json::Object{{"interactive", false}};
  if (plugin.provide_cluster_info) {
    json::set_at(spec, {"cluster", "server"}, json::String(cluster.server));
    if (!cluster.tls_server_name.empty()) {
      json::set_at(spec, {"cluster", "tls-server-name"}, json::String(cluster.tls_server_name));
    }
    if (cluster.insecure_skip_tls_verify) {
      json::set_at(spec, {"cluster", "insecure-skip-tls-verify"}, true);
    }
    if (!ca_pem.empty()) {
      json::set_at(spec, {"cluster", "certificate-authority-data"},
                   json::String(base64_encode(ca_pem)));
    }
    if (!cluster.proxy_url.empty()) {
      json::set_at(spec, {"cluster", "proxy-url"}, json::String(cluster.proxy_url));
    }
    json::set_at(spec, {"cluster", "config"}, cluster.exec_config);
  }
  return json::dump(json::Object{{"kind", "ExecCredential"},
                                 {"apiVersion", json::String(plugin.api_version)},
                                 {"spec", std::move(spec)}});
}

Result<ExecCredential> parse_exec_credential(std::string_view output, const ExecPlugin& plugin) {
  const auto refuse = [](std::string_view what) {
    return fail(ErrorKind::InvalidInput, fmt::format("its output {}", what));
  };
  const auto document = json::parse(output);
  // The message of the parser could repeat a token.
  if (!document) return refuse("is not JSON");
  if (json::string_at(*document, {"kind"}) != "ExecCredential")
    return refuse("is not an ExecCredential");
  if (json::string_at(*document, {"apiVersion"}) != plugin.api_version) {
    return refuse(fmt::format("is not of apiVersion {}", plugin.api_version));
  }
  if (json::object_at(*document, {"status"}) == nullptr) return refuse("has no status");
  const auto text = [&document](std::string_view field) {
    return std::string(json::string_at(*document, {"status", field}));
  };
  ExecCredential credential{.token = text("token"),
                            .certificate_pem = text("clientCertificateData"),
                            .key_pem = text("clientKeyData")};
  if (credential.certificate_pem.empty() != credential.key_pem.empty()) {
    return refuse("needs status.clientCertificateData and status.clientKeyData, or neither");
  }
  if (credential.token.empty() && credential.key_pem.empty()) {
    return refuse("has neither status.token nor status.clientCertificateData");
  }
  if (credential.token.find_first_of("\r\n") != std::string::npos) {
    return refuse("has a line break in status.token");
  }
  if (const std::string expires = text("expirationTimestamp"); !expires.empty()) {
    const auto time = parse_rfc3339(expires);
    if (!time) return refuse("has a status.expirationTimestamp that is not a time");
    credential.expires = *time;
  }
  return credential;
}

Result<ExecCredential> run_exec_plugin(const ExecPlugin& plugin, const std::string& info,
                                       milliseconds deadline, const std::stop_token& stop) {
  auto credential = run(plugin, info, deadline, stop);
  if (credential) return credential;
  return std::unexpected(
      std::move(credential).error().in(fmt::format("exec plugin {}", plugin.command)));
}

}  // namespace hangar::kube
