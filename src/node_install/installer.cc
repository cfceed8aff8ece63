#include "node_install/installer.h"

#include "base/digest.h"
#include "base/result.h"
#include "node_install/config_edit.h"
#include "node_install/distribution.h"
#include "node_install/files.h"
#include "node_install/limits.h"
#include "node_install/lock_file.h"
#include "node_install/outcome.h"
#include "node_install/report.h"
#include "node_install/runtimes.h"
#include "node_install/service.h"
#include "node_install/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::node_install {

namespace {

std::string program_directory(const Node& node) {
  return node.install_directory + "/bin";
}

TomlPath runtimes_path(const Node& node) {
  return {"plugins", node.plugin, "containerd", "runtimes"};
}

// Reads a file of containerd's configuration, without our part. std::nullopt if it does not exist.
Result<std::optional<Toml>> read_others_if_there(const Files& files, std::string_view path) {
  Result<std::string> text = files.read(path, limits::kConfigBytesMax);
  if (!text && text.error().kind() == ErrorKind::NotFound) return std::optional<Toml>();
  if (!text) return std::unexpected(std::move(text).error());
  const Result<std::string> rest = text_of_others(*text, Dialect::Toml);
  if (!rest) return std::unexpected(Error(rest.error()).in(path));
  Result<Toml> others = Toml::parse(*rest);
  if (!others) return std::unexpected(std::move(others).error().in(path));
  return std::optional(*std::move(others));
}

// A handler that others have configured.
struct Taken {
  std::string file;
  std::string runtime_type;
};
Result<std::map<std::string, Taken>> handlers_of_others(const Files& files, const Node& node) {
  std::vector<std::string> paths = {node.effective};
  paths.insert(paths.end(), node.beside.begin(), node.beside.end());
  std::map<std::string, Taken> taken;
  for (const std::string& path : paths) {
    const std::optional<Toml> others = HANGAR_TRY(read_others_if_there(files, path));
    if (!others) continue;
    for (const std::string& name : others->names_below(runtimes_path(node))) {
      TomlPath type = runtimes_path(node);
      type.insert(type.end(), {name, "runtime_type"});
      taken.try_emplace(name, Taken{.file = path, .runtime_type = others->text(type).value_or("")});
    }
  }
  return taken;
}

// Version 3 is read by containerd 2.x only, which keeps its own runc. The configurations of k3s,
// rke2 and k0s name it.
Runc runc_of(const Node& node, const std::optional<Toml>& others) {
  const bool is_ours_alone = node.effective == node.config && node.dialect == Dialect::Toml;
  if (!is_ours_alone || node.plugin == kCriVersion3) return Runc::IsThere;
  if (!others) return Runc::HasToBeNamed;
  const std::string standard =
      others->text({"plugins", node.plugin, "containerd", "default_runtime_name"}).value_or("runc");
  return !others->has(runtimes_path(node)) && standard == "runc" ? Runc::HasToBeNamed
                                                                 : Runc::IsThere;
}

// Whether KWasm's installer added it. Nodes migrated from KWasm keep their working handlers.
bool is_kwasms(std::string_view runtime_type) {
  return runtime_type.starts_with("/opt/kwasm/") ||
         runtime_type.starts_with("/var/snap/microk8s/common/kwasm/");
}

// The digest of the file before our part was added: the current file, or the lock's record if the
// file already has our part.
Result<std::string> sha256_before_part(const std::optional<std::string>& text,
                                       const std::optional<Lock>& lock) {
  if (!text) return std::string();
  if (HANGAR_TRY(read_part(*text))) return lock ? lock->config_sha256_before : std::string();
  return sha256_hex(*text);
}

}  // namespace

Result<Node> Installer::survey_node() {
  Node node = HANGAR_TRY(survey(files_, options_.distribution));
  if (!options_.install_directory.empty()) node.install_directory = options_.install_directory;
  report_.say("found", "found containerd",
              {{"distribution", name_of(node.distribution)},
               {"config", node.config},
               {"plugin", node.plugin}});
  return node;
}

