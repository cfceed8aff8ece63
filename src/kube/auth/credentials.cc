#include "kube/auth/credentials.h"

#include "base/base64.h"
#include "base/consumer.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/auth/exec_plugin.h"
#include "kube/auth/kubeconfig.h"
#include "kube/internal/percent.h"
#include "kube/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {

namespace {

using std::chrono::seconds;
using std::filesystem::path;

// A credential is renewed this long before it expires, so that none expires in transit.
constexpr seconds kExpiryMargin{10};
// A credential that is expired already when the plugin returns it (clocks differ) is used for this
// long, so that not every request runs the plugin.
constexpr seconds kLifetimeMin{1};
// The earliest time for the next renewal after one that failed, or that a 401 caused.
constexpr seconds kRenewalInterval{5};

std::optional<std::string> variable(const LoginSource& source, const std::string& name) {
  if (source.environment) return source.environment(name);
  // Read once at start, when no thread writes the environment.
  const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<Kubeconfig> load_kubeconfig(const path& file) {
  auto bytes = io::read_file(file, limits::kKubeconfigBytesMax);
  if (!bytes) return std::unexpected(std::move(bytes).error().in("kubeconfig"));
  return parse_kubeconfig(*bytes, file);
}

// As kubectl does it: files that do not exist are skipped; if all are missing, the config is empty.
Result<Kubeconfig> load_list(std::string_view list) {
  Kubeconfig config;
  while (!list.empty()) {
    const std::string_view file = list.substr(0, list.find(':'));
    list.remove_prefix(file.size() < list.size() ? file.size() + 1 : list.size());
    if (file.empty()) continue;
    auto loaded = load_kubeconfig(path(file));
    if (!loaded && loaded.error().kind() == ErrorKind::NotFound) continue;
    if (!loaded) return std::unexpected(std::move(loaded).error());
    config = merge(std::move(config), *std::move(loaded));
  }
  return config;
}

std::optional<Login> in_cluster_login(const LoginSource& source) {
  const auto host = variable(source, "KUBERNETES_SERVICE_HOST");
  const auto port = variable(source, "KUBERNETES_SERVICE_PORT");
  const path& directory = source.service_account_directory;
  std::error_code error;
  if (!host || host->empty() || !port || port->empty() ||
      !std::filesystem::exists(directory / "token", error)) {
    return std::nullopt;
  }
  Login login{.source = fmt::format("service account in {}", directory.string())};
  login.cluster.server = host->contains(':') ? fmt::format("https://[{}]:{}", *host, *port)
                                             : fmt::format("https://{}:{}", *host, *port);
  login.cluster.certificate_authority.file = directory / "ca.crt";
  login.user.token_file = directory / "token";
  login.namespace_ =
      io::read_file(directory / "namespace", limits::kCredentialFileBytesMax).value_or("");
  return login;
}

Result<std::string> read_pem(const Pem& pem, std::string_view field) {
  if (!pem.text.empty() || pem.file.empty()) return pem.text;
  auto text = io::read_file(pem.file, limits::kCredentialFileBytesMax);
  if (!text) return std::unexpected(std::move(text).error().in(field));
  if (!text->contains("-----BEGIN ")) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{}: {} holds no PEM block", field, pem.file.string()));
  }
  return text;
}

Result<std::string> read_token(const path& file) {
  auto text = io::read_file(file, limits::kCredentialFileBytesMax);
  if (!text) return std::unexpected(std::move(text).error().in("user.tokenFile"));
  const auto is_blank = [](char character) {
    return static_cast<unsigned char>(character) <= 0x20;
  };
  while (!text->empty() && is_blank(text->back()))
    text->pop_back();
  while (!text->empty() && is_blank(text->front()))
    text->erase(0, 1);
  for (const char character : *text) {
    if (is_blank(character)) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("user.tokenFile: {} holds more than a token", file.string()));
    }
  }
  if (text->empty()) {
    return fail(ErrorKind::InvalidInput, fmt::format("user.tokenFile: {} is empty", file.string()));
  }
  return text;
}

