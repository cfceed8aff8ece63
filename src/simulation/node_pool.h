// Nodes for the product's node provisioning (nodes/node_controller.h): their kubelets, and the
// controller of Jobs, as far as provisioning notices them. Jobs end after a while, some in vain,
// and a node is not Ready for some seconds when a Job has changed its container runtime.
#pragma once

#include "base/time.h"
#include "io/virtual_time.h"
#include "json/value.h"
#include "nodes/node_controller.h"
#include "simulation/api_server.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace hangar::simulation {

inline constexpr std::size_t kNodeCount = 5;
[[nodiscard]] std::string node_name(std::uint64_t number);
// With which the hosts provision.
[[nodiscard]] nodes::Options node_options();

class NodePool {
 public:
  using OnViolation = std::function<void(std::string)>;
  NodePool(io::VirtualTime& time, ApiServer& server, OnViolation on_violation);

  void set_up();
  // What users do. `number`: the request is withdrawn, made, made, or refused.
  void wish(const std::string& name, std::uint64_t number);
  // The kubelet's heartbeat: a change that means nothing.
  void touch(const std::string& name);
  void delete_job(const std::string& name, std::uint64_t number);
  // The machine is replaced by one of the same name.
  void replace(const std::string& name);

  // Each second.
  enum class Jobs : std::uint8_t { MayFail, Succeed };
  void look_after(Jobs jobs);
  // At each request that the server has carried out.
  void check_request(const ApiRequest& request, const ApiAnswer& answer);
  void check_end();

 private:
  ApiAnswer ask(std::string_view method, std::string target, json::Value body,
                std::string_view type = "application/json");
  void make(const std::string& name);
  void set_ready(const std::string& name, bool is_ready);
  void end_job(const json::Value& job, Jobs jobs);

  io::VirtualTime& time_;
  ApiServer& server_;
  const OnViolation on_violation_;
  std::map<std::string, Instant> job_ends_;     // By uid.
  std::map<std::string, Instant> ready_again_;  // By the name of the node.
};

}  // namespace hangar::simulation
