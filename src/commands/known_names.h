// Names of objects in the cluster, for the completion of command lines.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

enum class NameKind : std::uint8_t { Namespaces, Releases, Revisions, Operators, Workflows };

struct NamesQuestion {
  NameKind kind = NameKind::Releases;
  std::string namespace_;              // Empty: the kubeconfig's.
  bool is_in_every_namespace = false;  // Whether to search all namespaces if none is given.
  std::string release;                 // The release of the revisions.
};

struct KnownName {
  std::string name;
  std::string description;
};

// Takes a few seconds at most, since a person waits at the keyboard. Returns only names that need
// no quoting in a shell: users who may write Secrets in a namespace can choose names of releases.
[[nodiscard]] Result<std::vector<KnownName>> known_names(const host::Config& config,
                                                         const NamesQuestion& question,
                                                         const Log& log);

// Whether every shell reads `text` as a single word without special meaning.
[[nodiscard]] bool is_plain_word(std::string_view text);

}  // namespace hangar::commands