Result<std::optional<std::string>> Installer::read_if_there(std::string_view path) {
  Result<std::string> text = files_.read(path, limits::kConfigBytesMax);
  if (text) return std::optional(*std::move(text));
  if (text.error().kind() == ErrorKind::NotFound) return std::optional<std::string>();
  return std::unexpected(std::move(text).error());
}

Result<std::optional<Lock>> Installer::read_lock_or_warn(const Node& node) {
  Result<std::optional<Lock>> lock = read_lock(files_, node.install_directory);
  if (lock || lock.error().kind() != ErrorKind::Corrupt) return lock;
  // The record in the lock is lost; the configuration and the disk still show what is installed.
  report_.say("lock-unreadable", "continuing without the lock file",
              {{"error", lock.error().message()}});
  return std::optional<Lock>();
}

Result<std::vector<Handler>> Installer::choose_handlers(const Node& node,
                                                        const std::vector<Runtime>& runtimes) {
  std::map<std::string, Taken> taken = HANGAR_TRY(handlers_of_others(files_, node));
  // k0s merges the files and drops the markers: handlers that our part names are ours there too.
  for (const std::string& name : HANGAR_TRY(own_handlers(node)))
    taken.erase(name);
  std::vector<Handler> chosen;
  for (const Runtime& runtime : runtimes) {
    const auto found = taken.find(runtime.handler.name);
    if (found == taken.end()) {
      chosen.push_back(runtime.handler);
      continue;
    }
    const auto& [file, whose] = found->second;
    if (options_.existing == Existing::Refuse && !is_kwasms(whose)) {
      return refuse(
          ErrorKind::Conflict, reason::kConfigConflict,
          fmt::format("{} has a runtime handler {} already (runtime_type = \"{}\"): remove "
                      "it there, or leave it to its owner with --keep-existing",
                      file, runtime.handler.name, whose));
    }
    report_.say("kept", "left a runtime handler to others",
                {{"handler", runtime.handler.name}, {"runtime_type", whose}});
  }
  return chosen;
}

Result<std::set<std::string>> Installer::own_handlers(const Node& node) {
  const std::optional<std::string> text = HANGAR_TRY(read_if_there(node.config));
  if (!text) return std::set<std::string>();
  const std::optional<std::string> part = HANGAR_TRY(read_part(*text));
  if (!part) return std::set<std::string>();
  const Result<Toml> ours = Toml::parse(*part);
  return ours ? ours->names_below(runtimes_path(node)) : std::set<std::string>();
}

Result<Installer::Change> Installer::plan_put(const Node& node,
                                              const std::vector<Handler>& handlers) {
  if (handlers.empty()) return plan_take(node.config, node.dialect);
  Change change{.path = node.config, .dialect = node.dialect};
  change.before = HANGAR_TRY(read_if_there(node.config));
  const std::optional<Toml> others = HANGAR_TRY(read_others_if_there(files_, node.effective));
  TomlPath driver = runtimes_path(node);
  driver.insert(driver.end(), {"runc", "options", "SystemdCgroup"});
  const bool is_systemd = others && others->boolean(driver).value_or(false);
  Result<std::string> after = put_part(
      change.before, node.prologue,
      render_handlers(node.plugin, handlers, is_systemd, runc_of(node, others)), node.dialect);
  if (!after) return std::unexpected(std::move(after).error().in(node.config));
  change.after = *std::move(after);
  return change;
}

Result<Installer::Change> Installer::plan_take(std::string_view path, Dialect dialect) {
  Change change{.path = std::string(path), .dialect = dialect};
  change.before = HANGAR_TRY(read_if_there(path));
  if (!change.before) return change;
  Result<std::optional<std::string>> after = take_part(*change.before, dialect);
  if (!after) return std::unexpected(std::move(after).error().in(path));
  change.after = *std::move(after);
  return change;
}

