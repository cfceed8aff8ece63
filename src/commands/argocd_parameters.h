// The parameters of an Application, which Argo CD passes to a config management plugin in
// environment variables. Names and meaning are those of yoke's plugin.
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"
#include "base/time.h"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

// The key of a Secret.
struct ArgoSecretRef {
  std::string secret;
  std::string namespace_;  // Empty: that of Argo CD.
  std::string key;
};

struct ArgoParameters {
  bool build = false;  // The directory is a Go program: build it.
  std::string wasm;    // A URL, or a path below the directory of the Application.
  std::string input;   // The stdin of the flight.
  std::map<std::string, ArgoSecretRef> refs;  // Values for the URL, by their names.
  std::vector<std::string> args;
  std::vector<std::string> resource_matchers;
  bool cluster_access = false;
  std::uint32_t memory_mib_max = 0;  // Zero: the default.
  Duration timeout{0};               // Zero: the default.
  std::string checksum;
  bool insecure = false;
};

// Reads a file of the Application.
using ReadArgoFile = std::function<Result<std::string>(const std::string& path)>;

// `text`: the value of ARGOCD_APP_PARAMETERS. InvalidInput names the parameter.
[[nodiscard]] Result<ArgoParameters> parse_argo_parameters(std::string_view text,
                                                           const ReadArgoFile& read_file);

// Everything that the plugin reads from its environment.
struct ArgoEnvironment {
  std::string name;                           // Of the Application.
  std::string namespace_;                     // The namespace of its resources.
  std::string argo_namespace;                 // Of Argo CD.
  std::vector<std::string> flight_variables;  // "NAME=value", from ARGOCD_ENV_NAME.
  ArgoParameters parameters;
};

// `variables`: "NAME=value". InvalidInput names every variable that is missing or wrong.
[[nodiscard]] Result<ArgoEnvironment> read_argo_environment(std::span<const std::string> variables,
                                                            const ReadArgoFile& read_file);

// Replaces each `{{ .name }}` in a URL. InvalidInput for a name that is not in `values`, and for
// anything else in braces.
[[nodiscard]] Result<std::string> fill_in_url(std::string_view url,
                                              const std::map<std::string, std::string>& values);

// Adds the labels and annotations of the release to all resources; if there are several stages,
// also the sync waves in which Argo CD applies them one after the other.
void mark_for_argo(airways::Stages& stages, std::string_view release, std::string_view namespace_);

}  // namespace hangar::commands
