// The Flights of the cluster, or its ClusterFlights: each is an instance that says itself how it is
// evaluated.
//
// Guarantees:
//   - A Flight acts as a service account of its namespace, fetches its module as its namespace, and
//     does only what the TenantPolicies of its namespace let it do. A ClusterFlight, which only an
//     administrator can make, acts as whom it names, or as the host where that is allowed.
//   - Taking one down never needs its module, nor a policy that allows it.
//   - No reconcile waits for a module: the Ready condition says what is awaited.
//   - However long the flights of some namespaces take, those of another one begin
//   (reconcile::Controller).
// Loop thread only.
#pragma once

#include "airways/binding.h"
#include "airways/flight.h"
#include "airways/flight_rules.h"
#include "airways/instance.h"
#include "airways/instance_controller.h"
#include "airways/pinned_module.h"
#include "airways/platform.h"
#include "airways/terms.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "tenants/policies.h"

#include <map>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::airways {

class FlightController {
 public:
  struct Options {
    kube::Resource kind;  // flight_resource(), or cluster_flight_resource().
    std::string name;     // Of the controller, in logs and metrics.
    AsHost as_host = AsHost::Refused;
  };
  // The first two outlive it.
  FlightController(const Platform& platform, tenants::Policies& policies, Options options);
  FlightController(const FlightController&) = delete;
  FlightController& operator=(const FlightController&) = delete;
  ~FlightController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const { return controller_.is_synced(); }
  // Modules are verified with other keys from now on.
  void on_verification_keys();

  [[nodiscard]] InstanceController& instances() { return controller_; }

 private:
  using OutcomeTask = InstanceController::OutcomeTask;
  // What the host remembers of one Flight, besides what it remembers of any instance.
  struct Memory {
    std::string uid;  // Of the Flight that the rest is about.
    PinnedModule module;
    std::shared_ptr<const Binding> binding;  // Null: there is no module yet.
    std::string bound_of;                    // Which definition and module that is.
  };

  [[nodiscard]] Memory& memory_of(const json::Value& flight);
  [[nodiscard]] OutcomeTask work_on(kube::ObjectPtr flight, Instance& instance,
                                    std::stop_token stop);
  [[nodiscard]] OutcomeTask evaluate(kube::ObjectPtr flight, Instance& instance,
                                     std::stop_token stop);
  [[nodiscard]] OutcomeTask take_down(kube::ObjectPtr flight, Instance& instance,
                                      std::stop_token stop);
  // What it is evaluated with; null while the module is awaited.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Binding>>> bind(const json::Value& flight,
                                                                      Memory& memory,
                                                                      Instance& instance,
                                                                      std::stop_token stop);
  // Whether it may do at all what it says that it will.
  [[nodiscard]] io::Task<Result<>> check(const json::Value& flight, const Terms& terms,
                                         std::stop_token stop);
  [[nodiscard]] std::string listener_of(const kube::ObjectKey& key) const;
  void add_to_status(const json::Value& flight, const Memory& memory, const Instance& instance,
                     json::Value& status) const;
  void look_again(const std::string& namespace_);
  void forget(const kube::ObjectKey& key);

  const Platform& platform_;
  tenants::Policies& policies_;
  const FlightRules rules_;
  std::map<kube::ObjectKey, std::unique_ptr<Memory>> flights_;
  InstanceController controller_;
};

}  // namespace hangar::airways