Result<> Installer::write_or_remove(const std::string& path,
                                    const std::optional<std::string>& text) {
  if (!text) return files_.remove(path);
  return files_.write(path, *text, Access::KeepOrPublic);
}

Result<> Installer::apply(const std::vector<Change>& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Result<> written = write_or_remove(changes[i].path, changes[i].after);
    if (written) continue;
    // Earlier changes are rolled back; an error of the rollback is ignored, because it would hide
    // the first one.
    const Result<> reverted = revert({changes.begin(), changes.begin() + static_cast<long>(i)});
    if (!reverted)
      report_.say("revert-failed", "cannot put back the configuration",
                  {{"error", reverted.error().message()}});
    return written;
  }
  return {};
}

Result<> Installer::revert(const std::vector<Change>& changes) {
  for (const Change& change : changes | std::views::reverse) {
    const std::optional<std::string> now = HANGAR_TRY(read_if_there(change.path));
    // Another program has written meanwhile: its changes stay, and only our part is restored.
    if (now != change.after && now && change.before) {
      const std::optional<std::string> part = HANGAR_TRY(read_part(*change.before));
      const std::optional<std::string> text =
          part ? std::optional(HANGAR_TRY(put_part(*now, "", *part, change.dialect)))
               : HANGAR_TRY(take_part(*now, change.dialect));
      HANGAR_TRY(write_or_remove(change.path, text));
      continue;
    }
    HANGAR_TRY(write_or_remove(change.path, change.before));
  }
  return {};
}

Result<> Installer::restart_or_revert(const Node& node, Lock& lock,
                                      const std::vector<Change>& changes) {
  if (options_.restart == Restart::Never) {
    report_.say("restart-pending", "containerd has to be restarted; left to you (--no-restart)");
    return {};
  }
  report_.say("restarting", "restarting containerd");
  const Result<> restarted = service_.restart(node);
  if (restarted) {
    report_.say("restarted", "containerd is back");
    lock.restart_pending = false;
    return write_lock(files_, node.install_directory, lock);
  }
  report_.say("restart-failed", "restarting containerd failed; putting the configuration back",
              {{"error", restarted.error().message()}});
  const Result<> reverted = revert(changes);
  if (!reverted) {
    return refuse(ErrorKind::Unavailable, reason::kRestoreFailed,
                  fmt::format("{}; and the configuration could not be put back: {}",
                              restarted.error().message(), reverted.error().message()));
  }
  const Result<> again = service_.restart(node);
  if (!again) {
    // restart_pending stays set: the next run restarts, whatever else it finds.
    return refuse(ErrorKind::Unavailable, reason::kRestoreFailed,
                  fmt::format("{}; with the configuration as it was before: {}",
                              restarted.error().message(), again.error().message()));
  }
  lock.restart_pending = false;
  HANGAR_TRY(write_lock(files_, node.install_directory, lock));
  return refuse(ErrorKind::Unavailable, reason::kRestartFailed,
                fmt::format("{}; the configuration is as it was before, and containerd is back",
                            restarted.error().message()));
}

Result<> Installer::install_programs(const std::vector<Runtime>& runtimes) {
  for (const Runtime& runtime : runtimes) {
    const std::string& path = runtime.handler.program;
    const Result<std::string> there = files_.sha256(path);
    if (there && *there == runtime.sha256) continue;
    HANGAR_TRY(files_.install(path, runtime.source.value(), runtime.sha256));
    report_.say("copied", "copied a runtime", {{"path", path}, {"sha256", runtime.sha256}});
  }
  return {};
}

