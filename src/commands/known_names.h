// Names of what is in the cluster, for the completion of a command line: what a person could type.
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
  bool is_in_every_namespace = false;  // Where none is given.
  std::string release;                 // Of revisions.
};

struct KnownName {
  std::string name;
  std::string description;
};

// Within seconds, or an error: a person waits at the keyboard. Only names that a shell takes as
// they are: whoever may write Secrets in a namespace can make up a release's.
[[nodiscard]] Result<std::vector<KnownName>> known_names(const host::Config& config,
                                                         const NamesQuestion& question,
                                                         const Log& log);

// Whether each shell takes `text` as one word and as nothing else.
[[nodiscard]] bool is_plain_word(std::string_view text);

}  // namespace hangar::commands
