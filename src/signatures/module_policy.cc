#include "signatures/module_policy.h"

#include "base/digest.h"
#include "base/invalid.h"
#include "base/result.h"
#include "io/file.h"
#include "json/fields.h"
#include "json/value.h"
#include "json/yaml.h"
#include "modules/cosign.h"
#include "modules/module_policy.h"
#include "modules/verifier.h"
#include "schematics/key_files.h"
#include "schematics/keys.h"
#include "signatures/module_verifier.h"
#include "sigstore/identity.h"
#include "sigstore/keyless.h"
#include "sigstore/trust_root.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::signatures {

namespace {

// Keys in the file are some hundred bytes each, a trust root has some 10 kB.
constexpr std::uint64_t kPolicyBytesMax = std::uint64_t{1024} * 1024;
// Each lookup of a module compares all of them.
constexpr std::size_t kRulesMax = 256;
constexpr std::uint64_t kTrustRootBytesMax = std::uint64_t{1024} * 1024;
// Each signature is compared with all of them.
constexpr std::size_t kIdentitiesMax = 64;

using Requirement = modules::Requirement;
using json::Fields;
constexpr std::array<std::pair<std::string_view, Requirement>, 4> kRequirements = {{
    {"cosign", Requirement::Cosign},
    {"yoke", Requirement::Yoke},
    {"none", Requirement::Nothing},
    {"deny", Requirement::Deny},
}};

bool needs_keys(Requirement requirement) {
  return requirement == Requirement::Cosign || requirement == Requirement::Yoke;
}

Result<schematics::PublicKeys> load_keys(const std::string& text,
                                         const std::filesystem::path& directory) {
  schematics::PublicKeys keys;
  if (text.starts_with("-----BEGIN")) {
    schematics::PublicKey key = HANGAR_TRY(schematics::PublicKey::parse(text));
    HANGAR_TRY(keys.add(std::move(key)));
    return keys;
  }
  if (text.empty()) return invalid("is empty");
  keys = HANGAR_TRY(schematics::load_public_keys(directory / text));
  // A directory that is not mounted yet must not count as one without keys.
  if (keys.size() == 0) return invalid(fmt::format("{} has no key (*.pem)", text));
  return keys;
}

Result<schematics::PublicKeys> keys_of(const Fields& rule, const std::filesystem::path& directory) {
  const Result<std::vector<std::string>> texts = rule.texts("keys");
  if (!texts || texts->empty()) {
    return rule.wrong("keys",
                      "a list of files and directories with public keys, or of keys in PEM");
  }
  schematics::PublicKeys keys;
  for (std::size_t at = 0; at < texts->size(); ++at) {
    const std::string where = fmt::format("{}[{}]", rule.name("keys"), at);
    const Result<schematics::PublicKeys> more = load_keys((*texts)[at], directory);
    if (!more) return std::unexpected(Error(more.error()).in(where));
    Result<> added = keys.add(*more);
    if (!added) return std::unexpected(std::move(added).error().in(where));
  }
  return keys;
}

// The trust root is the name of a file, the text of one, or the same as a mapping.
Result<sigstore::TrustRoot> trust_root_of(const Fields& keyless,
                                          const std::filesystem::path& directory) {
  if (const Result<const json::Object*> mapping = keyless.object("trustRoot");
      mapping && *mapping != nullptr) {
    return sigstore::read_trust_root(json::Value(**mapping));
  }
  const Result<std::string> written = keyless.text("trustRoot");
  if (!keyless.has("trustRoot") || !written) {
    return invalid("must be a file with a TrustedRoot of Sigstore, or the TrustedRoot itself");
  }
  std::string text = *written;
  if (text.empty()) return invalid("is empty");
  if (!text.starts_with('{')) {
    text = HANGAR_TRY(io::read_file(directory / text, kTrustRootBytesMax));
  }
  const json::Value document = HANGAR_TRY(json::parse(text));
  return sigstore::read_trust_root(document);
}

// The member `name`, or an expression in `name`RegExp: one of the two.
Result<sigstore::IdentityPattern> pattern_of(const Fields& identity, std::string_view name) {
  const std::string expression = fmt::format("{}RegExp", name);
  const bool is_exact = identity.has(name);
  if (is_exact == identity.has(expression)) {
    return invalid(
        fmt::format("{}: either this or {} is required", identity.name(name), expression));
  }
  const std::string member = is_exact ? std::string(name) : expression;
  std::string text = HANGAR_TRY(identity.required_text(member));
  Result<sigstore::IdentityPattern> pattern =
      is_exact ? sigstore::IdentityPattern::exact(std::move(text))
               : sigstore::IdentityPattern::regexp(std::move(text));
  if (!pattern) return std::unexpected(std::move(pattern).error().in(identity.name(member)));
  return pattern;
}

Result<PolicyFile::Keyless> keyless_of(const Fields& fields,
                                       const std::filesystem::path& directory) {
  HANGAR_TRY(fields.check_only({"trustRoot", "identities"}));
  Result<sigstore::TrustRoot> root = trust_root_of(fields, directory);
  if (!root) return std::unexpected(std::move(root).error().in(fields.name("trustRoot")));
  PolicyFile::Keyless keyless{.trust_root = *std::move(root), .identities = {}};
  const Result<std::vector<Fields>> identities = fields.objects("identities");
  if (!identities || identities->empty() || identities->size() > kIdentitiesMax) {
    return fields.wrong(
        "identities",
        fmt::format("a list of 1 to {} identities, each with issuer and subject", kIdentitiesMax));
  }
  for (const Fields& identity : *identities) {
    HANGAR_TRY(identity.check_only({"issuer", "issuerRegExp", "subject", "subjectRegExp"}));
    sigstore::IdentityPattern issuer = HANGAR_TRY(pattern_of(identity, "issuer"));
    sigstore::IdentityPattern subject = HANGAR_TRY(pattern_of(identity, "subject"));
    keyless.identities.push_back({.issuer = std::move(issuer), .subject = std::move(subject)});
  }
  return keyless;
}

Result<PolicyFile::Rule> rule_in(const Fields& fields, const std::filesystem::path& directory) {
  PolicyFile::Rule rule;
  const std::string text = HANGAR_TRY(fields.required_text("require"));
  const auto* const found = std::ranges::find(kRequirements, std::string_view(text),
                                              [](const auto& entry) { return entry.first; });
  if (found == kRequirements.end()) {
    return fields.wrong("require", fmt::format("cosign, yoke, none or deny, not \"{}\"", text));
  }
  rule.requirement = found->second;
  const bool is_keyless = fields.has("keyless");
  const bool has_keys = fields.has("keys");
  if (is_keyless && rule.requirement != Requirement::Cosign) {
    return invalid(
        fmt::format("{}: has no meaning with require: {}", fields.name("keyless"), text));
  }
  if (has_keys && !needs_keys(rule.requirement)) {
    return invalid(fmt::format("{}: has no meaning with require: {}", fields.name("keys"), text));
  }
  if (is_keyless) {
    const Fields keyless = HANGAR_TRY(fields.required_object("keyless"));
    rule.keyless = HANGAR_TRY(keyless_of(keyless, directory));
  }
  if (needs_keys(rule.requirement) && (has_keys || !is_keyless)) {
    rule.keys = HANGAR_TRY(keys_of(fields, directory));
  }
  return rule;
}

Result<PolicyFile::Rule> prefixed_rule(const Fields& fields,
                                       const std::filesystem::path& directory) {
  HANGAR_TRY(fields.check_only({"prefix", "require", "keys", "keyless"}));
  const std::string text = HANGAR_TRY(fields.required_text("prefix"));
  const Result<std::string> prefix = modules::policy_prefix(text);
  if (!prefix) {
    return invalid(
        fmt::format("{}: \"{}\" {}", fields.name("prefix"), text, prefix.error().message()));
  }
  PolicyFile::Rule rule = HANGAR_TRY(rule_in(fields, directory));
  if (rule.requirement == Requirement::Cosign && !prefix->starts_with("oci://")) {
    return invalid(
        fmt::format("{}: cosign signs artifacts in registries: the prefix must begin with oci://",
                    fields.name("require")));
  }
  rule.prefix = *prefix;
  return rule;
}

class CosignKeys final : public modules::Signers {
 public:
  explicit CosignKeys(schematics::PublicKeys keys) : keys_(std::move(keys)) {}