Result<> Installer::install(
    const std::function<Result<std::vector<Runtime>>(std::string_view)>& find) {
  const Node node = HANGAR_TRY(survey_node());
  std::vector<Runtime> runtimes = HANGAR_TRY(find(node.install_directory));
  const std::vector<Handler> handlers = HANGAR_TRY(choose_handlers(node, runtimes));
  std::erase_if(runtimes, [&](const Runtime& runtime) {
    return std::ranges::find(handlers, runtime.handler) == handlers.end();
  });

  const std::optional<Lock> old = HANGAR_TRY(read_lock_or_warn(node));
  std::vector<Change> changes;
  if (old && old->config != node.config)
    changes.push_back(HANGAR_TRY(plan_take(old->config, node.dialect)));
  changes.push_back(HANGAR_TRY(plan_put(node, handlers)));
  const std::string sha256_before = HANGAR_TRY(sha256_before_part(changes.back().before, old));
  std::erase_if(changes, [](const Change& change) { return change.before == change.after; });
  const bool restart_due = !changes.empty() || (old && old->restart_pending);
  if (restart_due && options_.restart == Restart::WhenNeeded) HANGAR_TRY(service_.check(node));
  if (options_.run == Run::Dry) {
    for (const Change& change : changes)
      report_.say("would-change", "would change", {{"path", change.path}});
    for (const Runtime& runtime : runtimes)
      report_.say("would-copy", "would have", {{"path", runtime.handler.program}});
    report_.say("done", restart_due ? "would restart containerd" : "nothing to restart");
    return {};
  }

  std::vector<std::string> made = HANGAR_TRY(files_.make_directories(program_directory(node)));
  const Descriptor held = HANGAR_TRY(files_.lock(node.install_directory));
  for (std::string& directory : HANGAR_TRY(
           files_.make_directories(std::filesystem::path(node.config).parent_path().string())))
    made.push_back(std::move(directory));
  Lock lock{.version = HANGAR_VERSION,
            .distribution = std::string(name_of(node.distribution)),
            .config = node.config,
            .config_sha256_before = sha256_before,
            .directories = old ? old->directories : std::vector<std::string>(),
            .restart_pending = restart_due};
  for (std::string& directory : made)
    if (std::ranges::find(lock.directories, directory) == lock.directories.end())
      lock.directories.push_back(std::move(directory));
  for (const Runtime& runtime : runtimes) {
    lock.files.push_back({.path = runtime.handler.program,
                          .sha256 = runtime.sha256,
                          .handler = runtime.handler.name});
  }
  // Files from before stay on the list until the configuration no longer names them.
  Lock both = lock;
  for (const Lock::File& file : old ? old->files : std::vector<Lock::File>()) {
    if (std::ranges::find(lock.files, file.path, &Lock::File::path) == lock.files.end())
      both.files.push_back(file);
  }
  HANGAR_TRY(write_lock(files_, node.install_directory, both));

  HANGAR_TRY(install_programs(runtimes));
  HANGAR_TRY(apply(changes));
  for (const Change& change : changes)
    report_.say("configured", "changed the configuration", {{"path", change.path}});
  if (restart_due) {
    // A restart that is still due from an earlier run has to be rolled back to before our part too.
    if (changes.empty()) {
      Change undone = HANGAR_TRY(plan_take(node.config, node.dialect));
      std::swap(undone.before, undone.after);
      changes.push_back(std::move(undone));
    }
    HANGAR_TRY(restart_or_revert(node, both, changes));
  }

  for (const Lock::File& file : both.files) {
    if (std::ranges::find(lock.files, file.path, &Lock::File::path) == lock.files.end())
      HANGAR_TRY(files_.remove(file.path));
  }
  lock.restart_pending = both.restart_pending;
  HANGAR_TRY(write_lock(files_, node.install_directory, lock));
  report_.say("done", restart_due ? "installed" : "installed; nothing had to be restarted");
  return {};
}

