#include "kube/auth/exec_plugin.h"

#include "base/base64.h"
#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"
#include "io/program.h"
#include "json/value.h"
#include "kube/auth/kubeconfig.h"
#include "kube/limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

using io::Descriptor;

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kInfoVariable = "KUBERNETES_EXEC_INFO";

std::string errno_text(int code) {
  return std::generic_category().message(code);
}

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};
Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorKind::Unavailable, fmt::format("pipe: {}", errno_text(errno)));
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// A running plugin, the leader of its own process group. The destructor kills and reaps it with
// its group.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    wait();
  }

  // Reaps it and returns its wait status.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

// This process's environment, overridden by the plugin's own variables.
std::vector<std::string> environment_of(const ExecPlugin& plugin, const std::string& info) {
  std::vector<std::string> own;
  for (const auto& [name, value] : plugin.env)
    own.push_back(fmt::format("{}={}", name, value));
  own.push_back(fmt::format("{}={}", kInfoVariable, info));
  return io::environment_with(own);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts)
    out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Result<pid_t> spawn(const ExecPlugin& plugin, const std::string& info, int output, int errors) {
  std::vector<std::string> arguments = {plugin.command};
  arguments.insert(arguments.end(), plugin.args.begin(), plugin.args.end());
  std::vector<std::string> environment = environment_of(plugin, info);

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  // The plugin must not inherit which signals the host blocks or ignores.
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  pid_t pid = -1;
  const int code = ::posix_spawnp(&pid, plugin.command.c_str(), &actions, &attributes,
                                  pointers_to(arguments).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code == 0) return pid;
  const std::string hint =
      plugin.install_hint.empty() ? "" : fmt::format(" ({})", plugin.install_hint);
  return fail(ErrorKind::Unavailable, fmt::format("cannot start: {}{}", errno_text(code), hint));
}

// Reads the bytes that are available; closes the descriptor at the end of the stream.
Result<> drain(Descriptor& from, std::string& into) {
  std::array<char, 16384> buffer{};
  const ssize_t count = ::read(from.value(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return {};
  if (count <= 0) {
    from.close();
    return {};
  }
  into.append(buffer.data(), static_cast<std::size_t>(count));
  if (into.size() > limits::kExecPluginOutputBytesMax) {
    return fail(ErrorKind::Unavailable,
                fmt::format("printed more than {} bytes", limits::kExecPluginOutputBytesMax));
  }
  return {};
}

// Reads until both streams end, which is when the plugin and all its children have closed them.
Result<> read_all(Pipe& output, Pipe& errors, std::string& output_text, std::string& errors_text,
                  milliseconds deadline, const std::stop_token& stop) {
  const Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback on_stop(stop, [&wake] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake.value(), &one, sizeof one);
  });
  const auto until = steady_clock::now() + deadline;
  while (output.read_end.is_open() || errors.read_end.is_open()) {
    if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "stopping");
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
    if (left <= milliseconds::zero()) {
      return fail(ErrorKind::Unavailable,
                  fmt::format("did not end within {}", to_go_duration(deadline)));
    }
    // A closed descriptor is -1, which poll ignores.
    std::array<pollfd, 3> waits{{{output.read_end.value(), POLLIN, 0},
                                 {errors.read_end.value(), POLLIN, 0},
                                 {wake.value(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
      return fail(ErrorKind::Unavailable, fmt::format("poll: {}", errno_text(errno)));
    }
    if (waits[0].revents != 0) HANGAR_TRY(drain(output.read_end, output_text));
    if (waits[1].revents != 0) HANGAR_TRY(drain(errors.read_end, errors_text));
  }
  return {};
}

// The end of the plugin's stderr, on one line.
std::string last_words(std::string_view errors) {
  constexpr std::size_t kEnough = 1024;
  while (!errors.empty() && (errors.back() == '\n' || errors.back() == ' '))
    errors.remove_suffix(1);
  if (errors.size() > kEnough) errors = errors.substr(errors.size() - kEnough);
  std::string out(errors);
  for (char& character : out) {
    if (static_cast<unsigned char>(character) < 0x20) character = ' ';
  }
  return out.empty() ? out : ": " + out;
}

Result<ExecCredential> run(const ExecPlugin& plugin, const std::string& info, milliseconds deadline,
                           const std::stop_token& stop) {
  Pipe output = HANGAR_TRY(make_pipe());
  Pipe errors = HANGAR_TRY(make_pipe());
  Child child(HANGAR_TRY(spawn(plugin, info, output.write_end.value(), errors.write_end.value())));
  output.write_end.close();
  errors.write_end.close();

  std::string output_text;
  std::string errors_text;
  if (auto read = read_all(output, errors, output_text, errors_text, deadline, stop); !read) {
    return fail(read.error().kind(), read.error().message() + last_words(errors_text));
  }
  const int status = child.wait();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string how = WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                              : fmt::format("signal {}", WTERMSIG(status));
    return fail(ErrorKind::Unavailable, how + last_words(errors_text));
  }
  return parse_exec_credential(output_text, plugin);
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
