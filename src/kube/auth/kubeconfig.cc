#include "kube/auth/kubeconfig.h"

#include "base/base64.h"
#include "base/result.h"
#include "base/text.h"
#include "json/value.h"
#include "json/yaml.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

using std::filesystem::path;

constexpr std::string_view kExecExtension = "client.authentication.k8s.io/exec";
constexpr std::string_view kExecV1 = "client.authentication.k8s.io/v1";
constexpr std::string_view kExecV1Beta1 = "client.authentication.k8s.io/v1beta1";

// Reads members of one object of a kubeconfig. The first mistake is kept, and `finish` returns it;
// it names the file and the field, never the value.
class Fields {
 public:
  Fields(const json::Value& object, const path& file, std::string where)
      : object_(object.if_object()), file_(file), where_(std::move(where)) {
    if (object_ == nullptr) refuse({}, "is not an object");
  }

  [[nodiscard]] std::string text(std::string_view name) {
    const json::Value* const value = member(name);
    if (value == nullptr) return {};
    if (value->is_string()) return std::string(value->get_string());
    refuse(name, "is not text");
    return {};
  }

  [[nodiscard]] bool flag(std::string_view name) {
    const json::Value* const value = member(name);
    if (value == nullptr) return false;
    if (value->is_bool()) return value->get_bool();
    refuse(name, "is neither true nor false");
    return false;
  }

  [[nodiscard]] path relative_path(std::string_view name) {
    const std::string value = text(name);
    if (value.empty()) return {};
    return (file_.parent_path() / value).lexically_normal();
  }

  // PEM in base64 under `name`-data, or a file under `name`.
  [[nodiscard]] Pem pem(const std::string& name) {
    Pem out{.file = relative_path(name)};
    const std::string data_name = name + "-data";
    const std::string encoded = text(data_name);
    if (encoded.empty()) return out;
    std::optional<std::string> decoded = base64_decode(encoded);
    if (!decoded) {
      refuse(data_name, "is not base64");
    } else if (!decoded->contains("-----BEGIN ")) {
      refuse(data_name, "holds no PEM block");
    } else {
      out.text = *std::move(decoded);
    }
    return out;
  }

  [[nodiscard]] std::vector<std::string> texts(std::string_view name) {
    std::vector<std::string> out;
    for (const json::Value& element : elements(name)) {
      if (element.is_string()) {
        out.emplace_back(element.get_string());
      } else {
        refuse(name, "has an element that is not text");
      }
    }
    return out;
  }

  [[nodiscard]] json::Array elements(std::string_view name) {
    const json::Value* const value = member(name);
    if (value == nullptr) return {};
    if (value->is_array()) return value->get_array();
    refuse(name, "is not a list");
    return {};
  }

