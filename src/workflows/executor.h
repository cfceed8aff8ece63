// Carries out one action in the cluster, as the workflow's ServiceAccount.
//
// Every action can be repeated after a crash without a second effect: the objects that it makes
// carry its mark, or a name that no other action uses; an object to delete is identified by its
// uid. An object that an action waits for is watched before it is read, so that no change is
// missed. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "reconcile/recording.h"
#include "workflows/actions.h"
#include "workflows/decision.h"
#include "workflows/ledger.h"
#include "workflows/workflow.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace hangar::workflows {

// One action, and what is known about it.
struct Assignment {
  Owner owner;
  std::string service_account;
  PendingAction action;
  ActionPlan plan;
  bool is_fresh = false;                 // As Decision::Execute has it.
  std::vector<OwnedResource> resources;  // All that the workflow has made.
  std::vector<std::int64_t> others;      // Its other actions that have not finished.
  reconcile::GuestRecording& recording;  // Receives the requests.
};

class Executor {
 public:
  // All parameters outlive this.
  Executor(const kube::Client& client, kube::Discovery& discovery, Watches& watches)
      : client_(client), discovery_(discovery), watches_(watches) {}

  struct Done {
    json::Value event;
    // The version of the created object that is now known to the machine.
    std::string seen = {};
  };
  struct Waits {
    std::string what = {};  // For people: which object, and which state it has not reached yet.
    // No watch reports the change: look again after this time.
    std::optional<Duration> look_again = {};
    std::string problem = {};  // For people: why no watch reports it.
  };
  struct Pinned {
    std::string uid;
  };
  using Ended = std::variant<Done, Waits, Pinned, Decision::Failure>;

  // Cancelled is the only error.
  [[nodiscard]] io::Task<Result<Ended>> execute(Assignment task, std::stop_token stop);

  // The resource of a kind, and the key of one of its objects; `workflow` looks for it. Errors as
  // Discovery::find.
  struct Place {
    kube::Resource resource;
    kube::ObjectKey key;
  };
  [[nodiscard]] io::Task<Result<Place>> find(kube::ObjectKey workflow, kube::GroupVersionKind gvk,
                                             kube::ObjectKey key, std::stop_token stop);

 private:
  // The client under the workflow's identity, and the recording of its requests.
  struct Asking {
    kube::Client client;
    reconcile::GuestRecording& recording;
  };

  [[nodiscard]] io::Task<Result<Ended>> carry_out(Assignment task, std::stop_token stop);
  // The live object under the name of the one to create, if any. An object that is being deleted is
  // waited for, and a Job of an earlier action is deleted first. `task` outlives it.
  struct Clearing {
    std::optional<json::Value> live = {};
    std::optional<Waits> waits = {};
  };
  [[nodiscard]] io::Task<Result<Clearing>> clear(const Assignment* task, Place place,
                                                 std::stop_token stop);
  [[nodiscard]] io::Task<Result<Ended>> apply(Assignment task, Place place, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Ended>> patch(Assignment task, Place place, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Ended>> remove(Assignment task, Place place, std::stop_token stop);
  // Deletes that object, if it still exists, and no later one of the same name.
  [[nodiscard]] io::Task<Result<>> remove_uid(Asking asking, Place place, std::string uid,
                                              std::stop_token stop);
  [[nodiscard]] io::Task<Result<Ended>> remove_made(Assignment task, std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> remove_one(Asking asking, Owner owner, OwnedResource resource,
                                              std::stop_token stop);
  // Returns the reason if the object cannot be watched. `task` outlives it.
  [[nodiscard]] io::Task<Result<std::optional<Error>>> watch(const Assignment* task, Place place,
                                                             std::stop_token stop);
  // Whether the watch for all workflows has the object as one that this workflow made. `task`
  // outlives it.
  [[nodiscard]] io::Task<Result<bool>> has_made(const Assignment* task, Place place,
                                                std::stop_token stop);
  // Denied, or LimitExceeded: the object must not be watched for the workflow. `task` outlives it.
  [[nodiscard]] io::Task<Result<>> may_watch(const Assignment* task, Place place,
                                             std::stop_token stop);
  [[nodiscard]] io::Task<Result<Ended>> wait_for(Assignment task, Place place,
                                                 std::stop_token stop);
  [[nodiscard]] io::Task<Result<Ended>> run_job(Assignment task, Place place, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Ended>> send(Assignment task, Place place, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Ended>> emit(Assignment task, Place place, std::stop_token stop);

  [[nodiscard]] Asking acting_for(const Assignment& task) const;
  // Null when there is none.
  [[nodiscard]] io::Task<Result<std::optional<json::Value>>> look(Asking asking, Place place,
                                                                  std::stop_token stop);

  const kube::Client& client_;
  kube::Discovery& discovery_;
  Watches& watches_;
};

}  // namespace hangar::workflows
