// Reconciles Airways: the CRD of the template exists and belongs to the Airway, its flight is
// compiled, and an InstanceController works on its instances.
//
// Guarantees:
//   - Deleting an Airway deletes its CRD, all instances, and their releases. This never needs the
//     module.
//   - Instances keep the modules that the Airway is pinned to, whatever the source serves later and
//     wherever this host starts: the host's namespace has a copy of each module before the status
//     names its digest, or an Event says why not.
//   - While a changed Airway is invalid or its module cannot be fetched, its instances are
//     evaluated as before, and its Ready condition gives the reason.
//   - No reconcile waits for a module. The Ready condition names the module that is awaited, and is
//     True only while instances are served.
// Loop thread only.
#pragma once

#include "admission/webhooks.h"
#include "airways/airway.h"
#include "airways/airway_instances.h"
#include "airways/binding.h"
#include "airways/flight_modules.h"
#include "airways/flight_status.h"
#include "airways/identity.h"
#include "airways/instance_controller.h"
#include "airways/pinned_module.h"
#include "airways/plan.h"
#include "airways/platform.h"
#include "airways/resource_ref.h"
#include "airways/storage_migration.h"
#include "archive/copies.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "reconcile/controller.h"
#include "reconcile/custom_resource.h"
#include "reconcile/dependents.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::airways {

class AirwayController {
 public:
  explicit AirwayController(const Platform& platform);
  AirwayController(const AirwayController&) = delete;
  AirwayController& operator=(const AirwayController&) = delete;
  ~AirwayController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const { return shell_.is_synced(); }
  // The address of the webhooks has changed: reconciles all Airways.
  void on_webhook_address();
  // The verification keys have changed: requests all modules again.
  void on_verification_keys();

  [[nodiscard]] std::vector<kube::Resource> instance_resources() const;
  // The number of instances of all Airways by namespace; namespaces without any are left out.
  [[nodiscard]] std::map<std::string, std::uint64_t> instance_counts() const;
  // The controller of the instances of this kind; null when no Airway has made it.
  [[nodiscard]] InstanceController* instances_of(const kube::GroupKind& kind) const;

 private:
  // The host's memory of one Airway between reconciles.
  struct Memory {
    kube::Cache::Subscription* crd = nullptr;  // Of the CRD alone; crds_ holds it.
    std::optional<Applied> applied;            // The last apply of the CRD.
    std::string removed_crd_uid;               // The CRD whose deletion was requested.
    std::unique_ptr<AirwayInstances> instances;
    std::unique_ptr<StorageMigration> migration;  // Null until the storage version changes.
    std::optional<Binding> bound;
    std::string uid;  // Of the Airway that the modules belong to.
    PinnedModule flight;
    PinnedModule converter;

    [[nodiscard]] PinnedModule& module(const ModuleRole& role) {
      return role.name == kFlight.name ? flight : converter;
    }
  };
  struct Work;

  [[nodiscard]] io::Task<Result<reconcile::Outcome>> reconcile(kube::ObjectPtr airway,
                                                               std::stop_token stop);
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> finalize(kube::ObjectPtr airway,
                                                              std::stop_token stop);
  [[nodiscard]] io::Task<void> forget(kube::ObjectKey key);
  [[nodiscard]] io::Task<Result<Work>> begin(kube::ObjectPtr airway, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Verdict>> establish(Work& work);
  // The module to use now; std::nullopt while there is none.
  [[nodiscard]] io::Task<Result<std::optional<FlightModule>>> ask_for_module(
      Work& work, const Airway& airway, const ModuleRole& role);
  // Where the API server sends conversions; std::nullopt until this host can answer them.
  [[nodiscard]] io::Task<Result<std::optional<admission::Address>>> ask_for_converter(
      Work& work, const Airway& airway);
  void drop_converter(Work& work);
  void leave_modules(const std::string& airway) const;
  [[nodiscard]] bool is_pinned(const std::string& sha256) const;
  void look_at_copy(std::string sha256);
  void tidy_after(const kube::Delta& delta);
  void on_synced();
  void put_module(const Work& work, const ModuleRole& role, json::Value& status) const;
  [[nodiscard]] io::Task<Result<bool>> apply_crd(Work& work, const Airway& airway,
                                                 std::optional<admission::Address> converter);
  void put_migration(const Work& work, json::Value& status) const;
  [[nodiscard]] static bool left_migration_untold(const Work& work);
  [[nodiscard]] io::Task<void> migrate_instances(Work& work, const kube::Resource& kind);
  [[nodiscard]] io::Task<void> run_instances(Work& work, const kube::Resource& kind);
  [[nodiscard]] static bool is_worth_a_run(const kube::Delta& delta);
  [[nodiscard]] io::Task<Result<reconcile::Outcome>> tear_down(Work& work);
  [[nodiscard]] io::Task<Result<>> write_status(Work& work, const Verdict& verdict);
  [[nodiscard]] io::Task<void> stop_instances(Memory& memory);
  [[nodiscard]] io::Task<void> end(Memory& memory);
  void on_crd(const kube::Delta& delta, const std::vector<kube::ObjectKey>& airways);

  const Platform& platform_;
  const Log log_;
  std::map<kube::ObjectKey, std::unique_ptr<Memory>> airways_;
  std::map<kube::GroupKind, InstanceController*> by_kind_;  // airways_ owns them.
  archive::Copies copies_;
  reconcile::Dependents<kube::ObjectKey> crds_;
  reconcile::CustomResource shell_;
};

}  // namespace hangar::airways
