// A real Kubernetes control plane (etcd, kube-apiserver, ...) for the tests of one program, on
// loopback.
//
// This project has no mock of the API server: tests run against the real one. dev/control-plane.sh
// does the work; this class starts an instance, returns its addresses, injects faults, and stops
// it. A killed test program leaves nothing behind: a watchdog stops the instance.
//
// Most tests do not start an instance but use the one that their program
// shares: shared_control_plane.h.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::testing {

struct ControlPlaneOptions {
  // kube-controller-manager: garbage collection, namespaces, Jobs, Deployments.
  bool controller_manager = true;
  // Simulated nodes, whose pods do not really run: they become ready at once, and pods of Jobs
  // finish (the pod annotation hangar.dev/test-outcome says how, see
  // dev/control-plane/stages.yaml). Also starts the scheduler.
  int simulated_nodes = 0;
  // A proxy between the program under test and the API server, for ControlPlane's faults.
  bool proxy = false;
  // An OCI registry: plain HTTP, basic authentication.
  bool registry = false;
  // Logs every request to the API server as a line of audit_log().
  bool audit = false;
  std::vector<std::string> apiserver_arguments;
};

enum class Component : std::uint8_t {
  Etcd,
  ApiServer,
  ControllerManager,
  Scheduler,
  Kwok,
  Registry
};

// Every call blocks: do not call them on the loop thread. Only the accessors and unique_namespace()
// are thread-safe.
class ControlPlane {
 public:
  // Takes some 3 s. Errors: NotFound if the programs have not been built (`make deps`), Unavailable
  // if they do not start; the message has the end of their log.
  [[nodiscard]] static Result<std::unique_ptr<ControlPlane>> start(
      const ControlPlaneOptions& options);
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  // Paths of kubeconfig files of a cluster admin: directly to the API server, and through
  // the proxy.
  [[nodiscard]] const std::string& kubeconfig() const { return value("KUBECONFIG"); }
  [[nodiscard]] const std::string& proxied_kubeconfig() const {
    return value("HANGAR_CP_PROXY_KUBECONFIG");
  }
  // "https://127.0.0.1:PORT".
  [[nodiscard]] const std::string& url() const { return value("HANGAR_CP_URL"); }
  [[nodiscard]] const std::string& proxied_url() const { return value("HANGAR_CP_PROXY_URL"); }
  // Paths of PEM files: the API server's CA; certificate and key of a cluster admin.
  [[nodiscard]] const std::string& ca_file() const { return value("HANGAR_CP_CA"); }
  [[nodiscard]] const std::string& certificate_file() const { return value("HANGAR_CP_CERT"); }
  [[nodiscard]] const std::string& key_file() const { return value("HANGAR_CP_KEY"); }
  // "127.0.0.1:PORT", and the credentials for it.
  [[nodiscard]] const std::string& registry_address() const { return value("HANGAR_CP_REGISTRY"); }
  [[nodiscard]] const std::string& registry_user() const {
    return value("HANGAR_CP_REGISTRY_USER");
  }
  [[nodiscard]] const std::string& registry_password() const { return registry_password_; }
  // Path of the audit log; one JSON object a line (audit.k8s.io/v1 Event).
  [[nodiscard]] std::string audit_log() const { return value("HANGAR_CP_LOG_DIR") + "/audit.log"; }

  // Runs kubectl as cluster admin and returns its output. Errors: InvalidInput with kubectl's own
  // message if it fails.
  [[nodiscard]] Result<std::string> kubectl(std::vector<std::string> arguments,
                                            std::string input = {});
  // Puts a module into the registry; returns the manifest's digest. `as_stow`: as `yoke stow` does,
  // otherwise as `oras push`.
  enum class PushForm : std::uint8_t { Oras, Stow };
  [[nodiscard]] Result<std::string> push(const std::string& name_and_tag, const std::string& file,
                                         PushForm form);
  // Creates a namespace that no other test of this run uses. It is removed with the control plane.
  [[nodiscard]] Result<std::string> unique_namespace(std::string_view prefix = "test");

  // Kills a component with SIGKILL; its state stays. start_again() returns once it answers.
  [[nodiscard]] Result<> kill(Component component);
  [[nodiscard]] Result<> start_again(Component component);

  // Faults on the way through the proxy. cut() refuses new connections and closes those that are
  // open.
  [[nodiscard]] Result<> cut();
  [[nodiscard]] Result<> restore();
  [[nodiscard]] Result<> delay_answers(std::chrono::milliseconds latency);
  // Resets each connection `after` it was opened.
  [[nodiscard]] Result<> reset_connections(std::chrono::milliseconds after);
  // Any toxic of toxiproxy, as the JSON that its API accepts; for faults not covered above.
  [[nodiscard]] Result<> add_toxic(const std::string& json);
  // Removes all faults.
  [[nodiscard]] Result<> heal();

 private:
  explicit ControlPlane(std::string directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const std::string& value(const std::string& name) const;
  [[nodiscard]] Result<> read_environment();
  [[nodiscard]] Result<> script(std::string_view command, Component component);
  [[nodiscard]] Result<> toxiproxy(std::string_view method, std::string_view path,
                                   const std::string& body);

  std::string directory_;  // Directory of the instance; removed with it.
  std::map<std::string, std::string> values_;
  std::string registry_password_;
};

}  // namespace hangar::testing
