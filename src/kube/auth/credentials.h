// How to reach one API server, and the credentials for it.
//
// A Grant is what a request needs: transport and headers. It stays the same until a token or
// certificate is renewed. Files are read again once a minute, exec plugins run again when their
// credential expires, and both happen at once when the server answers 401. Loop thread only; exec
// plugins run on a separate thread.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/auth/exec_plugin.h"
#include "kube/auth/kubeconfig.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {

// Where to find a login, in this order: the kubeconfig named by a flag; the files of KUBECONFIG;
// the service account of our pod; ~/.kube/config.
struct LoginSource {
  std::filesystem::path kubeconfig = {};
  std::string context = {};  // The context of a kubeconfig; empty: the current one.
  std::filesystem::path service_account_directory = "/var/run/secrets/kubernetes.io/serviceaccount";
  // Looks up an environment variable; empty: in the environment of this process.
  std::function<std::optional<std::string>(const std::string&)> environment = {};
};

// Reads files. Errors: InvalidInput and those of io::read_file, naming file, context and field.
[[nodiscard]] Result<Login> find_login(const LoginSource& source);

class Credentials {
 public:
  Credentials(io::Loop& loop, Login login, Log log);
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;
  // All requests must have finished. Kills a plugin that still runs, and waits for it.
  ~Credentials();

  // "https://10.0.0.1:6443/prefix", without a trailing slash.
  [[nodiscard]] const std::string& server() const { return login_.cluster.server; }
  // The namespace of the context (or pod); empty when it gives none.
  [[nodiscard]] const std::string& namespace_() const { return login_.namespace_; }
  // The headers of the impersonation that the kubeconfig itself requires.
  [[nodiscard]] const http::Headers& impersonation() const { return impersonation_; }

  struct Grant {
    std::shared_ptr<const http::Transport> transport;
    http::Headers headers;  // Authorization, or nothing.
    std::uint64_t generation = 0;
  };
  // Errors: Denied or NotFound (files), InvalidInput (their content), Unavailable (exec plugin),
  // Cancelled. When a renewal fails while the old grant is still valid, the error is logged and
  // not returned.
  [[nodiscard]] io::Task<Result<Grant>> grant(std::stop_token stop);

  // Call this after a 401 to a request with the grant of `generation`: obtains a new grant if it
  // can. True when it is worth retrying the request.
  [[nodiscard]] io::Task<Result<bool>> renew(std::uint64_t generation, std::stop_token stop);

 private:
  // The data from which a Grant is made.
  struct Material {
    std::string ca_pem;
    std::string certificate_pem;
    std::string key_pem;
    std::string authorization;
    bool operator==(const Material&) const = default;
  };
  [[nodiscard]] Result<Material> read_files() const;
  enum class Plugin : std::uint8_t { WhenExpired, Always };
  [[nodiscard]] io::Task<Result<>> refresh(Plugin run, std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> run_plugin(std::string ca_pem, std::stop_token stop);
  [[nodiscard]] bool is_fresh() const;
  [[nodiscard]] bool uses_exec() const;
  [[nodiscard]] bool uses_files() const;
  void adopt(Material material);

  io::Loop& loop_;
  Login login_;
  Log log_;
  http::Headers impersonation_;
  io::Semaphore renewing_;

  std::optional<Material> material_;
  Grant grant_;
  Instant read_again_at_ = Instant::max();
  std::optional<ExecCredential> plugin_credential_;
  Instant expires_at_ = Instant::max();  // When plugin_credential_ expires.
  Instant forced_again_at_ = Instant::min();

  std::stop_source plugin_stop_;                // Stops the current run.
  std::unique_ptr<io::Workers> plugin_thread_;  // Made for the first plugin run.
};

}  // namespace hangar::kube
