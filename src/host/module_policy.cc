#include "host/module_policy.h"

#include "base/invalid.h"
#include "base/result.h"
#include "host/module_verifier.h"
#include "io/file.h"
#include "json/value.h"
#include "json/yaml.h"
#include "modules/cosign.h"
#include "modules/module_policy.h"
#include "modules/verifier.h"
#include "schematics/key_files.h"
#include "schematics/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::host {

namespace {

// Keys in the file are some hundred bytes each.
constexpr std::uint64_t kPolicyBytesMax = std::uint64_t{1024} * 1024;
// Each lookup of a module compares all of them.
constexpr std::size_t kRulesMax = 256;

using Requirement = modules::Requirement;
constexpr std::array<std::pair<std::string_view, Requirement>, 4> kRequirements = {{
    {"cosign", Requirement::Cosign},
    {"yoke", Requirement::Yoke},
    {"none", Requirement::Nothing},
    {"deny", Requirement::Deny},
}};

bool needs_keys(Requirement requirement) {
  return requirement == Requirement::Cosign || requirement == Requirement::Yoke;
}

// The object at a path of the document, which has no other members than these.
Result<const json::Object*> object_with(const json::Value& value, std::string_view path,
                                        const std::vector<std::string_view>& members) {
  const json::Object* const object = value.if_object();
  if (object == nullptr) return invalid(fmt::format("{}: must be a mapping", path));
  for (const auto& member : *object) {
    if (std::ranges::find(members, std::string_view(member.key())) != members.end()) continue;
    const std::string_view key = member.key();
    return invalid(path.empty() ? fmt::format("{}: unknown field", key)
                                : fmt::format("{}.{}: unknown field", path, key));
  }
  return object;
}

Result<std::string> text_at(const json::Object& object, std::string_view key,
                            std::string_view path) {
  const json::Value* const value = object.if_contains(key);
  if (value == nullptr) return invalid(fmt::format("{}.{}: is missing", path, key));
  if (!value->is_string()) return invalid(fmt::format("{}.{}: must be a string", path, key));
  return std::string(value->get_string());
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
  // A directory that is not mounted yet must not pass for one without keys.
  if (keys.size() == 0) return invalid(fmt::format("{} has no key (*.pem)", text));
  return keys;
}

Result<schematics::PublicKeys> keys_at(const json::Object& object, std::string_view path,
                                       const std::filesystem::path& directory) {
  const json::Value* const value = object.if_contains("keys");
  const json::Array* const list = value == nullptr ? nullptr : value->if_array();
  if (list == nullptr || list->empty()) {
    return invalid(fmt::format(
        "{}.keys: must be a list of files and directories with public keys, or of keys in PEM",
        path));
  }
  schematics::PublicKeys keys;
  for (std::size_t at = 0; at < list->size(); ++at) {
    const std::string where = fmt::format("{}.keys[{}]", path, at);
    if (!(*list)[at].is_string()) return invalid(where + ": must be a string");
    const Result<schematics::PublicKeys> more =
        load_keys(std::string((*list)[at].get_string()), directory);
    if (!more) return std::unexpected(Error(more.error()).in(where));
    Result<> added = keys.add(*more);
    if (!added) return std::unexpected(std::move(added).error().in(where));
  }
  return keys;
}

Result<PolicyFile::Rule> rule_in(const json::Object& object, const std::string& path,
                                 const std::filesystem::path& directory) {
  PolicyFile::Rule rule;
  const std::string text = HANGAR_TRY(text_at(object, "require", path));
  const auto* const found = std::ranges::find(kRequirements, std::string_view(text),
                                              [](const auto& entry) { return entry.first; });
  if (found == kRequirements.end()) {
    return invalid(
        fmt::format("{}.require: \"{}\" is not one of cosign, yoke, none, deny", path, text));
  }
  rule.requirement = found->second;
  if (needs_keys(rule.requirement)) {
    rule.keys = HANGAR_TRY(keys_at(object, path, directory));
  } else if (object.if_contains("keys") != nullptr) {
    return invalid(fmt::format("{}.keys: has no meaning with require: {}", path, text));
  }
  return rule;
}

Result<PolicyFile::Rule> prefixed_rule(const json::Value& value, const std::string& path,
                                       const std::filesystem::path& directory) {
  const json::Object* const object =
      HANGAR_TRY(object_with(value, path, {"prefix", "require", "keys"}));
  const std::string text = HANGAR_TRY(text_at(*object, "prefix", path));
  const Result<std::string> prefix = modules::policy_prefix(text);
  if (!prefix) {
    return invalid(fmt::format("{}.prefix: \"{}\" {}", path, text, prefix.error().message()));
  }
  PolicyFile::Rule rule = HANGAR_TRY(rule_in(*object, path, directory));
  if (rule.requirement == Requirement::Cosign && !prefix->starts_with("oci://")) {
    return invalid(fmt::format(
        "{}.require: cosign signs artifacts in registries: the prefix must begin with oci://",
        path));
  }
  rule.prefix = *prefix;
  return rule;
}

class CosignKeys final : public modules::Signers {
 public:
  explicit CosignKeys(schematics::PublicKeys keys) : keys_(std::move(keys)) {}

  [[nodiscard]] std::string id() const override { return keys_.id(); }
  [[nodiscard]] bool have_signed(std::string_view bytes,
                                 std::string_view signature) const override {
    return keys_.has_signed_bytes(bytes, signature);
  }

 private:
  const schematics::PublicKeys keys_;
};

}  // namespace

Result<PolicyFile> parse_module_policy(std::string_view text,
                                       const std::filesystem::path& directory) {
  const json::Value document = HANGAR_TRY(json::parse_yaml(text));
  if (!document.is_object()) return invalid("must be a mapping with rules and default");
  const json::Object* const object = HANGAR_TRY(object_with(document, "", {"rules", "default"}));
  PolicyFile file;
  const json::Value* const rules = object->if_contains("rules");
  const json::Array* const list = rules == nullptr ? nullptr : rules->if_array();
  if (list == nullptr) return invalid("rules: must be a list of rules");
  if (list->size() > kRulesMax) return invalid(fmt::format("rules: more than {}", kRulesMax));
  std::set<std::string> prefixes;
  for (std::size_t at = 0; at < list->size(); ++at) {
    const std::string path = fmt::format("rules[{}]", at);
    PolicyFile::Rule rule = HANGAR_TRY(prefixed_rule((*list)[at], path, directory));
    if (!prefixes.insert(rule.prefix).second) {
      return invalid(fmt::format("{}.prefix: there is another rule for {}", path, rule.prefix));
    }
    file.rules.push_back(std::move(rule));
  }
  const json::Value* const otherwise = object->if_contains("default");
  if (otherwise == nullptr) {
    return invalid(
        "default: is missing: what modules need that no rule is for, such as require: "
        "none");
  }
  const json::Object* const rest =
      HANGAR_TRY(object_with(*otherwise, "default", {"require", "keys"}));
  file.otherwise = HANGAR_TRY(rule_in(*rest, "default", directory));
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
      one.signers = std::make_shared<CosignKeys>(rule.keys);
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

}  // namespace hangar::host
