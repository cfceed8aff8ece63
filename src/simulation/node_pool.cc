#include "simulation/node_pool.h"

#include "base/time.h"
#include "io/virtual_time.h"
#include "json/value.h"
#include "kube/object.h"
#include "nodes/names.h"
#include "nodes/node_controller.h"
#include "nodes/node_view.h"
#include "simulation/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::simulation {

namespace {

using std::chrono::seconds;

constexpr std::string_view kNamespace = "kube-system";
constexpr std::string_view kJobs = "/apis/batch/v1/namespaces/kube-system/jobs";
constexpr std::size_t kDownMax = 2;
// More in a row would take longer than what a scenario has for its recovery.
constexpr std::int64_t kFailuresMax = 3;

std::string path_of(const std::string& node) {
  return "/api/v1/nodes/" + node;
}

json::Value with_condition(std::string_view type, std::string_view status, WallTime now) {
  return json::Object{
      {"status", json::Object{{"conditions", json::Array{json::Object{
                                                 {"type", json::String(type)},
                                                 {"status", json::String(status)},
                                                 {"lastTransitionTime", to_rfc3339(now)}}}}}}};
}

}  // namespace

std::string node_name(std::uint64_t number) {
  return fmt::format("n{}", number % kNodeCount);
}

nodes::Options node_options() {
  return {.policy = {.version = "installer:1",
                     .max_unavailable = {.value = kDownMax},
                     .has_probe = true,
                     .retry_min = seconds(10)},
          .jobs = {.namespace_ = std::string(kNamespace),
                   .image = "installer:1",
                   .uninstall_command = {"uninstall"},
                   .probe_image = "probe:1",
                   .probe_runtime_class = "wasmtime-probe"},
          .runtime_classes = {{.name = "wasmtime", .handler = "wasmtime"}}};
}

NodePool::NodePool(io::VirtualTime& time, ApiServer& server, OnViolation on_violation)
    : time_(time), server_(server), on_violation_(std::move(on_violation)) {}

ApiAnswer NodePool::ask(std::string_view method, std::string target, json::Value body,
                        std::string_view type) {
  return server_.handle({.method = std::string(method),
                         .target = std::move(target),
                         .content_type = std::string(type),
                         .body = body.is_null() ? "" : json::dump(body)},
                        time_.wall_now());
}

void NodePool::set_up() {
  for (std::size_t number = 0; number < kNodeCount; ++number)
    make(node_name(number));
}

void NodePool::make(const std::string& name) {
  (void)ask("POST", "/api/v1/nodes",
            json::Object{{"metadata",
                          json::Object{{"name", name},
                                       {"labels", json::Object{{"kubernetes.io/os", "linux"}}}}}});
  set_ready(name, true);
}

void NodePool::set_ready(const std::string& name, bool is_ready) {
  (void)ask("PATCH", path_of(name) + "/status",
            with_condition("Ready", is_ready ? "True" : "False", time_.wall_now()),
            "application/strategic-merge-patch+json");
}

void NodePool::wish(const std::string& name, std::uint64_t number) {
  json::Value wish = number % 4 == 3 ? json::Value("false") : json::Value("true");
  if (number % 4 == 0) wish = nullptr;
  (void)ask(
      "PATCH", path_of(name),
      json::Object{{"metadata", json::Object{{"annotations", json::Object{{nodes::kWishAnnotation,
                                                                           std::move(wish)}}}}}},
      "application/merge-patch+json");
}

void NodePool::touch(const std::string& name) {
  (void)ask("PATCH", path_of(name) + "/status",
            json::Object{{"status", json::Object{{"beat", std::to_string(server_.revision())}}}},
            "application/merge-patch+json");
}

void NodePool::delete_job(const std::string& name, std::uint64_t number) {
  const auto action = static_cast<nodes::Action>(number % 3);
  (void)ask("DELETE", fmt::format("{}/{}", kJobs, nodes::job_name(name, action)), json::Value());
}

void NodePool::replace(const std::string& name) {
  (void)ask("DELETE", path_of(name), json::Value());
  ready_again_.erase(name);
  make(name);
}

