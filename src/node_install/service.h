// The service that runs containerd: restarts it on the node, and waits until it answers again.
#pragma once

#include "base/result.h"
#include "node_install/distribution.h"
#include "node_install/files.h"

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::node_install {

// An interface so that tests can have a containerd that never comes back.
class Service {
 public:
  virtual ~Service() = default;
  // Whether restart() can work here; called before any change. InvalidInput if not.
  [[nodiscard]] virtual Result<> check(const Node& node) = 0;
  // Returns when containerd answers again. Unavailable.
  [[nodiscard]] virtual Result<> restart(const Node& node) = 0;
};

struct ServiceOptions {
  std::string root;             // As given to NodeFiles::open().
  std::string restart_command;  // Run by `sh -c` outside of the root, instead of a service manager.
  std::chrono::seconds at_most{};
};

// Restarts by systemd or OpenRC, in the namespaces of process 1, which has to live in the same
// root: the container needs the node's process namespace (hostPID). With the root / it simply runs
// the command.
class NodeService final : public Service {
 public:
  NodeService(const NodeFiles& files, ServiceOptions options)
      : files_(files), options_(std::move(options)) {}

  [[nodiscard]] Result<> check(const Node& node) override;
  [[nodiscard]] Result<> restart(const Node& node) override;

  using Command = std::vector<std::string>;
  // The command that restart() runs.
  [[nodiscard]] Result<Command> command_for(const Node& node) const;
  // Checks at least once.
  [[nodiscard]] Result<> wait_until_back(const Node& node,
                                         std::chrono::steady_clock::time_point deadline) const;

 private:
  [[nodiscard]] std::string find_unit(const Node& node) const;
  [[nodiscard]] bool is_process_1_root() const;

  const NodeFiles& files_;
  ServiceOptions options_;
};

// Runs the command until it exits, or kills it at the deadline. Unavailable, with the end of its
// output, unless its status is 0. `before_exec` runs in the child.
[[nodiscard]] Result<> run_command(const std::vector<std::string>& command,
                                   std::chrono::steady_clock::time_point deadline,
                                   const std::function<bool()>& before_exec);

}  // namespace hangar::node_install
