#include "modules/signature_gate.h"

#include "base/digest.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/file.h"
#include "io/task.h"
#include "modules/cosign.h"
#include "modules/fetcher.h"
#include "modules/limits.h"
#include "modules/module_policy.h"
#include "modules/module_store.h"
#include "modules/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::modules {

namespace {

// A manifest of a module has some hundred bytes, a bundle some kilobytes.
constexpr std::uint64_t kProofBytesMax = limits::kMiB;
// Proofs on disk. Beyond this number, the oldest are removed: their registries are asked again.
constexpr std::size_t kProofsMax = 1024;
// Copies of a module in memory: the compressed one and its content.
constexpr std::uint64_t kCopiesRead = 2;

// Blocking.
Result<> write_proof(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path directory = path.parent_path();
  HANGAR_TRY(io::make_private_directory(directory));
  std::error_code ignored;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> present;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    present.emplace_back(entry.last_write_time(ignored), entry.path());
  if (present.size() >= kProofsMax) {
    std::ranges::sort(present);
    // Removes a quarter, so that the next proofs need no clean-up.
    present.resize(present.size() - kProofsMax + kProofsMax / 4);
    for (const auto& [time, old] : present)
      std::filesystem::remove(old, ignored);
  }
  // A proof is verified again when it is read.
  return io::write_file(path, text, io::Durability::None);
}

}  // namespace

SignatureGate::SignatureGate(Parts parts, ModulePolicy policy)
    : parts_(std::move(parts)), policy_(std::move(policy)) {}

std::unexpected<Error> SignatureGate::refused(const PolicyRule& rule, std::string why) {
  return std::unexpected(
      Error(ErrorKind::Denied, std::move(why)).in("module policy: " + describe(rule)));
}

Result<> SignatureGate::check(const Reference& reference) const {
  const Result<std::size_t> rule = find(reference);
  if (!rule) return std::unexpected(rule.error());
  return {};
}

Result<std::size_t> SignatureGate::find(const Reference& reference) const {
  const std::size_t index = HANGAR_TRY(policy_.find(reference));
  const PolicyRule& rule = policy_.rule(index);
  if (rule.requirement == Requirement::Deny) {
    return fail(ErrorKind::Denied,
                fmt::format("module {}: module policy: {}", reference.display(), describe(rule)));
  }
  const bool is_oci = std::holds_alternative<OciSource>(reference.source());
  if (rule.requirement == Requirement::Cosign && !is_oci) {
    Result<> denied = refused(rule,
                              "only modules in registries have one: push it, sign it and name "
                              "it as oci://");
    return std::unexpected(std::move(denied).error().in("module " + reference.display()));
  }
  return index;
}

bool SignatureGate::requires_nothing(const Reference& reference) const {
  const Result<std::size_t> index = policy_.find(reference);
  return index && policy_.rule(*index).requirement == Requirement::Nothing;
}

std::string SignatureGate::rule_for(const Reference& reference) const {
  const Result<std::size_t> index = policy_.find(reference);
  return index ? "module policy: " + describe(policy_.rule(*index)) : index.error().message();
}

Verifier* SignatureGate::verifier_for(const Reference& reference) const {
  const Result<std::size_t> index = policy_.find(reference);
  return index ? policy_.rule(*index).verifier.get() : nullptr;
}

bool SignatureGate::is_admitted(const Reference& reference, const std::string& sha256) const {
  const Result<std::size_t> index = find(reference);
  if (!index) return false;
  const PolicyRule& rule = policy_.rule(*index);
  switch (rule.requirement) {
    case Requirement::Nothing:
      return true;
    case Requirement::Cosign:
      return admitted_.contains({*index, sha256});
    case Requirement::Yoke: {
      const std::optional<Result<>> verdict = rule.verifier->verdict(sha256);
      return verdict && *verdict;
    }
    case Requirement::Deny:
      return false;
  }
  return false;
}

io::Task<Result<>> SignatureGate::recall(budget::Consumer whose, Reference reference,
                                         std::string sha256, std::stop_token stop) {
  const std::size_t index = HANGAR_CO_TRY(find(reference));
  const PolicyRule& rule = policy_.rule(index);
  if (rule.requirement != Requirement::Cosign || admitted_.contains({index, sha256})) {
    co_return Result<>();
  }
  if (std::optional<CosignProof> proof = co_await read_proof(whose, rule, sha256)) {
    Result<std::string> layer =
        co_await parts_.workers.run(whose, [proof = *std::move(proof), signers = rule.signers] {
          return verify_proof(proof, *signers);
        });
    if (layer && HANGAR_CO_TRY(co_await is_layer(std::move(whose), *std::move(layer), sha256,
                                                 std::move(stop)))) {
      note(index, sha256);
      co_return Result<>();
    }
  }
  co_return refused(rule, fmt::format("this host knows of none for sha256:{}", sha256));
}

