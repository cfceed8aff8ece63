#include "testing/control_plane.h"

#include "base/assert.h"
#include "testing/subprocess.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::testing {
namespace {

constexpr std::string_view kScript = HANGAR_SOURCE_DIR "/dev/control-plane.sh";

// The exit status of dev/control-plane.sh if the control plane's programs have not been built.
constexpr int kExitNotBuilt = 77;

// A cold start on a busy machine beside running sanitizers took 20 s.
constexpr std::chrono::seconds kStartMax{180};

std::string_view name_of(Component component) {
  switch (component) {
    case Component::Etcd:
      return "etcd";
    case Component::ApiServer:
      return "kube-apiserver";
    case Component::ControllerManager:
      return "kube-controller-manager";
    case Component::Scheduler:
      return "kube-scheduler";
    case Component::Kwok:
      return "kwok";
    case Component::Registry:
      return "registry";
  }
  std::unreachable();
}

std::vector<std::string> up_arguments(const std::string& directory,
                                      const ControlPlaneOptions& options) {
  std::vector<std::string> arguments = {"bash", std::string(kScript), "up", "--dir=" + directory,
                                        fmt::format("--watch-pid={}", ::getpid())};
  if (options.controller_manager) arguments.emplace_back("--with-kcm");
  if (options.simulated_nodes > 0) {
    arguments.emplace_back("--with-scheduler");
    arguments.push_back(fmt::format("--with-kwok={}", options.simulated_nodes));
  }
  if (options.proxy) arguments.emplace_back("--with-proxy");
  if (options.registry) arguments.emplace_back("--with-registry");
  if (options.audit) arguments.emplace_back("--audit");
  for (const std::string& argument : options.apiserver_arguments) {
    arguments.push_back("--apiserver-arg=" + argument);
  }
  return arguments;
}

// The last lines of a tool are enough for an error message; kubectl prints one line, a failed
// start 20.
std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text;
}

}  // namespace

Result<std::unique_ptr<ControlPlane>> ControlPlane::start(const ControlPlaneOptions& options) {
  std::string directory = (std::filesystem::temp_directory_path() / "hangar-cp-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{}: {}", directory, std::generic_category().message(errno)));
  }
  // From here on the destructor cleans up, even if the start fails.
  std::unique_ptr<ControlPlane> control_plane(new ControlPlane(directory));
  const Finished up = HANGAR_TRY(
      run({.arguments = up_arguments(control_plane->directory_, options), .deadline = kStartMax}));
  if (up.exit_code == kExitNotBuilt) return fail(ErrorKind::NotFound, trimmed(up.errors));
  if (up.exit_code != 0) return fail(ErrorKind::Unavailable, trimmed(up.errors));
  HANGAR_TRY(control_plane->read_environment());
  return control_plane;
}

ControlPlane::~ControlPlane() {
  const std::string script_path(kScript);
  // If this fails, the watchdog stops the instance when this process has exited.
  [[maybe_unused]] const auto ended =
      run({.arguments = {"bash", script_path, "down", "--dir=" + directory_}});
  // An instance removes its directory; this removes the files of a start that failed early.
  std::error_code ignored;
  std::filesystem::remove(directory_, ignored);
}

Result<std::string> ControlPlane::kubectl(std::vector<std::string> arguments, std::string input) {
  arguments.insert(arguments.begin(), {value("HANGAR_CP_KUBECTL"), "--kubeconfig=" + kubeconfig()});
  Finished finished =
      HANGAR_TRY(run({.arguments = std::move(arguments), .input = std::move(input)}));
  if (finished.exit_code != 0)
    return fail(ErrorKind::InvalidInput, "kubectl: " + trimmed(finished.errors));
  return std::move(finished.output);
}

