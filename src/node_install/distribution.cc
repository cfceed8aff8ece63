#include "node_install/distribution.h"

#include "base/result.h"
#include "node_install/config_edit.h"
#include "node_install/files.h"
#include "node_install/limits.h"
#include "node_install/outcome.h"
#include "node_install/toml.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::node_install {

namespace {

constexpr std::string_view kInstallDirectory = "/opt/hangar-node";
constexpr std::string_view kDropIn = "90-hangar-node.toml";

constexpr std::string_view kMainConfig = "/etc/containerd/config.toml";
constexpr std::array<std::string_view, 4> kContainerdPrograms = {
    "/usr/bin/containerd", "/usr/local/bin/containerd", "/usr/sbin/containerd",
    "/opt/bin/containerd"};
constexpr std::string_view kMicrok8sTemplate =
    "/var/snap/microk8s/current/args/containerd-template.toml";
constexpr std::string_view kK0sConfig = "/etc/k0s/containerd.toml";
constexpr std::string_view kK0sMerged = "/run/k0s/containerd-cri.toml";

// Bound of the files read while following imports, so that a loop or a very long list ends.
constexpr std::size_t kImportsMax = 256;

struct Name {
  Distribution distribution;
  std::string_view name;
};
constexpr std::array<Name, 6> kNames = {{{Distribution::Containerd, "containerd"},
                                         {Distribution::Kind, "kind"},
                                         {Distribution::K3s, "k3s"},
                                         {Distribution::Rke2, "rke2"},
                                         {Distribution::K0s, "k0s"},
                                         {Distribution::Microk8s, "microk8s"}}};

std::string rancher_directory(Distribution distribution) {
  return fmt::format("/var/lib/rancher/{}/agent/etc/containerd", name_of(distribution));
}

bool has_containerd(const Files& files) {
  return files.exists(kMainConfig) ||
         std::ranges::any_of(kContainerdPrograms,
                             [&](std::string_view path) { return files.exists(path); });
}

bool is_there(const Files& files, Distribution distribution) {
  switch (distribution) {
    case Distribution::Microk8s:
      return files.exists("/var/snap/microk8s/current");
    case Distribution::Rke2:
    case Distribution::K3s:
      return files.exists(rancher_directory(distribution) + "/config.toml");
    case Distribution::K0s:
      return files.exists(kK0sConfig) || files.exists("/var/lib/k0s/bin/containerd");
    case Distribution::Kind:
      return files.exists("/kind") && has_containerd(files);
    case Distribution::Containerd:
      return has_containerd(files);
  }
  return false;
}

Result<Distribution> find_distribution(const Files& files) {
  // The most specific first: a node of any of them may have an ordinary containerd beside it.
  for (const Distribution candidate :
       {Distribution::Microk8s, Distribution::Rke2, Distribution::K3s, Distribution::K0s,
        Distribution::Kind, Distribution::Containerd}) {
    if (is_there(files, candidate)) return candidate;
  }
  const bool is_crio = files.exists("/etc/crio") || files.exists("/usr/bin/crio");
  return refuse(
      ErrorKind::NotFound, reason::kUnknownDistribution,
      fmt::format("no containerd found on this node ({}known are {}); "
                  "--distribution names one that is not where it usually is",
                  is_crio ? "it has CRI-O, which is not supported; " : "", distribution_names()));
}

// The content of the file, without our own part.
Result<Toml> read_others(const Files& files, std::string_view path) {
  const auto read = [&]() -> Result<Toml> {
    const std::string text = HANGAR_TRY(files.read(path, limits::kConfigBytesMax));
    return Toml::parse(HANGAR_TRY(text_of_others(text, Dialect::Toml)));
  };
  Result<Toml> document = read();
  if (!document) return std::unexpected(std::move(document).error().in(path));
  return document;
}

Result<std::string> plugin_in(const Toml& config, std::string_view path) {
  const std::set<std::string> names = config.names_below({"plugins"});
  Result<std::string> plugin = plugin_of(config.integer({"version"}).value_or(0),
                                         std::vector<std::string>(names.begin(), names.end()));
  if (!plugin) return std::unexpected(std::move(plugin).error().in(path));
  return plugin;
}

// The files that one import matches, as containerd finds them: a star does not match a slash.
std::vector<std::string> resolve_import(const Files& files, std::string_view importer,
                                        std::string import) {
  if (!import.starts_with('/'))
    import = (std::filesystem::path(importer).parent_path() / import).string();
  if (!import.contains('*')) return {import};
  const std::string directory = std::filesystem::path(import).parent_path().string();
  if (directory.contains('*')) return {};
  std::vector<std::string> found;
  for (const std::string& name : files.list(directory)) {
    const std::string path = fmt::format("{}/{}", directory, name);
    if (::fnmatch(import.c_str(), path.c_str(), FNM_PATHNAME) == 0) found.push_back(path);
  }
  return found;
}

// The existing files that `importer` imports, without our own drop-in.
std::vector<std::string> imports_of(const Files& files, std::string_view importer,
                                    const Toml& config) {
  std::vector<std::string> found;
  for (const std::string& import : config.texts({"imports"})) {
    for (std::string& path : resolve_import(files, importer, import))
      if (!path.ends_with(kDropIn) && files.exists(path)) found.push_back(std::move(path));
  }
  return found;
}

// A directory whose every *.toml is imported, so that a drop-in there is loaded.
std::optional<std::string> import_directory(std::string_view importer, std::string import) {
  if (!import.starts_with('/'))
    import = (std::filesystem::path(importer).parent_path() / import).string();
  std::string directory = std::filesystem::path(import).parent_path().string();
  if (!import.ends_with("/*.toml") || directory.contains('*')) return std::nullopt;
  return directory;
}

// Chooses the file for the part when containerd reads `main` and its imports.
//
// containerd merges the configurations plugin by plugin: the last file that has a plugin's table
// wins, and that table in other files has no effect (only the newest releases merge tables). So the
// part belongs into the last file with the table. If no file has it, a drop-in is possible.
Result<> choose_file(const Files& files, std::string_view main, Node& node) {
  const Toml config = HANGAR_TRY(read_others(files, main));
  node.plugin = HANGAR_TRY(plugin_in(config, main));
  node.config = main;
  const std::int64_t version = config.integer({"version"}).value_or(0);
  for (const std::string& disabled : config.texts({"disabled_plugins"})) {
    if (disabled == "cri" || disabled == "io.containerd.grpc.v1.cri" || disabled == node.plugin) {
      return refuse(ErrorKind::InvalidInput, reason::kConfigInvalid,
                    fmt::format("{}: disabled_plugins has \"{}\", so no Kubernetes node runs on it",
                                main, disabled));
    }
  }

  bool is_configured = config.has({"plugins", node.plugin});
  std::optional<std::string> drop_in_directory;
  std::set<std::string> loaded = {std::string(main)};
  std::deque<std::pair<std::string, std::string>> pending;  // importer, import
  for (std::string& import : config.texts({"imports"}))
    pending.emplace_back(main, std::move(import));
  while (!pending.empty() && loaded.size() < kImportsMax) {
    const auto [importer, import] = std::move(pending.front());
    pending.pop_front();
    if (importer == main && !drop_in_directory)
      drop_in_directory = import_directory(importer, import);
    for (const std::string& path : resolve_import(files, importer, import)) {
      if (path.ends_with(kDropIn) || !loaded.insert(path).second || !files.exists(path)) continue;
      const Toml imported = HANGAR_TRY(read_others(files, path));
      const std::string plugin = HANGAR_TRY(plugin_in(imported, path));
      if (imported.has({"plugins", plugin})) {
        is_configured = true;
        node.config = path;
        node.plugin = plugin;
      }
      for (std::string& further : imported.texts({"imports"}))
        pending.emplace_back(path, std::move(further));
    }
  }
  if (!is_configured && drop_in_directory && version >= 2) {
    node.config = fmt::format("{}/{}", *drop_in_directory, kDropIn);
    node.prologue = version >= 3 ? kVersion3 : kVersion2;
  }
  node.effective = node.config;
  return {};
}

// Without a configuration containerd uses its defaults, and its major version decides the format of
// a new file. Go programs contain the names of their packages: .../v2 since 2.0.
bool is_containerd_2(const Files& files) {
  for (const std::string_view program : kContainerdPrograms) {
    if (!files.exists(program)) continue;
    return files.find_in(program, {"github.com/containerd/containerd/v2/"}).has_value();
  }
  return false;
}

Result<> survey_containerd(const Files& files, Node& node) {
  node.socket = "/run/containerd/containerd.sock";
  node.services = {"containerd"};
  if (files.exists(kMainConfig)) return choose_file(files, kMainConfig, node);
  const bool is_2 = is_containerd_2(files);
  node.config = kMainConfig;
  node.effective = kMainConfig;
  node.prologue = is_2 ? kVersion3 : kVersion2;
  node.plugin = HANGAR_TRY(plugin_of(is_2 ? 3 : 2, {}));
  return {};
}

// k3s and rke2 write config.toml at every start, from a template: config-v3.toml.tmpl, else
// config.toml.tmpl, else a built-in one, which other templates can include as "base".
Result<> survey_rancher(const Files& files, Node& node) {
  const std::string directory = rancher_directory(node.distribution);
  node.dialect = Dialect::GoTemplate;
  node.prologue = kBaseTemplate;
  node.effective = directory + "/config.toml";
  node.socket = "/run/k3s/containerd/containerd.sock";
  // Only servers have this directory; every node of rke2 has the units of both kinds.
  const std::string name(name_of(node.distribution));
  const bool is_server = files.exists(fmt::format("/var/lib/rancher/{}/server", name));
  const std::string server = node.distribution == Distribution::K3s ? name : name + "-server";
  node.services = {server, name + "-agent"};
  if (!is_server) std::ranges::reverse(node.services);
  std::int64_t version = 2;
  if (files.exists(node.effective)) {
    const Toml rendered = HANGAR_TRY(read_others(files, node.effective));
    version = rendered.integer({"version"}).value_or(2);
    node.beside = imports_of(files, node.effective, rendered);
  }
  const std::string of_version_3 = directory + "/config-v3.toml.tmpl";
  const std::string of_version_2 = directory + "/config.toml.tmpl";
  // The existing template counts. The present version decides only if there is none.
  const bool is_3 = version >= 3 && (files.exists(of_version_3) || !files.exists(of_version_2));
  node.config = is_3 ? of_version_3 : of_version_2;
  node.plugin = HANGAR_TRY(plugin_of(is_3 ? 3 : 2, {}));
  return {};
}

Result<> survey_k0s(const Files& files, Node& node) {
  node.socket = "/run/k0s/containerd.sock";
  node.services = {"k0sworker", "k0scontroller"};
  std::int64_t version = 2;
  if (files.exists(kK0sConfig)) {
    const std::string text = HANGAR_TRY(files.read(kK0sConfig, limits::kConfigBytesMax));
    // Without this line the file is the administrator's, and k0s does not look into containerd.d.
    if (!text.starts_with("# k0s_managed=true")) return choose_file(files, kK0sConfig, node);
    Result<Toml> config = Toml::parse(text);
    if (!config) return std::unexpected(std::move(config).error().in(kK0sConfig));
    version = config->integer({"version"}).value_or(2);
    node.beside = imports_of(files, kK0sConfig, *config);
  }
  node.config = fmt::format("/etc/k0s/containerd.d/{}", kDropIn);
  // Until 1.35 k0s itself merges the drop-ins for this plugin and imports the result; since 1.36 it
  // imports the drop-ins, which containerd 2 merges.
  node.effective = version >= 3 && !std::erase(node.beside, kK0sMerged) ? kK0sConfig : kK0sMerged;
  node.prologue = version >= 3 ? kVersion3 : kVersion2;
  node.plugin = HANGAR_TRY(plugin_of(version, {}));
  return {};
}

Result<> survey_microk8s(const Files& files, Node& node) {
  node.socket = "/var/snap/microk8s/common/run/containerd.sock";
  node.services = {"snap.microk8s.daemon-containerd"};
  // The snap may read and run files only below its own directories.
  node.install_directory = "/var/snap/microk8s/common/hangar-node";
  if (!files.exists(kMicrok8sTemplate)) {
    return refuse(ErrorKind::NotFound, reason::kUnknownDistribution,
                  fmt::format("this is a microk8s without {}", kMicrok8sTemplate));
  }
  const Toml config = HANGAR_TRY(read_others(files, kMicrok8sTemplate));
  node.config = kMicrok8sTemplate;
  node.effective = kMicrok8sTemplate;
  node.plugin = HANGAR_TRY(plugin_in(config, kMicrok8sTemplate));
  return {};
}

}  // namespace

std::string_view name_of(Distribution distribution) {
  const auto* const found = std::ranges::find(kNames, distribution, &Name::distribution);
  return found == kNames.end() ? "" : found->name;
}

std::optional<Distribution> distribution_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &Name::name);
  if (found == kNames.end()) return std::nullopt;
  return found->distribution;
}

std::string distribution_names() {
  std::string names;
  for (const Name& known : kNames)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  return names;
}

Result<Node> survey(const Files& files, std::optional<Distribution> wanted) {
  Node node;
  node.distribution = wanted ? *wanted : HANGAR_TRY(find_distribution(files));
  node.install_directory = kInstallDirectory;
  const auto look = [&]() -> Result<> {
    switch (node.distribution) {
      case Distribution::Containerd:
      case Distribution::Kind:
        return survey_containerd(files, node);
      case Distribution::K3s:
      case Distribution::Rke2:
        return survey_rancher(files, node);
      case Distribution::K0s:
        return survey_k0s(files, node);
      case Distribution::Microk8s:
        return survey_microk8s(files, node);
    }
    return {};
  };
  HANGAR_TRY(look());
  return node;
}

}  // namespace hangar::node_install
