// Works on the Flights of the cluster, or on its ClusterFlights: each is an instance with its own
// terms.
//
// Guarantees:
//   - A Flight acts as a service account of its namespace, fetches its module for its namespace,
//     and does only what the TenantPolicies of its namespace allow. A ClusterFlight, which only an
//     administrator can create, acts as the account that it names, or as the host where that is
//     allowed.
//   - Removing a release needs neither its module nor a policy that allows it.
//   - A Flight keeps the module that it is pinned to, whatever the source serves later and wherever
//     this host starts: its namespace has a copy before the status names the digest, or an Event
//     says why not. Copies of ClusterFlights are in the host's namespace.
//   - No reconcile waits for a module: the Ready condition names the module that is awaited.
//   - Long flights of some namespaces do not keep the flights of another one from starting
//     (reconcile::Controller).
// Loop thread only.
#pragma once

#include "airways/binding.h"
#include "airways/flight.h"
#include "airways/flight_modules.h"
#include "airways/flight_rules.h"
#include "airways/instance.h"
#include "airways/instance_controller.h"
#include "airways/pinned_module.h"
#include "airways/platform.h"
#include "airways/terms.h"
#include "archive/copies.h"
#include "archive/copy_format.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "modules/pin.h"
#include "modules/requester.h"
#include "tenants/policies.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::airways {

class FlightController {
 public:
  struct Options {
    kube::Resource kind;  // flight_resource(), or cluster_flight_resource().
    std::string name;     // The controller's name in logs and metrics.
    AsHost as_host = AsHost::Refused;
    archive::CopyFormat copies;  // Of pinned modules.
  };
  // The references outlive this object.
  FlightController(const Platform& platform, tenants::Policies& policies, Options options);
  FlightController(const FlightController&) = delete;
  FlightController& operator=(const FlightController&) = delete;
  ~FlightController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const { return controller_.is_synced(); }
  // The verification keys have changed: requests all modules again.
  void on_verification_keys();

  [[nodiscard]] InstanceController& instances() { return controller_; }
  // The number of Flights by namespace; namespaces without any are left out.
  [[nodiscard]] std::map<std::string, std::uint64_t> counts() const;

 private:
  using OutcomeTask = InstanceController::OutcomeTask;
  // The host's memory of one Flight, besides its Instance.
  struct Memory {
    std::string uid;  // Of the Flight that the members below belong to.
    PinnedModule module;
    std::shared_ptr<const Binding> binding;  // Null: there is no module yet.
    std::string bound_of;                    // The definition and the module of `binding`.
  };

  [[nodiscard]] Memory& memory_of(const json::Value& flight);
  [[nodiscard]] OutcomeTask work_on(kube::ObjectPtr flight, Instance& instance,
                                    std::stop_token stop);
  [[nodiscard]] OutcomeTask evaluate(kube::ObjectPtr flight, Instance& instance,
                                     std::stop_token stop);
  [[nodiscard]] OutcomeTask take_down(kube::ObjectPtr flight, Instance& instance,
                                      std::stop_token stop);
  // The binding for its evaluation; null while its module is awaited.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Binding>>> bind(const json::Value& flight,
                                                                      Memory& memory,
                                                                      Instance& instance,
                                                                      std::stop_token stop);
  // Checks the policies, and that the host may act as the Flight's account.
  [[nodiscard]] io::Task<Result<>> check(const json::Value& flight, const Terms& terms,
                                         std::stop_token stop);
  // The module to use now, with its copy in the cluster; std::nullopt while there is none.
  [[nodiscard]] io::Task<Result<std::optional<FlightModule>>> ask_for_module(
      const json::Value& flight, Memory& memory, const Terms& terms, std::string definition,
      modules::Requester requester, std::stop_token stop);
  // Checks whether the former copy is still needed: the Flight has another pin by now, or is gone.
  void look_at_copy(const kube::ObjectKey& flight, const std::optional<modules::Pin>& former);
  [[nodiscard]] bool is_pinned(const archive::ArchivedModule& copy);
  [[nodiscard]] std::string listener_of(const kube::ObjectKey& key) const;
  void add_to_status(const json::Value& flight, const Memory& memory, const Instance& instance,
                     json::Value& status) const;
  void look_again(const std::string& namespace_);
  void forget(const kube::ObjectKey& key);

  const Platform& platform_;
  tenants::Policies& policies_;
  const FlightRules rules_;
  std::map<kube::ObjectKey, std::unique_ptr<Memory>> flights_;
  archive::Copies copies_;
  InstanceController controller_;
};

}  // namespace hangar::airways