io::Task<Result<>> SignatureGate::admit(Given given, std::stop_token stop) {
  const budget::Consumer whose = given.requester.consumer("signature");
  const Result<> known = co_await recall(whose, given.reference, given.sha256, stop);
  if (known) co_return known;
  const std::size_t index = HANGAR_CO_TRY(find(given.reference));
  const PolicyRule& rule = policy_.rule(index);
  constexpr std::string_view kPrefix = "sha256:";
  // The manifest's digest may come from the store, and its disk may be damaged.
  if (!given.manifest.starts_with(kPrefix) ||
      !is_sha256_hex(std::string_view(given.manifest).substr(kPrefix.size()))) {
    Result<> denied = refused(rule, "the digest of the module's manifest is not known");
    co_return std::unexpected(std::move(denied).error().with_reason(std::string(kNeedsDownload)));
  }
  Result<VerifiedProof> found = co_await parts_.fetcher.find_proof(
      given.requester, given.reference, given.insecure, given.manifest, rule.signers, stop);
  if (!found) {
    const ErrorKind kind = found.error().kind();
    co_return std::unexpected(
        Error(kind, found.error().message()).in("module policy: " + describe(rule)));
  }
  if (!HANGAR_CO_TRY(
          co_await is_layer(whose, std::move(found->layer), given.sha256, std::move(stop)))) {
    Result<> denied = refused(
        rule, fmt::format("the module is not the layer of the signed manifest {}", given.manifest));
    co_return std::unexpected(std::move(denied).error().with_reason(std::string(kNeedsDownload)));
  }
  note(index, given.sha256);
  co_await keep_proof(whose, rule, given.sha256, std::move(found->proof));
  co_return Result<>();
}

void SignatureGate::note(std::size_t rule, const std::string& sha256) {
  if (admitted_.size() >= limits::kModuleReferencesMax) admitted_.clear();  // Proven again.
  admitted_.emplace(rule, sha256);
}

void SignatureGate::note_joined(const Reference& module, const Reference& plugin,
                                const std::string& sha256) {
  const Result<std::size_t> module_rule = policy_.find(module);
  const Result<std::size_t> plugin_rule = policy_.find(plugin);
  if (!module_rule || !plugin_rule) return;
  if (joined_.size() >= limits::kModuleReferencesMax) joined_.clear();  // Their sources are asked.
  joined_.insert({.module_rule = *module_rule, .plugin_rule = *plugin_rule, .sha256 = sha256});
}

bool SignatureGate::is_joined(const Reference& module, const Reference& plugin,
                              const std::string& sha256) const {
  const Result<std::size_t> module_rule = policy_.find(module);
  const Result<std::size_t> plugin_rule = policy_.find(plugin);
  return module_rule && plugin_rule &&
         joined_.contains(
             {.module_rule = *module_rule, .plugin_rule = *plugin_rule, .sha256 = sha256});
}

std::filesystem::path SignatureGate::path_of(const PolicyRule& rule,
                                             const std::string& sha256) const {
  return parts_.directory / fmt::format("{}-{}.json", sha256, rule.signers->id());
}

io::Task<std::optional<CosignProof>> SignatureGate::read_proof(budget::Consumer whose,
                                                               const PolicyRule& rule,
                                                               const std::string& sha256) {
  co_return co_await parts_.workers.run(
      std::move(whose), [path = path_of(rule, sha256)]() -> std::optional<CosignProof> {
        const Result<std::string> text = io::read_file(path, kProofBytesMax);
        if (!text) return std::nullopt;
        Result<CosignProof> proof = parse_proof(*text);
        if (!proof) return std::nullopt;
        return *std::move(proof);
      });
}

io::Task<void> SignatureGate::keep_proof(budget::Consumer whose, const PolicyRule& rule,
                                         const std::string& sha256, CosignProof proof) {
  const Result<> kept = co_await parts_.workers.run(
      std::move(whose), [path = path_of(rule, sha256), proof = std::move(proof)]() -> Result<> {
        const std::string text = to_text(proof);
        // The registry is asked again after a restart.
        if (text.size() > kProofBytesMax) return {};
        return write_proof(path, text);
      });
  if (!kept) {
    parts_.log.warning("proof of a signature not stored",
                       {{"module", "sha256:" + sha256}, {"error", kept.error().message()}});
  }
}

io::Task<Result<bool>> SignatureGate::is_layer(budget::Consumer whose, std::string layer,
                                               std::string sha256, std::stop_token stop) {
  if (layer == "sha256:" + sha256 || parts_.fetcher.has_unpacked(layer, sha256)) co_return true;
  // After a restart: the store has the gzip that the source sent, unless it already had another
  // one.
  std::optional<budget::Reservation> memory;
  if (parts_.memory != nullptr) {
    const std::uint64_t size = co_await parts_.workers.run(
        whose, [&store = parts_.store, sha256] { return store.unpacked_bytes(sha256); });
    memory = HANGAR_CO_TRY(
        co_await parts_.memory->reserve({.tenant = budget::Tenant::host(), .name = "modules"},
                                        kCopiesRead * size, std::move(stop)));
  }
  co_return co_await parts_.workers.run(
      std::move(whose), [&store = parts_.store, layer = std::move(layer), sha256] {
        const Result<std::string> packed = store.read_packed(sha256);
        return packed && "sha256:" + sha256_hex(*packed) == layer;
      });
}

}  // namespace hangar::modules
