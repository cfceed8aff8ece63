// Records shown to users of the cluster: the server of seeing/ with all that it needs, on a thread
// of its own.
//
// It has its own loop, connections and credentials, as the supervisor has: whoever asks, however
// often, takes neither time nor connections from those that work. What it keeps in the cluster is
// a Secret with its certificate, and where it is to be found, which the host that leads writes.
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
#include "kube/object.h"
#include "operators/operator_controller.h"
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
// Whether they can work together. InvalidInput says what is missing.
[[nodiscard]] Result<> check_seeing(const Config& config);

// As the table of guests has them. Main loop.
[[nodiscard]] std::vector<seeing::PresentGuest> present_guests(
    const operators::OperatorController& operators);

[[nodiscard]] std::vector<seeing::Right> open_watches(const gateway::Gateway& gateway,
                                                      std::string_view user);

class Seeing {
 public:
  struct Parts {
    io::Loop& main;
    kube::Login login;
    Metrics& metrics;  // The process's.
    Log log;
    std::string namespace_;  // Of the host.
    // What guests the host has. Called on the main loop.
    std::function<std::vector<seeing::PresentGuest>()> present;
    // What guests but operators are instances of. Called on the main loop.
    std::function<std::vector<kube::Resource>()> guest_resources;
    // Which watches a user's guests have under way. Called on the main loop.
    std::function<std::vector<seeing::Right>(std::string_view user)> watches;
  };
  // Null where it is off. Does no I/O. Of a resolved configuration.
  [[nodiscard]] static std::unique_ptr<Seeing> make(const Config& config, Parts parts);
  Seeing(const Config& config, Parts parts);
  Seeing(const Seeing&) = delete;
  Seeing& operator=(const Seeing&) = delete;
  // Stop it before. Waits for its thread.
  ~Seeing();

  void start();
  // Has records from here on. Main loop.
  void lead();
  [[nodiscard]] io::Task<void> stop();

 private:
  void on_certificate(const admission::ServerCertificate& certificate);
  void listen();
  // What the main loop says.
  template <class Told>
  [[nodiscard]] io::Task<Result<Told>> ask_main(std::function<Told()> question);
  [[nodiscard]] io::Task<void> follow_clients();
  [[nodiscard]] io::Task<void> publish();
  [[nodiscard]] io::Task<void> end(io::OneShot<bool> ended);

  const Parts parts_;
  const Config::Seeing options_;
  const Log log_;

  io::Loop loop_;
  Metrics metrics_;  // Of its requests; not the process's, where the main loop's are.
  http::Client http_;
  std::shared_ptr<kube::Credentials> credentials_;
  kube::Client client_;
  seeing::Server server_;
  admission::CertificateKeeper certificate_keeper_;
  std::optional<admission::ServerCertificate> certificate_;  // Nothing: none yet.
  std::string client_authorities_pem_;  // Of the cluster's users; empty: none are known.
  seeing::Published published_;
  bool is_leading_ = false;
  std::stop_source stop_;
  io::Event changed_;  // What is to be published.
  std::size_t under_way_ = 0;
  io::Event idle_;
  std::jthread thread_;
};

}  // namespace hangar::host
