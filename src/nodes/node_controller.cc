#include "nodes/node_controller.h"

#include "base/assert.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/core_resources.h"
#include "nodes/announcement.h"
#include "nodes/class_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

namespace hangar::nodes {

namespace {

// Keys of the queue that are not nodes; nodes have no namespace.
kube::ObjectKey rollout_key() {
  return {.namespace_ = "hangar", .name = "rollout"};
}
kube::ObjectKey runtime_classes_key() {
  return {.namespace_ = "hangar", .name = "runtime-classes"};
}

// Even if another client writes the Node as often as hangar does, about every second
// attempt succeeds.
constexpr int kWriteAttemptsMax = 10;

kube::WriteOptions written_by_us(std::string subresource = {}) {
  return {.field_manager = std::string(kFieldManager), .subresource = std::move(subresource)};
}

// A retry of the request does not help: the node's attempt has failed.
bool is_refusal(const Error& error) {
  return error.kind() == ErrorKind::InvalidInput || error.kind() == ErrorKind::Denied ||
         error.kind() == ErrorKind::NotFound;
}

bool is_of_kind(const Result<json::Value>& answer, ErrorKind kind) {
  return !answer && answer.error().kind() == kind;
}

}  // namespace

NodeController::NodeController(const reconcile::Platform& platform, Options options)
    : platform_(platform),
      options_(std::move(options)),
      log_(platform.log.named("nodes")),
      controller_(platform.loop, platform.metrics, log_,
                  {.name = "node", .concurrency = 8, .turnstile = &platform.turnstile},
                  [this](kube::ObjectKey key, std::stop_token stop) {
                    return reconcile(std::move(key), std::move(stop));
                  }) {}

NodeController::~NodeController() = default;

void NodeController::start() {
  HANGAR_ASSERT(!node_watch_ && !has_started_, "a controller is started once");
  const std::string& namespace_ = options_.jobs.namespace_;
  const std::string ours = fmt::format("{}=true", kJobLabel);
  const auto synced = [this] { on_synced(); };
  node_watch_ = platform_.cache.subscribe(
      {.resource = node_resource()},
      {.on_delta = [this](const kube::Delta& delta) { on_node(delta); }, .on_synced = synced});
  job_watch_ = platform_.cache.subscribe(
      {.resource = job_resource(), .namespace_ = namespace_, .label_selector = ours},
      {.on_delta = [this](const kube::Delta& delta) { on_job(delta); }, .on_synced = synced});
  pod_watch_ = platform_.cache.subscribe(
      {.resource = kube::pod_resource(), .namespace_ = namespace_, .label_selector = ours},
      {.on_delta = [this](const kube::Delta& delta) { on_pod(delta); }, .on_synced = synced});
  class_watch_ = platform_.cache.subscribe(
      {.resource = runtime_class_resource()},
      {.on_delta = [this](const kube::Delta&) { controller_.enqueue(runtime_classes_key()); },
       .on_synced = synced});
}

io::Task<void> NodeController::stop() {
  co_await controller_.stop();
  node_watch_.reset();
  job_watch_.reset();
  pod_watch_.reset();
  class_watch_.reset();
}

bool NodeController::is_synced() const {
  const auto is = [](const auto& watch) { return watch && watch->is_synced(); };
  return is(node_watch_) && is(job_watch_) && is(pod_watch_) && is(class_watch_);
}

void NodeController::on_synced() {
  if (!is_synced() || std::exchange(has_started_, true)) return;
  controller_.enqueue(runtime_classes_key());
  controller_.enqueue(rollout_key());
  controller_.start();
}

void NodeController::on_node(const kube::Delta& delta) {
  const std::string& name = delta.object->key().name;
  if (delta.type == kube::Delta::Type::Deleted) {
    nodes_.erase(name);
  } else {
    NodeView view = node_view(delta.object->to_value());
    NodeView& known = nodes_[name];
    const bool is_news = !is_same_to_us(known, view);
    known = std::move(view);
    // No news is usually a kubelet's heartbeat.
    if (!is_news) return;
  }
  controller_.enqueue({.name = name});
  controller_.enqueue(rollout_key());
}

void NodeController::on_job(const kube::Delta& delta) {
  const JobView job = job_view(delta.object->to_value());
  if (!job.node.empty()) controller_.enqueue({.name = job.node});
}

void NodeController::on_pod(const kube::Delta& delta) {
  const json::Value pod = delta.object->to_value();
  if (pod_problem(pod).empty()) return;
  controller_.enqueue({.name = std::string(json::string_at(pod, {"spec", "nodeName"}))});
}

NodeController::OutcomeTask NodeController::reconcile(kube::ObjectKey key, std::stop_token stop) {
  if (key == rollout_key()) return roll_out(std::move(stop));
  if (key == runtime_classes_key()) return keep_runtime_classes(std::move(stop));
  return work_on(std::move(key.name), std::move(stop));
}

// The whole ----------------------------------------------------------------------------------

NodeController::OutcomeTask NodeController::roll_out(std::stop_token stop) {
  if (!record_) {
    Record read = HANGAR_CO_TRY(co_await read_record(stop));
    record_ = std::move(read);
    // Nodes in progress continue.
    for (const auto& [name, node] : nodes_)
      controller_.enqueue({.name = name});
  }
  count_phases();
  Record next = HANGAR_CO_TRY(co_await settle_slots(*record_, stop));
  const std::vector<std::string> taken = take_slots(nodes_, next.slots, options_.policy);
  next.slots.insert(taken.begin(), taken.end());
  next.progress = progress_of(nodes_, next.slots, options_.policy);
  next.version = options_.policy.version;
  next.auto_provision = options_.policy.auto_provision;
  if (next == *record_ && !next.resource_version.empty()) co_return Outcome{};

  json::Value manifest = record_manifest(next, options_.jobs.namespace_);
  const bool is_new = next.resource_version.empty();
  const Result<json::Value> answer =
      is_new ? co_await platform_.client.create(kube::config_map_resource(), std::move(manifest),
                                                written_by_us(), stop)
             : co_await platform_.client.update(kube::config_map_resource(), std::move(manifest),
                                                written_by_us(), stop);
  if (!answer) {
    // Whatever the result of the write was, only the stored record counts.
    record_.reset();
    co_return std::unexpected(Error(answer.error()).in("record the rollout"));
  }
  if (next.progress != record_->progress && next.progress.standing == Standing::Halted) {
    log_.warning("the rollout stops", {{"reason", next.progress.message}});
  }
  adopt(parse_record(*answer));
  if (!record_->leaving.empty()) controller_.enqueue(rollout_key());
  co_return Outcome{};
}

// Enqueues the node of every new slot, whatever the reason for reading the record was: no other
// event would reconcile that node.
void NodeController::adopt(Record stored) {
  ++adopted_count_;
  const std::optional<Record> before = std::exchange(record_, std::move(stored));
  for (const std::string& name : new_slots(before ? *before : Record{}, *record_))
    controller_.enqueue({.name = name});
}

io::Task<Result<Record>> NodeController::read_record(std::stop_token stop) {
  const Result<json::Value> read = co_await platform_.client.get(
      kube::config_map_resource(),
      {.namespace_ = options_.jobs.namespace_, .name = std::string(kRecordName)}, std::move(stop));
  if (is_of_kind(read, ErrorKind::NotFound)) co_return Record{};
  if (!read) co_return std::unexpected(Error(read.error()).in("read the rollout's record"));
  co_return parse_record(*read);
}

// A cache may be older than the record, so it alone neither takes a slot away nor gives one back:
// the node is read first. No work starts meanwhile on nodes that the stored record lists
// as leaving.
io::Task<Result<Record>> NodeController::settle_slots(Record record, std::stop_token stop) {
  for (const std::string& name : std::exchange(record.leaving, {})) {
    const std::optional<NodeView> node = HANGAR_CO_TRY(co_await look_at(name, stop));
    if (!node || may_give_up(*node, options_.policy)) record.slots.erase(name);
  }
  for (const std::string& name : lost_slots(nodes_, record.slots)) {
    const std::optional<NodeView> node = HANGAR_CO_TRY(co_await look_at(name, stop));
    if (node && is_in_flight(node->state.phase)) record.slots.insert(name);
  }
  for (const std::string& name : give_slots_up(nodes_, record.slots, options_.policy))
    record.leaving.insert(name);
  co_return record;
}

void NodeController::count_phases() {
  std::array<double, kPhases.size()> counts{};
  for (const auto& [name, node] : nodes_)
    ++counts.at(static_cast<std::size_t>(node.state.phase));
  for (const Phase phase : kPhases) {
    platform_.metrics
        .gauge("hangar_nodes", "Nodes by the phase of their provisioning.",
               {{"phase", std::string(name_of(phase))}})
        .set(counts.at(static_cast<std::size_t>(phase)));
  }
}

// One node -----------------------------------------------------------------------------------

NodeController::OutcomeTask NodeController::work_on(std::string name, std::stop_token stop) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) co_return Outcome{};
  const NodeView node = found->second;
  const WallTime now = io::Loop::wall_now();
  const bool has_slot = record_ && record_->has_slot(name);
  Step step = next_step(node, jobs_of(name), has_slot, options_.policy, now);

  if (const auto* rest = std::get_if<Rest>(&step)) {
    if (!rest->until) co_return Outcome{};
    co_return Outcome{.requeue_after = std::max<Duration>(*rest->until - now, Duration(1))};
  }
  if (auto* change = std::get_if<WriteState>(&step)) {
    co_return co_await write(node, std::move(*change), std::move(stop));
  }
  if (const auto* job = std::get_if<CreateJob>(&step)) {
    co_return co_await create_job(node, job->action, std::move(stop));
  }
  if (auto* job = std::get_if<DeleteJob>(&step)) {
    co_return co_await delete_job(node, std::move(*job), std::move(stop));
  }
  co_return co_await set_condition(node, std::get<SetCondition>(std::move(step)), std::move(stop));
}