Result<> Installer::uninstall() {
  const Node node = HANGAR_TRY(survey_node());
  const std::optional<Lock> old = HANGAR_TRY(read_lock_or_warn(node));
  std::vector<Change> changes;
  for (const std::string& path :
       std::set<std::string>{node.config, old ? old->config : node.config})
    changes.push_back(HANGAR_TRY(plan_take(path, node.dialect)));
  std::erase_if(changes, [](const Change& change) { return change.before == change.after; });
  if (!old && changes.empty()) {
    report_.say("done", "nothing is installed");
    return {};
  }
  const bool restart_due = !changes.empty() || (old && old->restart_pending);
  if (restart_due && options_.restart == Restart::WhenNeeded) HANGAR_TRY(service_.check(node));
  if (options_.run == Run::Dry) {
    for (const Change& change : changes)
      report_.say("would-change", "would change", {{"path", change.path}});
    report_.say("done", restart_due ? "would restart containerd" : "nothing to restart");
    return {};
  }

  std::vector<std::string> made = HANGAR_TRY(files_.make_directories(node.install_directory));
  const Descriptor held = HANGAR_TRY(files_.lock(node.install_directory));
  Lock lock = old.value_or(Lock{.version = HANGAR_VERSION,
                                .distribution = std::string(name_of(node.distribution)),
                                .config = node.config,
                                .directories = std::move(made)});
  if (restart_due) {
    lock.restart_pending = true;
    HANGAR_TRY(write_lock(files_, node.install_directory, lock));
    HANGAR_TRY(apply(changes));
    for (const Change& change : changes) {
      const bool is_as_before = change.path == lock.config && change.after &&
                                sha256_hex(*change.after) == lock.config_sha256_before;
      report_.say("configured", "took our part out of the configuration",
                  {{"path", change.path},
                   {"now", !change.after  ? "removed"
                           : is_as_before ? "as before"
                                          : "as before, with later changes by others"}});
    }
    HANGAR_TRY(restart_or_revert(node, lock, changes));
  }
  for (const Lock::File& file : lock.files) {
    HANGAR_TRY(files_.remove(file.path));
    report_.say("removed", "removed a runtime", {{"path", file.path}});
  }
  // Last: if the run is killed before this, the next run finishes it.
  HANGAR_TRY(files_.remove(fmt::format("{}/{}", node.install_directory, kLockName)));
  for (const std::string& directory : lock.directories | std::views::reverse)
    files_.remove_empty_directory(directory);
  report_.say("done", "uninstalled");
  return {};
}

std::optional<std::string> Installer::find_problem(const Node& node, const Lock& lock) {
  if (lock.restart_pending) return "containerd has not been restarted since";
  for (const Lock::File& file : lock.files) {
    const Result<std::string> found = files_.sha256(file.path);
    if (!found) return fmt::format("{} cannot be read", file.path);
    if (*found != file.sha256) return fmt::format("{} has changed", file.path);
  }
  if (lock.config != node.config)
    return fmt::format("the configuration has moved from {} to {}", lock.config, node.config);
  if (lock.files.empty()) return std::nullopt;
  const Result<std::optional<std::string>> text = read_if_there(node.config);
  const Result<std::optional<std::string>> part =
      text && *text ? read_part(**text) : Result<std::optional<std::string>>();
  if (!part || !*part) return fmt::format("{} does not have our part", node.config);
  for (const Lock::File& file : lock.files)
    if (!(*part)->contains(file.path))
      return fmt::format("{} does not name {}", node.config, file.path);
  return std::nullopt;
}

Result<Status> Installer::status() {
  const Node node = HANGAR_TRY(survey_node());
  const std::optional<Lock> lock = HANGAR_TRY(read_lock(files_, node.install_directory));
  Status status{.distribution = std::string(name_of(node.distribution)), .config = node.config};
  if (!lock) return status;
  status.version = lock->version;
  for (const Lock::File& file : lock->files)
    status.handlers.push_back(file.handler);
  const std::optional<std::string> problem = find_problem(node, *lock);
  status.state = problem ? Status::State::Incomplete : Status::State::Installed;
  status.problem = problem.value_or("");
  return status;
}

}  // namespace hangar::node_install