  [[nodiscard]] std::string id() const override { return keys_.id(); }
  [[nodiscard]] Result<std::string> find_signer(const modules::Claim& claim) const override {
    if (keys_.has_signed_bytes(claim.bytes, claim.signature)) return "one of the rule's keys";
    return fail(ErrorKind::Denied, "the signature was made by none of the rule's keys");
  }
  [[nodiscard]] std::string advice() const override {
    return "sign it with `cosign sign --key` and a key of the rule";
  }

 private:
  const schematics::PublicKeys keys_;
};

// Either suffices.
class KeysOrIdentities final : public modules::Signers {
 public:
  KeysOrIdentities(schematics::PublicKeys keys, const PolicyFile::Keyless& keyless)
      : keys_(std::move(keys)), keyless_(keyless.trust_root, keyless.identities) {}

  [[nodiscard]] std::string id() const override { return sha256_hex(keys_.id() + keyless_.id()); }
  [[nodiscard]] Result<std::string> find_signer(const modules::Claim& claim) const override {
    Result<std::string> by_key = keys_.find_signer(claim);
    if (by_key) return by_key;
    // For a signature by a key, the error says that it is another key.
    const Result<std::string> by_identity = keyless_.find_signer(claim);
    const bool is_keyless =
        claim.material != nullptr
            ? json::find(*claim.material, {"certificate"}) != nullptr
            : claim.annotations != nullptr && !claim.annotations->certificate.empty();
    return by_identity || is_keyless ? by_identity : by_key;
  }
  [[nodiscard]] std::string advice() const override {
    return fmt::format("{}, or {}", keys_.advice(), keyless_.advice());
  }