http::Headers impersonation_of(const KubeconfigUser& user) {
  http::Headers headers;
  if (user.as.empty()) return headers;
  headers.emplace_back("Impersonate-User", user.as);
  if (!user.as_uid.empty()) headers.emplace_back("Impersonate-Uid", user.as_uid);
  for (const std::string& group : user.as_groups)
    headers.emplace_back("Impersonate-Group", group);
  for (const auto& [key, values] : user.as_user_extra) {
    for (const std::string& value : values)
      headers.emplace_back("Impersonate-Extra-" + internal::percent_encode(key), value);
  }
  return headers;
}

}  // namespace

Result<Login> find_login(const LoginSource& source) {
  if (!source.kubeconfig.empty()) {
    return resolve(HANGAR_TRY(load_kubeconfig(source.kubeconfig)), source.context);
  }
  if (const auto list = variable(source, "KUBECONFIG"); list && !list->empty()) {
    const Kubeconfig config = HANGAR_TRY(load_list(*list));
    auto login = resolve(config, source.context);
    if (!login) return std::unexpected(std::move(login).error().in("KUBECONFIG=" + *list));
    return login;
  }
  // A requested context must be one of a kubeconfig.
  if (source.context.empty()) {
    if (auto login = in_cluster_login(source)) return *std::move(login);
  }
  if (const auto home = variable(source, "HOME"); home && !home->empty()) {
    const path file = path(*home) / ".kube" / "config";
    auto config = load_kubeconfig(file);
    if (config) return resolve(*config, source.context);
    if (config.error().kind() != ErrorKind::NotFound) {
      return std::unexpected(std::move(config).error());
    }
  }
  return fail(
      ErrorKind::NotFound,
      "no cluster configured: set --kubeconfig or KUBECONFIG, run in a pod with a service account, "
      "or create ~/.kube/config");
}

Credentials::Credentials(io::Loop& loop, Login login, Log log)
    : loop_(loop),
      login_(std::move(login)),
      log_(std::move(log)),
      impersonation_(impersonation_of(login_.user)),
      renewing_(loop, 1) {}

Credentials::~Credentials() {
  plugin_stop_.request_stop();
}

bool Credentials::uses_exec() const {
  // All other credentials take precedence over exec, as in client-go.
  return login_.user.exec && login_.user.token.empty() && login_.user.token_file.empty() &&
         login_.user.username.empty();
}

bool Credentials::uses_files() const {
  const auto from_file = [](const Pem& pem) { return pem.text.empty() && !pem.file.empty(); };
  return !login_.user.token_file.empty() || from_file(login_.cluster.certificate_authority) ||
         from_file(login_.user.client_certificate) || from_file(login_.user.client_key);
}

bool Credentials::is_fresh() const {
  const Instant now = io::Loop::now();
  return material_ && now < read_again_at_ && now < expires_at_;
}

Result<Credentials::Material> Credentials::read_files() const {
  const KubeconfigUser& user = login_.user;
  Material material;
  material.ca_pem =
      HANGAR_TRY(read_pem(login_.cluster.certificate_authority, "cluster.certificate-authority"));
  material.certificate_pem =
      HANGAR_TRY(read_pem(user.client_certificate, "user.client-certificate"));
  material.key_pem = HANGAR_TRY(read_pem(user.client_key, "user.client-key"));
  if (!user.token_file.empty()) {
    auto token = read_token(user.token_file);
    // The token beside the file is used when the file cannot be read.
    if (!token && user.token.empty()) return std::unexpected(std::move(token).error());
    material.authorization = "Bearer " + (token ? *token : user.token);
  } else if (!user.token.empty()) {
    material.authorization = "Bearer " + user.token;
  } else if (!user.username.empty()) {
    material.authorization = "Basic " + base64_encode(user.username + ":" + user.password);
  }
  return material;
}

io::Task<Result<>> Credentials::refresh(Plugin run, std::stop_token stop) {
  auto read = read_files();
  if (!read) co_return std::unexpected(std::move(read).error().in(login_.source));
  Material material = *std::move(read);
  if (uses_exec()) {
    if (run == Plugin::Always || !plugin_credential_ || io::Loop::now() >= expires_at_) {
      auto done = co_await run_plugin(material.ca_pem, std::move(stop));
      if (!done) co_return std::unexpected(std::move(done).error().in(login_.source));
    }
    if (!plugin_credential_->token.empty()) {
      material.authorization = "Bearer " + plugin_credential_->token;
    }
    if (!plugin_credential_->key_pem.empty()) {
      material.certificate_pem = plugin_credential_->certificate_pem;
      material.key_pem = plugin_credential_->key_pem;
    }
  }
  adopt(std::move(material));
  co_return Result<>();
}