Result<std::string> ControlPlane::push(const std::string& name_and_tag, const std::string& file,
                                       PushForm form) {
  const std::filesystem::path programs =
      std::filesystem::path(value("HANGAR_CP_KUBECTL")).parent_path();
  std::vector<std::string> arguments = {(programs / "oras-push").string(), "-user",
                                        registry_user()};
  if (form == PushForm::Stow) arguments.emplace_back("-stow");
  arguments.push_back(fmt::format("{}/{}", registry_address(), name_and_tag));
  arguments.push_back(file);
  Finished finished = HANGAR_TRY(run(
      {.arguments = std::move(arguments), .environment = {"ORAS_PASSWORD=" + registry_password_}}));
  if (finished.exit_code != 0) return fail(ErrorKind::Unavailable, trimmed(finished.errors));
  return trimmed(std::move(finished.output));
}

Result<std::string> ControlPlane::unique_namespace(std::string_view prefix) {
  static std::atomic<int> made = 0;
  std::string name = fmt::format("{}-{}-{}", prefix, ::getpid(), ++made);
  (void)HANGAR_TRY(kubectl({"create", "namespace", name}));
  return name;
}

Result<> ControlPlane::kill(Component component) {
  return script("kill", component);
}
Result<> ControlPlane::start_again(Component component) {
  return script("start", component);
}

Result<> ControlPlane::cut() {
  return toxiproxy("POST", "/proxies/apiserver", R"({"enabled": false})");
}
Result<> ControlPlane::restore() {
  return toxiproxy("POST", "/proxies/apiserver", R"({"enabled": true})");
}

Result<> ControlPlane::delay_answers(std::chrono::milliseconds latency) {
  return add_toxic(fmt::format(
      R"({{"type": "latency", "stream": "downstream", "attributes": {{"latency": {}}}}})",
      latency.count()));
}

Result<> ControlPlane::reset_connections(std::chrono::milliseconds after) {
  return add_toxic(fmt::format(
      R"({{"type": "reset_peer", "stream": "downstream", "attributes": {{"timeout": {}}}}})",
      after.count()));
}

Result<> ControlPlane::add_toxic(const std::string& json) {
  return toxiproxy("POST", "/proxies/apiserver/toxics", json);
}

Result<> ControlPlane::heal() {
  return toxiproxy("POST", "/reset", "");
}

const std::string& ControlPlane::value(const std::string& name) const {
  const auto found = values_.find(name);
  HANGAR_ASSERT(found != values_.end(),
                "the control plane was started without what the test asks for");
  return found->second;
}

Result<> ControlPlane::read_environment() {
  std::ifstream file(directory_ + "/env");
  for (std::string line; std::getline(file, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos)
      return fail(ErrorKind::Corrupt, "env of the control plane: " + line);
    values_.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  if (!values_.contains("KUBECONFIG"))
    return fail(ErrorKind::Corrupt, "env of the control plane is empty");
  if (const auto password = values_.find("HANGAR_CP_REGISTRY_PASSWORD_FILE");
      password != values_.end()) {
    std::ifstream(password->second) >> registry_password_;
  }
  return {};
}

Result<> ControlPlane::script(std::string_view command, Component component) {
  const Finished finished =
      HANGAR_TRY(run({.arguments = {"bash", std::string(kScript), std::string(command),
                                    std::string(name_of(component)), "--dir=" + directory_},
                      .deadline = kStartMax}));
  if (finished.exit_code != 0) return fail(ErrorKind::Unavailable, trimmed(finished.errors));
  return {};
}

Result<> ControlPlane::toxiproxy(std::string_view method, std::string_view path,
                                 const std::string& body) {
  const Finished finished = HANGAR_TRY(run(
      {.arguments = {"curl", "--fail-with-body", "-sS", "--noproxy", "*", "-X", std::string(method),
                     "--data-binary", "@-", value("HANGAR_CP_TOXIPROXY") + std::string(path)},
       .input = body}));
  if (finished.exit_code != 0) {
    return fail(ErrorKind::Unavailable,
                fmt::format("toxiproxy {}: {} {}", path, trimmed(finished.errors),
                            trimmed(finished.output)));
  }
  return {};
}

}  // namespace hangar::testing