NodeJobs NodeController::jobs_of(std::string_view node) const {
  HANGAR_ASSERT(job_watch_ && pod_watch_, "a node is worked on while its Jobs are watched");
  const auto look = [&](Action action) -> std::optional<JobView> {
    const kube::ObjectPtr object =
        job_watch_->get({.namespace_ = options_.jobs.namespace_, .name = job_name(node, action)});
    if (!object) return std::nullopt;
    JobView job = job_view(object->to_value());
    if (job.state == JobState::Succeeded) return job;
    // A pod's own message says more than the Job's.
    for (const kube::ObjectPtr& pod : pod_watch_->owned_by(job.uid)) {
      const json::Value value = pod->to_value();
      std::string problem = pod_problem(value);
      if (problem.empty()) continue;
      job.problem = std::move(problem);
      job.is_stuck = is_pod_stuck(value);
    }
    return job;
  };
  return {.install = look(Action::Install),
          .uninstall = look(Action::Uninstall),
          .probe = look(Action::Probe)};
}

NodeController::OutcomeTask NodeController::write(NodeView node, WriteState change,
                                                  std::stop_token stop) {
  for (int attempt = 1;; ++attempt) {
    if (change.is_beginning) {
      const std::uint64_t adopted_before = adopted_count_;
      Record now = HANGAR_CO_TRY(co_await read_record(stop));
      const bool has_slot = now.has_slot(node.name);
      // A record that was adopted meanwhile may be newer.
      if (adopted_count_ == adopted_before) adopt(std::move(now));
      if (!has_slot) {
        controller_.enqueue(rollout_key());
        co_return Outcome{};
      }
    }
    const Result<json::Value> answer = co_await platform_.client.patch(
        node_resource(), {.name = node.name}, kube::PatchType::Merge, node_patch(node, change),
        written_by_us(), stop);
    if (answer) break;
    if (answer.error().kind() == ErrorKind::NotFound) co_return Outcome{};
    if (answer.error().kind() != ErrorKind::Conflict || attempt == kWriteAttemptsMax) {
      co_return std::unexpected(answer.error());
    }
    // Other clients write Nodes all the time. Their writes count only if they change what
    // matters here.
    std::optional<NodeView> live = HANGAR_CO_TRY(co_await look_at(node.name, stop));
    if (!live || !is_same_to_us(*live, node)) co_return Outcome{};
    node = *std::move(live);
  }
  tell(node, change.state);
  co_return Outcome{};
}

