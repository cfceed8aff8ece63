// The file of --module-policy: which signatures modules need, by their URLs.
#pragma once

#include "base/result.h"
#include "io/loop.h"
#include "io/workers.h"
#include "modules/module_policy.h"
#include "schematics/keys.h"
#include "sigstore/identity.h"
#include "sigstore/trust_root.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::signatures {

struct PolicyFile {
  // The identities that may sign without a key.
  struct Keyless {
    sigstore::TrustRoot trust_root;
    std::vector<sigstore::Identity> identities;  // Not empty.
  };
  struct Rule {
    std::string prefix = {};  // As modules::policy_prefix() returns it; empty for the default.
    modules::Requirement requirement = modules::Requirement::Nothing;
    // For Cosign one of the two is set, or both: then either suffices.
    schematics::PublicKeys keys = {};
    std::optional<Keyless> keyless = std::nullopt;
  };
  std::vector<Rule> rules;
  Rule otherwise;
};

// YAML or JSON. Keys and trust roots are in the text, or in files; relative paths start at
// `directory`. Blocking.
// Every error names the field: InvalidInput, or that of a file with keys.
[[nodiscard]] Result<PolicyFile> parse_module_policy(std::string_view text,
                                                     const std::filesystem::path& directory);
// The same for a file; errors name it.
[[nodiscard]] Result<PolicyFile> read_module_policy(const std::filesystem::path& path);

// How modules that need yoke's signature are read (ModuleVerifier::Parts).
struct PolicyParts {
  io::Loop& loop;
  io::Workers& workers;
  std::filesystem::path program;
  std::filesystem::path directory;
};
[[nodiscard]] modules::ModulePolicy make_module_policy(const PolicyFile& file,
                                                       const PolicyParts& parts);

}  // namespace hangar::signatures
