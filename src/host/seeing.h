// Shows records to users of the cluster: the server of seeing/ and the parts that it needs, on
// their own thread.
//
// Like the supervisor it has its own loop, connections and credentials, so its clients take neither
// time nor connections from the main loop. It stores two objects in the cluster: a Secret with its
// certificate, and a ConfigMap with its address, which only the leader writes.
#pragma once

#include "admission/certificate_keeper.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "gateway/gateway.h"
#include "host/config.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"
#include "kube/fence.h"
#include "kube/object.h"
#include "operators/operator_controller.h"
#include "seeing/cost.h"
#include "seeing/published.h"
#include "seeing/server.h"
#include "seeing/top.h"
#include "seeing/uses.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hangar::host {

// Rows of settings().
[[nodiscard]] std::vector<Setting> seeing_settings();
// Checks that the settings fit together. InvalidInput says which one is missing.
[[nodiscard]] Result<> check_seeing(const Config& config);

// The running operators, as rows of the table of guests. Main loop.
[[nodiscard]] std::vector<seeing::PresentGuest> present_guests(
    const operators::OperatorController& operators);

// The open watches of a user's guests. Main loop.
[[nodiscard]] std::vector<seeing::Right> open_watches(const gateway::Gateway& gateway,
                                                      std::string_view user);

class Seeing {
 public:
  struct Parts {
    io::Loop& main;
    kube::Login login;
    Metrics& metrics;  // Metrics of the process.
    Log log;
    std::string namespace_;  // The host's namespace.
    // The guests of the host. Called on the main loop.
    std::function<std::vector<seeing::PresentGuest>()> present;
    // The resources of guests other than operators. Called on the main loop.
    std::function<std::vector<kube::Resource>()> guest_resources;
    // The costs of namespaces. Called on the main loop.
    std::function<seeing::FoundCost()> cost;
    // The open watches of a user's guests. Called on the main loop.
    std::function<std::vector<seeing::Right>(std::string_view user)> watches;
    // Open while this process leads; null without a Lease.
    std::shared_ptr<const kube::Fence> fence = {};
  };
  // Null when it is off. Does no I/O. `config` is resolved.
  [[nodiscard]] static std::unique_ptr<Seeing> make(const Config& config, Parts parts);
  Seeing(const Config& config, Parts parts);
  Seeing(const Seeing&) = delete;
  Seeing& operator=(const Seeing&) = delete;
  // Requires that stop() has finished. Waits for its thread.
  ~Seeing();

  void start();
  // From now on the host leads: its records are current. Main loop.
  void lead();
  [[nodiscard]] io::Task<void> stop();

 private:
  void on_certificate(const admission::ServerCertificate& certificate);
  void listen();
  // Calls `question` on the main loop and returns its answer.
  template <class Told>
  [[nodiscard]] io::Task<Result<Told>> ask_main(std::function<Told()> question);
  [[nodiscard]] io::Task<void> follow_clients();
  [[nodiscard]] io::Task<void> publish();
  [[nodiscard]] io::Task<void> end(io::OneShot<bool> ended);

  const Parts parts_;
  const Config::Seeing options_;
  const Log log_;

  io::Loop loop_;
  Metrics metrics_;  // For its client; the process's metrics belong to the main loop.
  http::Client http_;
  std::shared_ptr<kube::Credentials> credentials_;
  kube::Client client_;         // Also writes the Secret, which all replicas share.
  kube::Client leader_client_;  // Writes only while this process leads.
  seeing::Server server_;
  admission::CertificateKeeper certificate_keeper_;
  std::optional<admission::ServerCertificate> certificate_;  // Unset: not created yet.
  std::string client_authorities_pem_;  // They sign users' certificates; empty: unknown.
  seeing::Published published_;
  bool is_leading_ = false;
  std::stop_source stop_;
  io::Event changed_;  // Notifies publish() of changed input.
  std::size_t under_way_ = 0;
  io::Event idle_;
  std::jthread thread_;
};

}  // namespace hangar::host