void NodePool::look_after(Jobs jobs) {
  const Instant now = time_.world();
  std::vector<json::Value> due;
  std::set<std::string> present;
  for (const json::Value* const job : server_.all("jobs.batch")) {
    const std::string uid(json::string_at(*job, {"metadata", "uid"}));
    present.insert(uid);
    const auto [ends, is_new] = job_ends_.try_emplace(uid, now);
    if (is_new) ends->second = now + seconds(1) + time_.draw_up_to(seconds(20));
    if (nodes::job_view(*job).state == nodes::JobState::Running && ends->second <= now) {
      due.push_back(*job);
    }
  }
  std::erase_if(job_ends_, [&](const auto& one) { return !present.contains(one.first); });
  for (const json::Value& job : due)
    end_job(job, jobs);
  std::vector<std::string> ready;
  for (const auto& [name, when] : ready_again_) {
    if (when <= now) ready.push_back(name);
  }
  for (const std::string& name : ready) {
    ready_again_.erase(name);
    set_ready(name, true);
  }
}

void NodePool::end_job(const json::Value& job, Jobs jobs) {
  const nodes::JobView view = nodes::job_view(job);
  const json::Value* const node = server_.find("nodes", "", view.node);
  const std::int64_t failures = node == nullptr ? 0 : nodes::node_view(*node).state.failures;
  const bool fails = jobs == Jobs::MayFail && failures < kFailuresMax && time_.draw_one_in(4);
  (void)ask("PATCH", fmt::format("{}/{}/status", kJobs, view.name),
            with_condition(fails ? "Failed" : "Complete", "True", time_.wall_now()),
            "application/strategic-merge-patch+json");
  if (node == nullptr || view.action == nodes::Action::Probe || !time_.draw_one_in(2)) return;
  set_ready(view.node, false);
  ready_again_[view.node] = time_.world() + time_.draw_up_to(seconds(30));
}

void NodePool::check_request(const ApiRequest& request, const ApiAnswer& answer) {
  if (answer.status >= 300 || request.method == "GET") return;
  if (request.method == "PATCH" && request.target.starts_with("/api/v1/nodes/")) {
    std::size_t count = 0;
    for (const json::Value* const node : server_.all("nodes")) {
      if (nodes::is_in_flight(nodes::node_view(*node).state.phase)) ++count;
    }
    if (count > kDownMax) on_violation_(fmt::format("nodes: {} are worked on at once", count));
  }
  if (request.method != "POST" || !request.target.starts_with(kJobs)) return;
  const nodes::JobView job = nodes::job_view(answer.body);
  const json::Value* const object = server_.find("nodes", "", job.node);
  // The collector of garbage deletes the Job of a node that is gone.
  if (object == nullptr) return;
  const nodes::NodeView node = nodes::node_view(*object);
  if (node.uid != job.node_uid) return;
  if (!nodes::is_in_flight(node.state.phase) || node.state.attempt != job.attempt) {
    on_violation_(fmt::format("nodes: {} of attempt {} was created in phase {} of attempt {}",
                              job.name, job.attempt, nodes::name_of(node.state.phase),
                              node.state.attempt));
  }
}

void NodePool::check_end() {
  for (const json::Value* const object : server_.all("nodes")) {
    const nodes::NodeView node = nodes::node_view(*object);
    const bool is_wanted = node.wish == nodes::Wish::Yes;
    const bool is_as_wished =
        is_wanted ? node.state.phase == nodes::Phase::Provisioned && node.has_published_label &&
                        node.has_provisioned_label && node.condition_reason == "Provisioned"
                  : node.state == nodes::NodeState{} && !node.has_published_label &&
                        !node.has_provisioned_label && node.condition_reason.empty();
    if (!is_as_wished) {
      on_violation_(fmt::format("lost: node {} is {}, and {}", node.name,
                                is_wanted ? "wanted" : "not wanted",
                                nodes::name_of(node.state.phase)));
    }
  }
  for (const json::Value* const job : server_.all("jobs.batch")) {
    const nodes::JobView view = nodes::job_view(*job);
    if (view.state == nodes::JobState::Running) {
      on_violation_(fmt::format("doubled: {} runs, and nobody waits for it", view.name));
    }
  }
  const json::Value* const record = server_.find("configmaps", kNamespace, nodes::kRecordName);
  const std::string_view active =
      record == nullptr ? "" : json::string_at(*record, {"data", "active"});
  if (!active.empty()) on_violation_(fmt::format("lost: {} keep their slots", active));
}

}  // namespace hangar::simulation
