#include "host/node_settings.h"

#include "base/number.h"
#include "base/time.h"
#include "node_install/runtime_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace hangar::host {

namespace {

using Set = std::function<Result<>(Config&, std::string_view)>;

Result<std::uint32_t> number_of(std::string_view text) {
  const auto number = parse_number<std::uint32_t>(text);
  if (number) return *number;
  return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not a whole number", text));
}

std::vector<std::string> words_of(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

Set text_into(std::string NodeSettings::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    config.nodes.*member = std::string(text);
    return {};
  };
}

Set duration_into(Duration NodeSettings::* member) {
  return [member](Config& config, std::string_view text) -> Result<> {
    const Result<Duration> duration = parse_go_duration(text);
    if (!duration || *duration < Duration::zero()) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("\"{}\" is not a duration such as 10m or 30s", text));
    }
    config.nodes.*member = *duration;
    return {};
  };
}

// KWasm's operator accepts "True" as well.
Result<> set_auto_provision(Config& config, std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char one) { return static_cast<char>(std::tolower(one)); });
  if (lower != "true" && lower != "false") {
    return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is neither true nor false", text));
  }
  config.nodes.auto_provision = lower == "true";
  return {};
}

Result<> set_max_unavailable(Config& config, std::string_view text) {
  nodes::Share share;
  if (text.ends_with('%')) {
    share.is_percent = true;
    text.remove_suffix(1);
  }
  share.value = HANGAR_TRY(number_of(text));
  if (share.value == 0 || (share.is_percent && share.value > 100)) {
    return fail(ErrorKind::InvalidInput, "must be a number from 1, or a share from 1% to 100%");
  }
  config.nodes.max_unavailable = share;
  return {};
}

Result<> set_runtime_classes(Config& config, std::string_view text) {
  config.nodes.runtime_classes.clear();
  for (const std::string& word : words_of(text, ',')) {
    config.nodes.runtime_classes.push_back(HANGAR_TRY(nodes::parse_runtime_class(word)));
  }
  return {};
}

Result<> set_runtimes(Config& config, std::string_view text) {
  config.nodes.runtimes = words_of(text, ',');
  for (const std::string& runtime : config.nodes.runtimes)
    HANGAR_TRY(node_install::parse_runtime_source(runtime));
  return {};
}

// The Job has the URL as an environment variable, so all users who may read Jobs see it.
Result<> set_fetch_proxy(Config& config, std::string_view text) {
  if (text.find("://") == std::string_view::npos) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" must be a URL such as http://proxy.example.com:3128", text));
  }
  if (text.find('@') != std::string_view::npos) {
    return fail(ErrorKind::InvalidInput,
                "must not contain a user or password: everyone who can read Jobs would see it");
  }
  config.nodes.fetch_proxy = std::string(text);
  return {};
}

// The last segment of an image's name, without tag and digest.
std::string_view image_name(std::string_view image) {
  image = image.substr(0, image.find('@'));
  image.remove_prefix(image.rfind('/') + 1);
  return image.substr(0, image.find(':'));
}

// KWasm's installer is a shell script that installs the runtimes of its image. It can neither
// uninstall nor use other runtimes.
bool is_published_installer(const NodeSettings& settings) {
  return image_name(settings.installer_image) == "kwasm-node-installer";
}

bool may_uninstall(const NodeSettings& settings) {
  if (settings.uninstall_command) return !settings.uninstall_command->empty();
  return !is_published_installer(settings);
}

}  // namespace