io::Task<Result<std::optional<NodeView>>> NodeController::look_at(std::string name,
                                                                  std::stop_token stop) {
  const Result<json::Value> read =
      co_await platform_.client.get(node_resource(), {.name = name}, std::move(stop));
  if (is_of_kind(read, ErrorKind::NotFound)) co_return std::optional<NodeView>();
  if (!read) co_return std::unexpected(Error(read.error()).in("read the node"));
  co_return std::optional(node_view(*read));
}

// std::nullopt when the node has changed: the watch will deliver the change.
io::Task<Result<std::optional<NodeView>>> NodeController::still_as(NodeView node,
                                                                   std::stop_token stop) {
  std::optional<NodeView> live = HANGAR_CO_TRY(co_await look_at(node.name, std::move(stop)));
  if (live && !is_in_same_state(*live, node)) live.reset();
  co_return live;
}

NodeController::OutcomeTask NodeController::create_job(NodeView node, Action action,
                                                       std::stop_token stop) {
  const std::optional<NodeView> live = HANGAR_CO_TRY(co_await still_as(node, stop));
  if (!live) co_return Outcome{};
  const Result<json::Value> answer = co_await platform_.client.create(
      job_resource(), job_manifest(node, action, options_.jobs), written_by_us(), stop);
  if (answer) {
    log_.info("job created", {{"node", node.name}, {"action", name_of(action)}});
    co_return Outcome{};
  }
  const Error& error = answer.error();
  if (kube::reason_of(error) == "AlreadyExists") {
    co_return co_await settle_name(std::move(node), action, std::move(stop));
  }
  if (!is_refusal(error)) co_return std::unexpected(error);
  co_return co_await write(*live, failed(*live, error.message(), io::Loop::wall_now()),
                           std::move(stop));
}