io::Task<Result<>> Credentials::run_plugin(std::string ca_pem, std::stop_token stop) {
  if (!plugin_thread_) plugin_thread_ = std::make_unique<io::Workers>(loop_, 1);
  plugin_stop_ = std::stop_source();
  const std::stop_callback on_stop(std::move(stop), [this] { plugin_stop_.request_stop(); });
  plugin_credential_ = HANGAR_CO_TRY(co_await plugin_thread_->run(
      Consumer::of_host("login"),
      [plugin = *login_.user.exec, cluster = login_.cluster, ca_pem = std::move(ca_pem),
       plugin_stop = plugin_stop_.get_token()] {
        return run_exec_plugin(plugin, exec_info(plugin, cluster, ca_pem), limits::kExecPluginMax,
                               plugin_stop);
      }));
  expires_at_ = Instant::max();
  if (plugin_credential_->expires) {
    const WallTime now = io::Loop::wall_now();
    const Duration lifetime =
        *plugin_credential_->expires > now ? *plugin_credential_->expires - now : Duration::zero();
    expires_at_ = io::Loop::now() + std::max<Duration>(lifetime - kExpiryMargin, kLifetimeMin);
  }
  co_return Result<>();
}

void Credentials::adopt(Material material) {
  read_again_at_ = uses_files() ? io::Loop::now() + limits::kCredentialFileAge : Instant::max();
  if (material_ == material) return;
  // Requests with the same transport share connections, so it changes only when necessary.
  const bool same_transport = material_ && material_->ca_pem == material.ca_pem &&
                              material_->certificate_pem == material.certificate_pem &&
                              material_->key_pem == material.key_pem;
  if (!same_transport) {
    grant_.transport = std::make_shared<const http::Transport>(
        http::Transport{.ca_pem = material.ca_pem,
                        .certificate_pem = material.certificate_pem,
                        .key_pem = material.key_pem,
                        .server_name = login_.cluster.tls_server_name,
                        .skip_verify = login_.cluster.insecure_skip_tls_verify,
                        .proxy_url = login_.cluster.proxy_url});
  }
  grant_.headers.clear();
  if (!material.authorization.empty()) {
    grant_.headers.emplace_back("Authorization", material.authorization);
  }
  ++grant_.generation;
  material_ = std::move(material);
}

io::Task<Result<Credentials::Grant>> Credentials::grant(std::stop_token stop) {
  if (is_fresh()) co_return grant_;
  const auto slot = co_await renewing_.acquire();
  if (is_fresh()) co_return grant_;
  auto refreshed = co_await refresh(Plugin::WhenExpired, std::move(stop));
  if (refreshed) co_return grant_;
  if (!material_ || refreshed.error().kind() == ErrorKind::Cancelled ||
      io::Loop::now() >= expires_at_) {
    co_return std::unexpected(std::move(refreshed).error());
  }
  // A file is being replaced, or is gone: its old contents may well be valid still, and if not the
  // server says so.
  log_.warning("credentials could not be read again", {{"error", refreshed.error().message()}});
  read_again_at_ = io::Loop::now() + kRenewalInterval;
  co_return grant_;
}

io::Task<Result<bool>> Credentials::renew(std::uint64_t generation, std::stop_token stop) {
  const auto slot = co_await renewing_.acquire();
  // A 401 to another request has led to a new grant in the meantime.
  if (grant_.generation != generation) co_return true;
  if (!uses_exec() && !uses_files()) co_return false;
  // A server that refuses everything must not make us run a plugin for each request.
  if (io::Loop::now() < forced_again_at_) co_return false;
  forced_again_at_ = io::Loop::now() + kRenewalInterval;
  HANGAR_CO_TRY(co_await refresh(Plugin::Always, std::move(stop)));
  co_return grant_.generation != generation;
}

}  // namespace hangar::kube
