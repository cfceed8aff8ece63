// Install, uninstall and status: the order in which a node is changed, and how it is rolled back.
//
//   lock file (restart pending) -> programs -> configuration -> restart -> lock file (done)
//
// The lock file comes first and is on disk before anything else changes. So a run that is killed at
// any point leaves a node that the next run either finishes, with the restart that is still due, or
// rolls back.
#pragma once

#include "base/result.h"
#include "node_install/distribution.h"
#include "node_install/files.h"
#include "node_install/lock_file.h"
#include "node_install/report.h"
#include "node_install/runtimes.h"
#include "node_install/service.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::node_install {

enum class Restart : bool { Never, WhenNeeded };
enum class Existing : bool { Refuse, Keep };
enum class Run : bool { Dry, Real };

struct InstallerOptions {
  std::optional<Distribution> distribution;  // Overrides the detected one.
  std::string install_directory;             // Overrides the distribution's; absolute.
  Restart restart = Restart::WhenNeeded;
  // What to do about handlers of the same name that others have configured: fail, or keep those.
  // Handlers of KWasm's installer are left alone in any case.
  Existing existing = Existing::Refuse;
  Run run = Run::Real;
};

struct Status {
  enum class State : std::uint8_t { NotInstalled, Installed, Incomplete };
  State state = State::NotInstalled;
  std::string version;
  std::string distribution;
  std::string config;
  std::vector<std::string> handlers;
  std::string problem;  // For Incomplete: the first difference found.
};

class Installer {
 public:
  Installer(Files& files, Service& service, Report& report, InstallerOptions options)
      : files_(files), service_(service), report_(report), options_(std::move(options)) {}

  // Installed runtimes that are no longer in `runtimes` are removed. `find` receives the
  // install directory.
  //
  // Errors: every reason of outcome.h. Except for RestoreFailed and RestartFailed, containerd's
  // configuration is unchanged; with RestartFailed it has been rolled back, and containerd runs.
  [[nodiscard]] Result<> install(
      const std::function<Result<std::vector<Runtime>>(std::string_view)>& find);
  // A node without an installation is not an error. Errors: as install().
  [[nodiscard]] Result<> uninstall();
  [[nodiscard]] Result<Status> status();

 private:
  // One configuration file before and after; std::nullopt: the file does not exist.
  struct Change {
    std::string path;
    Dialect dialect = Dialect::Toml;
    std::optional<std::string> before;
    std::optional<std::string> after;
  };

  [[nodiscard]] Result<Node> survey_node();
  [[nodiscard]] Result<std::vector<Handler>> choose_handlers(const Node& node,
                                                             const std::vector<Runtime>& runtimes);
  [[nodiscard]] Result<std::set<std::string>> own_handlers(const Node& node);
  [[nodiscard]] Result<Change> plan_put(const Node& node, const std::vector<Handler>& handlers);
  [[nodiscard]] Result<Change> plan_take(std::string_view path, Dialect dialect);
  [[nodiscard]] Result<> apply(const std::vector<Change>& changes);
  [[nodiscard]] Result<> revert(const std::vector<Change>& changes);
  [[nodiscard]] Result<> write_or_remove(const std::string& path,
                                         const std::optional<std::string>& text);
  [[nodiscard]] Result<> restart_or_revert(const Node& node, Lock& lock,
                                           const std::vector<Change>& changes);
  [[nodiscard]] Result<> install_programs(const std::vector<Runtime>& runtimes);
  [[nodiscard]] Result<std::optional<std::string>> read_if_there(std::string_view path);
  [[nodiscard]] Result<std::optional<Lock>> read_lock_or_warn(const Node& node);
  [[nodiscard]] std::optional<std::string> find_problem(const Node& node, const Lock& lock);

  Files& files_;
  Service& service_;
  Report& report_;
  InstallerOptions options_;
};

}  // namespace hangar::node_install