 private:
  const CosignKeys keys_;
  const sigstore::KeylessSigners keyless_;
};

std::shared_ptr<const modules::Signers> signers_of(const PolicyFile::Rule& rule) {
  if (!rule.keyless) return std::make_shared<CosignKeys>(rule.keys);
  if (rule.keys.size() > 0) return std::make_shared<KeysOrIdentities>(rule.keys, *rule.keyless);
  return std::make_shared<sigstore::KeylessSigners>(rule.keyless->trust_root,
                                                    rule.keyless->identities);
}

}  // namespace

Result<PolicyFile> parse_module_policy(std::string_view text,
                                       const std::filesystem::path& directory) {
  const json::Value document = HANGAR_TRY(json::parse_yaml(text));
  const json::Object* const object = document.if_object();
  if (object == nullptr) return invalid("must be a mapping with rules and default");
  const Fields fields(*object, "");
  HANGAR_TRY(fields.check_only({"rules", "default"}));
  PolicyFile file;
  // An empty list must be explicit: a file that lost its rules must not count as one.
  if (!fields.has("rules")) return fields.wrong("rules", "a list of objects");
  const std::vector<Fields> rules = HANGAR_TRY(fields.objects("rules"));
  if (rules.size() > kRulesMax) return invalid(fmt::format("rules: more than {}", kRulesMax));
  std::set<std::string> prefixes;
  for (const Fields& one : rules) {
    PolicyFile::Rule rule = HANGAR_TRY(prefixed_rule(one, directory));
    if (!prefixes.insert(rule.prefix).second) {
      return invalid(
          fmt::format("{}: there is another rule for {}", one.name("prefix"), rule.prefix));
    }
    file.rules.push_back(std::move(rule));
  }
  if (!fields.has("default")) {
    return invalid(
        "default: is required: the requirement for modules that match no rule, such as "
        "require: none");
  }
  const Fields otherwise = HANGAR_TRY(fields.required_object("default"));
  HANGAR_TRY(otherwise.check_only({"require", "keys", "keyless"}));
  file.otherwise = HANGAR_TRY(rule_in(otherwise, directory));
  return file;
}

Result<PolicyFile> read_module_policy(const std::filesystem::path& path) {
  const std::string what = fmt::format("module-policy {}", path.string());
  const Result<std::string> text = io::read_file(path, kPolicyBytesMax);
  if (!text) return std::unexpected(Error(text.error()).in(what));
  Result<PolicyFile> file = parse_module_policy(*text, path.parent_path());
  if (!file) return std::unexpected(std::move(file).error().in(what));
  return file;
}

modules::ModulePolicy make_module_policy(const PolicyFile& file, const PolicyParts& parts) {
  // Rules with the same keys share their verdicts and their processes.
  std::map<std::string, std::shared_ptr<modules::Verifier>> verifiers;
  const auto made = [&](const PolicyFile::Rule& rule) {
    modules::PolicyRule one{.prefix = rule.prefix, .requirement = rule.requirement};
    if (rule.requirement == Requirement::Cosign) {
      one.signers = signers_of(rule);
    }
    if (rule.requirement == Requirement::Yoke) {
      std::shared_ptr<modules::Verifier>& slot = verifiers[rule.keys.id()];
      if (!slot) {
        const auto verifier =
            std::make_shared<ModuleVerifier>(ModuleVerifier::Parts{.loop = parts.loop,
                                                                   .workers = parts.workers,
                                                                   .program = parts.program,
                                                                   .directory = parts.directory});
        verifier->use(rule.keys);
        slot = verifier;
      }
      one.verifier = slot;
    }
    return one;
  };
  std::vector<modules::PolicyRule> rules;
  for (const PolicyFile::Rule& rule : file.rules)
    rules.push_back(made(rule));
  return {std::move(rules), made(file.otherwise)};
}

}  // namespace hangar::signatures