std::vector<Setting> node_settings() {
  return {
      {.name = "installer-image",
       .help = "image of the Jobs that provision nodes (default: none, no node is provisioned)",
       .type = "IMAGE",
       .set = text_into(&NodeSettings::installer_image),
       .published_variable = "INSTALLER_IMAGE"},
      {.name = "auto-provision-nodes",
       .help = "provision every Linux node except those annotated kwasm.sh/kwasm-node=false "
               "(default false)",
       .set = set_auto_provision,
       .is_switch = true,
       .published_variable = "AUTO_PROVISION_NODES"},
      {.name = "node-max-unavailable",
       .help = "maximum number or percentage of nodes that are provisioned or not Ready at once, "
               "such as 3 or 10% (default 1)",
       .type = "NUMBER|PERCENT",
       .set = set_max_unavailable},
      {.name = "node-runtime-classes",
       .help = "comma-separated RuntimeClasses to create: NAME or NAME=HANDLER (default: none)",
       .type = "LIST",
       .set = set_runtime_classes},
      {.name = "node-probe-image",
       .help = "Wasm image that must run and exit with 0 before a node is labelled (default: none, "
               "the node must be Ready)",
       .type = "IMAGE",
       .set = text_into(&NodeSettings::probe_image)},
      {.name = "node-probe-runtime-class",
       .help = "RuntimeClass of the probe (default: the first of node-runtime-classes)",
       .type = "NAME",
       .set = text_into(&NodeSettings::probe_runtime_class)},
      {.name = "node-uninstall-command",
       .help = "uninstall command in the installer image, arguments separated by spaces; \"none\" "
               "if the image has none (default: hangar-node uninstall)",
       .type = "COMMAND",
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.nodes.uninstall_command =
             text == "none" ? std::vector<std::string>() : words_of(text, ' ');
         return {};
       }},
      {.name = "node-image-pull-secrets",
       .help = "comma-separated Secrets in the namespace of the Jobs that contain credentials to "
               "pull their images (default: those of its ServiceAccount \"default\")",
       .type = "NAMES",
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.nodes.pull_secrets = words_of(text, ',');
         return {};
       }},
      {.name = "node-runtimes",
       .help = "comma-separated runtimes to download instead of those in the installer image: "
               "FILE[@ARCHITECTURE]=URL#sha256:HEX, for an archive followed by #program-sha256:HEX "
               "(default: none)",
       .type = "LIST",
       .set = set_runtimes},
      {.name = "node-fetch-image",
       .help =
           "image with hangar-node-fetch, which downloads node-runtimes, such as this host's image",
       .type = "IMAGE",
       .set = text_into(&NodeSettings::fetch_image)},
      {.name = "node-fetch-proxy",
       .help = "proxy for these downloads, without a password, such as http://proxy:3128 (default: "
               "none)",
       .type = "URL",
       .set = set_fetch_proxy},
      {.name = "node-fetch-no-proxy",
       .help = "comma-separated destinations to reach without that proxy, as in NO_PROXY: "
               ".example.com,10.0.0.0/8 (default: none)",
       .type = "LIST",
       .set = text_into(&NodeSettings::fetch_no_proxy)},
      {.name = "node-fetch-ca-config-map",
       .help = "ConfigMap in the namespace of the Jobs whose key ca.crt contains the CAs to trust "
               "for these downloads (default: those of the image)",
       .type = "NAME",
       .set = text_into(&NodeSettings::fetch_ca_config_map)},
      {.name = "node-job-timeout",
       .help = "time limit of one Job on a node, including the pull of its image (default 10m)",
       .type = "DURATION",
       .set = duration_into(&NodeSettings::job_timeout)},
      {.name = "node-job-retries",
       .help = "number of times that a Job retries before it fails (default 2)",
       .type = "NUMBER",
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.nodes.job_retries = HANGAR_TRY(number_of(text));
         return {};
       }},
      {.name = "node-retry-delay",
       .help = "delay before a failed node is retried; doubles with each failure, up to 30m "
               "(default 1m)",
       .type = "DURATION",
       .set = duration_into(&NodeSettings::retry_delay)},
      {.name = "node-ready-delay",
       .help = "time to wait after a Job before checking that the node is Ready (default 10s)",
       .type = "DURATION",
       .set = duration_into(&NodeSettings::ready_delay)},
  };
}

bool has_node_provisioning(const Config& config) {
  return config.has(Feature::Nodes) && !config.nodes.installer_image.empty();
}

Result<> check(const NodeSettings& settings) {
  if (!settings.probe_image.empty() && settings.probe_runtime_class.empty() &&
      settings.runtime_classes.empty()) {
    return fail(ErrorKind::InvalidInput,
                "node-probe-image needs node-runtime-classes or node-probe-runtime-class");
  }
  if (settings.runtimes.empty()) return {};
  if (settings.fetch_image.empty()) {
    return fail(ErrorKind::InvalidInput,
                "node-runtimes needs node-fetch-image: an image with hangar-node-fetch, such as "
                "this host's");
  }
  if (is_published_installer(settings)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("node-runtimes needs hangar's own installer: {} installs only the "
                            "runtimes in its image",
                            settings.installer_image));
  }
  return {};
}

nodes::Options node_options(const Config& config, std::string namespace_) {
  const NodeSettings& settings = config.nodes;
  nodes::Options options;
  options.policy = {.version = nodes::version_of(settings.installer_image, settings.runtimes),
                    .auto_provision = settings.auto_provision,
                    .max_unavailable = settings.max_unavailable,
                    .may_uninstall = may_uninstall(settings),
                    .has_probe = !settings.probe_image.empty(),
                    .ready_min = settings.ready_delay,
                    .retry_min = settings.retry_delay};
  options.jobs = {.namespace_ = std::move(namespace_),
                  .image = settings.installer_image,
                  .uninstall_command = settings.uninstall_command.value_or(
                      std::vector<std::string>{"hangar-node", "uninstall"}),
                  .pull_secrets = settings.pull_secrets,
                  .runtimes = settings.runtimes,
                  .fetch_image = settings.fetch_image,
                  .fetch_proxy = settings.fetch_proxy,
                  .fetch_no_proxy = settings.fetch_no_proxy,
                  .fetch_ca_config_map = settings.fetch_ca_config_map,
                  .probe_image = settings.probe_image,
                  .probe_runtime_class = settings.probe_runtime_class,
                  .timeout = settings.job_timeout,
                  .retries = settings.job_retries};
  for (const std::string& runtime : settings.runtimes) {
    // set_runtimes() has checked the syntax.
    if (const auto source = node_install::parse_runtime_source(runtime)) {
      options.jobs.checksums.push_back(node_install::checksum_argument(*source));
    }
  }
  options.runtime_classes = settings.runtime_classes;
  if (options.jobs.probe_runtime_class.empty() && !options.runtime_classes.empty()) {
    options.jobs.probe_runtime_class = options.runtime_classes.front().name;
  }
  // A RuntimeClass of hangar selects provisioned nodes only, and the probe runs before the node
  // becomes one. The probe therefore has its own class.
  const auto is_probed = [&](const nodes::RuntimeClass& one) {
    return one.name == options.jobs.probe_runtime_class;
  };
  if (std::ranges::any_of(options.runtime_classes, is_probed)) {
    options.jobs.probe_runtime_class = nodes::probe_class_name(options.jobs.probe_runtime_class);
  }
  return options;
}

}  // namespace hangar::host
