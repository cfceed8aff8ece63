// One replica of hangar in a simulation, put together from the product's own parts as host/host.cc
// does it: the election on a loop of its own, the fence, clients, caches, the gateway, Events,
// slots, and features that begin when it leads.
//
// What cannot be simulated is replaced: besides node provisioning, which is the product's, the
// feature is one of the simulation (widgets.h), because the others start guests; and in place of
// processes there are incarnations. An incarnation that loses its Lease stops for ever at that
// moment, as the product exits; the next one begins with nothing.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/gateway.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/virtual_time.h"
#include "io/workers.h"
#include "kube/auth/credentials.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/fence.h"
#include "nodes/node_controller.h"
#include "reconcile/acting_rights.h"
#include "reconcile/event_recorder.h"
#include "reconcile/leader_elector.h"
#include "reconcile/platform.h"
#include "reconcile/turnstile.h"
#include "simulation/widgets.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hangar::simulation {

class SimulatedHost {
 public:
  // Fence::Ignored: writes are sent whether or not the Lease is held, so that a test can show that
  // the simulation finds it.
  enum class Fence : std::uint8_t { Kept, Ignored };
  // `name`: its token, and its identity in the election. `process` outlives it.
  SimulatedHost(io::VirtualTime::Process& process, std::string name, Fence fence, Log log);
  SimulatedHost(const SimulatedHost&) = delete;
  SimulatedHost& operator=(const SimulatedHost&) = delete;
  // Requires has_ended().
  ~SimulatedHost();

  // Called with the time that each turn of one of its loops took. Before start().
  void set_on_turn(std::function<void(Duration took)> on_turn);
  void start();
  // Stops as the product does at SIGTERM.
  void stop();
  // Its parts have stopped, so its process exits.
  [[nodiscard]] bool has_stopped() const { return has_stopped_; }
  // Nothing of it runs any more.
  [[nodiscard]] bool has_ended() const;
  // What it has not finished, for messages.
  [[nodiscard]] std::string unfinished() const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_leading() const { return lease_.elector.is_leading(); }
  // It has lost its Lease, so its process exits.
  [[nodiscard]] bool has_lost() const { return has_lost_; }
  [[nodiscard]] bool is_working() const { return is_working_; }
  [[nodiscard]] gateway::Gateway& gateway() { return *main_.gateway; }
  [[nodiscard]] io::Loop& loop() { return main_.loop; }
  [[nodiscard]] Widgets& widgets() { return main_.widgets; }
  [[nodiscard]] const kube::Cache& cache() const { return main_.cache; }

 private:
  // The supervisor's: see host/supervisor.h.
  struct Lease {
    Lease(SimulatedHost& host, const std::string& name, std::shared_ptr<kube::Fence> fence);
    io::Loop loop;
    Metrics metrics;
    http::Client http{loop};
    std::shared_ptr<kube::Credentials> credentials;
    kube::Client client;
    reconcile::LeaderElector elector;
  };
  struct Main {
    Main(SimulatedHost& host, const std::string& name, std::shared_ptr<kube::Fence> fence);
    io::Loop loop;
    Metrics metrics;
    io::Workers workers;
    io::Workers readers;
    http::Client http;
    std::shared_ptr<kube::Credentials> credentials;
    kube::Client client;
    kube::Client watch_client;
    kube::Discovery discovery;
    kube::Cache cache;
    reconcile::ActingRights acting;
    reconcile::EventRecorder events;
    reconcile::Turnstile turnstile;
    reconcile::Platform platform;
    std::optional<gateway::Gateway> gateway;  // Until the host ends.
    Widgets widgets;
    nodes::NodeController node_controller;
  };
  [[nodiscard]] io::Task<void> end();

  const std::string name_;
  const Log log_;
  std::shared_ptr<kube::Fence> shared_fence_;
  std::unique_ptr<io::VirtualTime::Inside> inside_;  // While the members below are constructed.
  Lease lease_;
  Main main_;
  bool has_lost_ = false;
  bool is_working_ = false;
  bool is_ending_ = false;
  bool is_releasing_ = false;
  bool has_stopped_ = false;
};

}  // namespace hangar::simulation