NodeController::OutcomeTask NodeController::delete_job(NodeView node, DeleteJob job,
                                                       std::stop_token stop) {
  if (!HANGAR_CO_TRY(co_await still_as(std::move(node), stop))) co_return Outcome{};
  const Result<json::Value> answer = co_await platform_.client.remove(
      job_resource(), {.namespace_ = options_.jobs.namespace_, .name = std::move(job.name)},
      {.propagation = kube::Propagation::Background, .uid = std::move(job.uid)}, std::move(stop));
  if (!answer && answer.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(answer.error());
  }
  co_return Outcome{};
}

NodeController::OutcomeTask NodeController::set_condition(NodeView node, SetCondition condition,
                                                          std::stop_token stop) {
  const Result<json::Value> answer = co_await platform_.client.patch(
      node_resource(), {.name = std::move(node.name)}, kube::PatchType::Strategic,
      condition_patch(condition, io::Loop::wall_now()), written_by_us("status"), std::move(stop));
  if (!answer && answer.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(answer.error());
  }
  co_return Outcome{};
}

// A Job of that name exists, although our watch had not shown it.
NodeController::OutcomeTask NodeController::settle_name(NodeView node, Action action,
                                                        std::stop_token stop) {
  const Result<json::Value> job = co_await platform_.client.get(
      job_resource(), {.namespace_ = options_.jobs.namespace_, .name = job_name(node.name, action)},
      stop);
  if (is_of_kind(job, ErrorKind::NotFound)) co_return Outcome{.requeue_after = Duration::zero()};
  if (!job) co_return std::unexpected(job.error());
  // The watch will deliver the Job: its selector includes it.
  if (kube::label_of(*job, kJobLabel) == "true") co_return Outcome{};
  const std::string problem = fmt::format("a Job {} that is not ours exists already: delete it",
                                          job_name(node.name, action));
  const WriteState change = failed(node, problem, io::Loop::wall_now());
  co_return co_await write(std::move(node), change, std::move(stop));
}

void NodeController::tell(const NodeView& before, const NodeState& after) {
  log_.info("node", {{"node", before.name},
                     {"phase", name_of(after.phase)},
                     {"attempt", after.attempt},
                     {"error", after.phase == Phase::Failed ? after.last_error : ""}});
  std::optional<Announcement> news = announcement_of(before.state, after, options_.policy);
  if (!news) return;
  platform_.metrics
      .counter("hangar_node_actions_total", "Attempts to install and uninstall, by how they ended.",
               {{"action", std::string(name_of(news->action))},
                {"result", std::string(name_of(news->end))}})
      .add();
  const kube::ObjectPtr object = node_watch_ ? node_watch_->get({.name = before.name}) : nullptr;
  if (object) platform_.events.record(object->to_value(), std::move(news->text));
}

// Runtime classes ----------------------------------------------------------------------------

NodeController::OutcomeTask NodeController::keep_runtime_classes(std::stop_token stop) {
  std::vector<json::Value> present;
  for (const kube::ObjectPtr& object : class_watch_->list())
    present.push_back(object->to_value());
  ClassPlan plan = plan_classes(
      wanted_classes(options_.runtime_classes, options_.policy, options_.jobs.probe_runtime_class),
      present);
  for (const std::string& name : plan.foreign) {
    if (!foreign_classes_.insert(name).second) continue;
    log_.warning("a RuntimeClass of that name is not ours and stays as it is", {{"name", name}});
  }
  for (const ClassPlan::Removal& one : plan.remove) {
    const Result<json::Value> removed = co_await platform_.client.remove(
        runtime_class_resource(), {.name = one.name}, {.uid = one.uid}, stop);
    if (!removed && removed.error().kind() != ErrorKind::NotFound) {
      co_return std::unexpected(removed.error());
    }
  }
  for (auto& [name, manifest] : plan.create) {
    const Result<json::Value> made = co_await platform_.client.create(
        runtime_class_resource(), std::move(manifest), written_by_us(), stop);
    if (!made && kube::reason_of(made.error()) != "AlreadyExists") {
      co_return std::unexpected(Error(made.error()).in(fmt::format("runtime class {}", name)));
    }
  }
  co_return Outcome{};
}

}  // namespace hangar::nodes
