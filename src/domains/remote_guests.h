// Long-lived guests that live in guest processes. A sleeping guest is in the host's snapshot store,
// and needs no process.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/result.h"
#include "domains/guest_processes.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/snapshot_store.h"

#include <memory>

namespace hangar::domains {

// Loop thread. When a process exits, the guests that are awake in it are lost; sleeping guests are
// not affected.
class RemoteGuests final : public abi::kube_runtime::Guests {
 public:
  // Both outlive the guests.
  RemoteGuests(GuestProcesses& processes, wasm::SnapshotStore& snapshots)
      : processes_(processes), snapshots_(snapshots) {}

  [[nodiscard]] std::unique_ptr<abi::kube_runtime::Guest> make(
      std::shared_ptr<const wasm::SleepableModule> module, abi::kube_runtime::GuestOptions options,
      Events events) override;
  [[nodiscard]] Result<std::unique_ptr<abi::kube_runtime::Guest>> take_over(
      std::shared_ptr<const wasm::SleepableModule> module, abi::kube_runtime::GuestOptions options,
      Events events, budget::Tenant tenant, abi::kube_runtime::CarriedGuest carried) override;
  void discard(abi::kube_runtime::CarriedGuest carried) override;
  // False, because a guest that is awake keeps a process that other domains may be waiting for.
  [[nodiscard]] bool loads_ahead() const override { return false; }
  [[nodiscard]] bool has_places_alone() const override { return true; }

 private:
  class RemoteGuest;

  GuestProcesses& processes_;
  wasm::SnapshotStore& snapshots_;
};

}  // namespace hangar::domains
