// Keeps annotated nodes provisioned, verified and labelled; uninstalls when the annotation is
// removed; works on no more nodes at once than allowed. rollout.h decides what to do; this class
// watches, reads, and carries out one write at a time for each node.
//
// Guarantees, also while several hosts believe that they lead:
//   - a node's state changes only from the version of the Node that was read;
//   - a slot is taken and given back only by compare-and-swap of the record, and given back only
//     after a read of the Node itself shows no work in progress;
//   - a Job is created only for the Node's current attempt, and its name allows one Job at a time.
// Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/object.h"
#include "nodes/manifests.h"
#include "nodes/node_view.h"
#include "nodes/rollout.h"
#include "reconcile/controller.h"
#include "reconcile/platform.h"

#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::nodes {

struct Options {
  Policy policy;
  JobOptions jobs;
  std::vector<RuntimeClass> runtime_classes;
};

class NodeController {
 public:
  NodeController(const reconcile::Platform& platform, Options options);
  NodeController(const NodeController&) = delete;
  NodeController& operator=(const NodeController&) = delete;
  ~NodeController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  // True once Nodes, Jobs and RuntimeClasses are known; before that nothing is decided.
  [[nodiscard]] bool is_synced() const;

 private:
  using Outcome = reconcile::Outcome;
  using OutcomeTask = io::Task<Result<Outcome>>;

  void on_synced();
  void on_node(const kube::Delta& delta);
  void on_job(const kube::Delta& delta);
  void on_pod(const kube::Delta& delta);

  [[nodiscard]] OutcomeTask reconcile(kube::ObjectKey key, std::stop_token stop);

  // The whole rollout: which nodes have a slot.
  [[nodiscard]] OutcomeTask roll_out(std::stop_token stop);
  [[nodiscard]] io::Task<Result<Record>> read_record(std::stop_token stop);
  void adopt(Record stored);
  [[nodiscard]] io::Task<Result<Record>> settle_slots(Record record, std::stop_token stop);
  void count_phases();

  // One node.
  [[nodiscard]] OutcomeTask work_on(std::string name, std::stop_token stop);
  [[nodiscard]] NodeJobs jobs_of(std::string_view node) const;
  [[nodiscard]] OutcomeTask write(NodeView node, WriteState change, std::stop_token stop);
  [[nodiscard]] OutcomeTask create_job(NodeView node, Action action, std::stop_token stop);
  [[nodiscard]] OutcomeTask delete_job(NodeView node, DeleteJob job, std::stop_token stop);
  [[nodiscard]] OutcomeTask settle_name(NodeView node, Action action, std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::optional<NodeView>>> look_at(std::string name,
                                                                  std::stop_token stop);
  [[nodiscard]] io::Task<Result<std::optional<NodeView>>> still_as(NodeView node,
                                                                   std::stop_token stop);
  [[nodiscard]] OutcomeTask set_condition(NodeView node, SetCondition condition,
                                          std::stop_token stop);
  void tell(const NodeView& before, const NodeState& after);

  [[nodiscard]] OutcomeTask keep_runtime_classes(std::stop_token stop);

  const reconcile::Platform& platform_;
  const Options options_;
  const Log log_;
  Nodes nodes_;
  std::optional<Record> record_;           // As the server last confirmed it. Unset: not read yet.
  std::uint64_t adopted_count_ = 0;        // How often record_ was adopted.
  std::set<std::string> foreign_classes_;  // Reported already.
  std::unique_ptr<kube::Cache::Subscription> node_watch_;
  std::unique_ptr<kube::Cache::Subscription> job_watch_;
  std::unique_ptr<kube::Cache::Subscription> pod_watch_;
  std::unique_ptr<kube::Cache::Subscription> class_watch_;
  bool has_started_ = false;
  reconcile::Controller controller_;
};

}  // namespace hangar::nodes
