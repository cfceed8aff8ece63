// Which signatures a module needs, by the beginning of its reference: an administrator's rules. The
// longest prefix that fits decides. Pure; any thread.
#pragma once

#include "base/result.h"
#include "modules/cosign.h"
#include "modules/reference.h"
#include "modules/verifier.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::modules {

enum class Requirement : std::uint8_t {
  Nothing,
  Cosign,  // cosign's signature of the artifact's manifest; only oci:// has them.
  Yoke,    // yoke's signature in the module.
  Deny,    // No module from there may run.
};

struct PolicyRule {
  std::string prefix = {};  // As policy_prefix() returns it; empty: the default.
  Requirement requirement = Requirement::Nothing;
  std::shared_ptr<const Signers> signers = nullptr;  // For Cosign.
  std::shared_ptr<Verifier> verifier = nullptr;      // For Yoke; its keys do not change.
};

// The prefix of a rule in its one spelling: the host in lower case, without a default port and
// without slashes at the end. InvalidInput says what is wrong.
[[nodiscard]] Result<std::string> policy_prefix(std::string_view text);

class ModulePolicy {
 public:
  // The rules have different prefixes. `otherwise` is for references that no prefix fits.
  ModulePolicy(std::vector<PolicyRule> rules, PolicyRule otherwise);

  // The index of the rule for a reference; rule() takes it. A prefix fits what it names and what is
  // below it: oci://r.example/team fits oci://r.example/team/web:v1, not oci://r.example/teams.
  // Denied for a URL that servers may read as a path of another rule.
  [[nodiscard]] Result<std::size_t> find(const Reference& reference) const;
  [[nodiscard]] const PolicyRule& rule(std::size_t index) const { return rules_[index]; }

 private:
  std::vector<PolicyRule> rules_;  // The longest prefix first; the default last.
};

// "the rule for oci://registry.example.com/team requires a signature by cosign", for people.
[[nodiscard]] std::string describe(const PolicyRule& rule);

}  // namespace hangar::modules