  // Null when the member is absent.
  [[nodiscard]] const json::Value* member(std::string_view name) const {
    const json::Value* const value = object_ == nullptr ? nullptr : object_->if_contains(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  [[nodiscard]] std::string where(std::string_view name) const {
    return where_.empty() || name.empty() ? where_ + std::string(name)
                                          : fmt::format("{}.{}", where_, name);
  }

  void refuse(std::string_view name, std::string_view what) {
    if (mistake_) return;
    mistake_ = fmt::format("{}: {} {}", file_.string(), where(name), what);
  }
  void adopt(const Result<>& result) {
    if (!result && !mistake_) mistake_ = result.error().message();
  }
  [[nodiscard]] Result<> finish() const {
    if (mistake_) return fail(ErrorKind::InvalidInput, *mistake_);
    return {};
  }

 private:
  const json::Object* object_;
  const path& file_;
  std::string where_;  // "users[dev].user"
  std::optional<std::string> mistake_;
};

Result<KubeconfigCluster> read_cluster(const json::Value& value, const path& file,
                                       std::string where) {
  Fields fields(value, file, std::move(where));
  KubeconfigCluster cluster;
  cluster.server = fields.text("server");
  cluster.tls_server_name = fields.text("tls-server-name");
  cluster.insecure_skip_tls_verify = fields.flag("insecure-skip-tls-verify");
  cluster.certificate_authority = fields.pem("certificate-authority");
  cluster.proxy_url = fields.text("proxy-url");
  for (const json::Value& extension : fields.elements("extensions")) {
    if (json::string_at(extension, {"name"}) != kExecExtension) continue;
    if (const json::Value* const config = json::find(extension, {"extension"})) {
      cluster.exec_config = *config;
    }
  }
  HANGAR_TRY(fields.finish());
  return cluster;
}

Result<ExecPlugin> read_exec(const json::Value& value, const path& file, std::string where) {
  Fields fields(value, file, std::move(where));
  ExecPlugin exec;
  exec.api_version = fields.text("apiVersion");
  exec.command = fields.text("command");
  exec.args = fields.texts("args");
  exec.install_hint = fields.text("installHint");
  exec.provide_cluster_info = fields.flag("provideClusterInfo");
  for (const json::Value& variable : fields.elements("env")) {
    exec.env.emplace_back(json::string_at(variable, {"name"}),
                          json::string_at(variable, {"value"}));
    if (exec.env.back().first.empty()) fields.refuse("env", "has an entry without a name");
  }
  if (exec.command.empty()) fields.refuse("command", "is missing");
  if (exec.api_version != kExecV1 && exec.api_version != kExecV1Beta1) {
    fields.refuse("apiVersion", fmt::format("must be {} or {}", kExecV1, kExecV1Beta1));
  }
  if (fields.text("interactiveMode") == "Always") {
    fields.refuse("interactiveMode",
                  "is Always, which is not supported (no terminal): use a token");
  }
  // A path with a slash is relative to the file; a bare name is looked for in PATH.
  if (exec.command.contains('/')) exec.command = fields.relative_path("command").string();
  HANGAR_TRY(fields.finish());
  return exec;
}

Result<KubeconfigUser> read_user(const json::Value& value, const path& file, std::string where) {
  Fields fields(value, file, std::move(where));
  KubeconfigUser user;
  user.client_certificate = fields.pem("client-certificate");
  user.client_key = fields.pem("client-key");
  user.token = fields.text("token");
  user.token_file = fields.relative_path("tokenFile");
  user.username = fields.text("username");
  user.password = fields.text("password");
  user.as = fields.text("as");
  user.as_uid = fields.text("as-uid");
  user.as_groups = fields.texts("as-groups");
  if (const json::Value* const extra = fields.member("as-user-extra")) {
    Fields extras(*extra, file, fields.where("as-user-extra"));
    if (const json::Object* const members = extra->if_object()) {
      for (const auto& member : *members)
        user.as_user_extra[std::string(member.key())] = extras.texts(member.key());
    }
    fields.adopt(extras.finish());
  }
  if (fields.member("auth-provider") != nullptr) {
    fields.refuse("auth-provider", "is not supported: use an exec plugin");
  }
  if (const json::Value* const exec = fields.member("exec")) {
    user.exec = HANGAR_TRY(read_exec(*exec, file, fields.where("exec")));
  }
  HANGAR_TRY(fields.finish());
  return user;
}

Result<KubeconfigContext> read_context(const json::Value& value, const path& file,
                                       std::string where) {
  Fields fields(value, file, std::move(where));
  KubeconfigContext context{.cluster = fields.text("cluster"),
                            .user = fields.text("user"),
                            .namespace_ = fields.text("namespace")};
  HANGAR_TRY(fields.finish());
  return context;
}

// A list of {name, <member>: {...}} as a map.
template <class T>
Result<std::map<std::string, Kubeconfig::From<T>>> read_named(
    Fields& root, const path& file, std::string_view list, std::string_view member,
    Result<T> (*read)(const json::Value&, const path&, std::string)) {
  std::map<std::string, Kubeconfig::From<T>> out;
  for (const json::Value& entry : root.elements(list)) {
    Fields fields(entry, file, std::string(list));
    const std::string name = fields.text("name");
    HANGAR_TRY(fields.finish());
    const json::Value empty = json::Object();
    const json::Value* const value = fields.member(member);
    T read_value = HANGAR_TRY(read(value == nullptr ? empty : *value, file,
                                   fmt::format("{}[{}].{}", list, name, member)));
    if (!out.try_emplace(name, Kubeconfig::From<T>{std::move(read_value), file}).second) {
      root.refuse(list, fmt::format("has two entries with the name \"{}\"", name));
    }
  }
  return out;
}

// As client-go's DefaultServerURL: https when any TLS setting is given, else http.
Result<std::string> normalized_server(const Login& login) {
  std::string server = login.cluster.server;
  const auto refuse = [&login](std::string_view what) {
    return fail(ErrorKind::InvalidInput, fmt::format("{}: cluster.server {}", login.source, what));
  };
  if (server.empty()) return refuse("is missing");
  if (has_control_character(server) || server.contains(' ')) return refuse("is not a URL");
  if (const std::size_t scheme = server.find("://"); scheme == std::string::npos) {
    const bool tls = login.cluster.certificate_authority.is_given() ||
                     login.user.client_certificate.is_given() ||
                     login.cluster.insecure_skip_tls_verify;
    server.insert(0, tls ? "https://" : "http://");
  } else if (server.substr(0, scheme) != "https" && server.substr(0, scheme) != "http") {
    return refuse("must begin with https:// or http://");
  }
  const std::size_t host = server.find("://") + 3;
  if (server.find_first_of("?#", host) != std::string::npos) {
    return refuse("must have neither query nor fragment");
  }
  if (server.substr(host, server.find('/', host) - host).contains('@')) {
    return refuse("must not hold credentials: put them into the user's entry");
  }
  while (server.ends_with('/'))
    server.pop_back();
  if (server.size() <= host) return refuse("has no host");
  return server;
}

Result<> check_consistent(const Login& login) {
  const KubeconfigUser& user = login.user;
  const auto refuse = [&login](std::string_view what) -> Result<> {
    return fail(ErrorKind::InvalidInput, fmt::format("{}: {}", login.source, what));
  };
  const bool token = !user.token.empty() || !user.token_file.empty();
  if (token && !user.username.empty()) {
    return refuse("user has both a token and a username: only one of them is allowed");
  }
  if (user.client_certificate.is_given() != user.client_key.is_given()) {
    return refuse("user needs client-certificate and client-key, or neither");
  }
  if (login.cluster.insecure_skip_tls_verify && login.cluster.certificate_authority.is_given()) {
    return refuse("cluster has both certificate-authority and insecure-skip-tls-verify");
  }
  if (user.as.empty() &&
      !(user.as_uid.empty() && user.as_groups.empty() && user.as_user_extra.empty())) {
    return refuse("user.as is missing: the other impersonation fields need it");
  }
  bool breaks_a_header = has_control_character(user.token) || has_control_character(user.as) ||
                         has_control_character(user.as_uid);
  for (const std::string& group : user.as_groups)
    breaks_a_header |= has_control_character(group);
  for (const auto& [key, values] : user.as_user_extra) {
    for (const std::string& value : values)
      breaks_a_header |= has_control_character(value);
  }
  if (breaks_a_header) return refuse("user has a field with a control character");
  return {};
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(std::string_view bytes, const path& file) {
  auto documents = json::parse_yaml_stream(bytes);
  if (!documents) return std::unexpected(std::move(documents).error().in(file.string()));
  if (documents->empty()) return Kubeconfig();
  if (documents->size() > 1) {
    return fail(ErrorKind::InvalidInput, fmt::format("{}: more than one document", file.string()));
  }
  Fields root(documents->front(), file, "");
  const std::string kind = root.text("kind");
  const std::string api_version = root.text("apiVersion");
  if (!kind.empty() && kind != "Config") root.refuse("kind", "is not Config");
  if (!api_version.empty() && api_version != "v1") root.refuse("apiVersion", "is not v1");
  HANGAR_TRY(root.finish());

  Kubeconfig config;
  config.current_context = root.text("current-context");
  config.clusters = HANGAR_TRY(read_named(root, file, "clusters", "cluster", read_cluster));
  config.users = HANGAR_TRY(read_named(root, file, "users", "user", read_user));
  config.contexts = HANGAR_TRY(read_named(root, file, "contexts", "context", read_context));
  HANGAR_TRY(root.finish());
  return config;
}

Kubeconfig merge(Kubeconfig first, Kubeconfig second) {
  // map::merge keeps existing entries.
  first.clusters.merge(second.clusters);
  first.users.merge(second.users);
  first.contexts.merge(second.contexts);
  if (first.current_context.empty()) first.current_context = std::move(second.current_context);
  return first;
}

Result<Login> resolve(const Kubeconfig& config, std::string_view context) {
  const std::string name(context.empty() ? std::string_view(config.current_context) : context);
  if (name.empty()) {
    return fail(ErrorKind::InvalidInput,
                "the kubeconfig has no current-context: set one or name a context");
  }
  const auto found = config.contexts.find(name);
  if (found == config.contexts.end()) {
    return fail(ErrorKind::InvalidInput, fmt::format("kubeconfig: no context \"{}\"", name));
  }
  const auto& [wanted, file] = found->second;
  Login login{.source = fmt::format("context {} of {}", name, file.string()),
              .namespace_ = wanted.namespace_};
  const auto cluster = config.clusters.find(wanted.cluster);
  if (cluster == config.clusters.end()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{}: no cluster \"{}\"", login.source, wanted.cluster));
  }
  login.cluster = cluster->second.value;
  // A context without a user is anonymous; one that names a missing user is a mistake.
  if (!wanted.user.empty()) {
    const auto user = config.users.find(wanted.user);
    if (user == config.users.end()) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("{}: no user \"{}\"", login.source, wanted.user));
    }
    login.user = user->second.value;
  }
  HANGAR_TRY(check_consistent(login));
  login.cluster.server = HANGAR_TRY(normalized_server(login));
  return login;
}

}  // namespace hangar::kube
