// Admits the modules that meet the module policy's rule for their reference.
//
// The gate admits bytes: the digest of a module, under a rule. For cosign that takes a proof
// (cosign.h), which leads from a signature by the rule's keys over the digest of a manifest to the
// digest of a layer, and from there to the module. Verdicts are in memory only. Proofs are also on
// disk, so that a host that restarts during an outage of a registry continues; each proof is
// verified again with the current keys when it is read, so write access to the directory forges
// nothing.
//
// Loop thread.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "budget/reservation_queue.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/cosign.h"
#include "modules/fetcher.h"
#include "modules/module_policy.h"
#include "modules/module_store.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/verifier.h"

#include <compare>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

// The reason of an error: the store's bytes cannot be compared with the signed layer, but those of
// a new download can.
inline constexpr std::string_view kNeedsDownload = "NeedsDownload";

class SignatureGate {
 public:
  // All of these outlive the gate.
  struct Parts {
    io::Workers& workers;
    Fetcher& fetcher;
    ModuleStore& store;  // The fetcher's.
    // Reserves memory for bytes that are read for a comparison; null: no accounting.
    budget::ReservationQueue* memory = nullptr;
    std::filesystem::path directory;  // For proofs. Private to this user.
    Log log = {};
  };
  SignatureGate(Parts parts, ModulePolicy policy);

  // Denied when no module from there may run, whatever its bytes are.
  [[nodiscard]] Result<> check(const Reference& reference) const;

  [[nodiscard]] bool requires_nothing(const Reference& reference) const;
  // "module policy: the rule for ... requires ...", for people.
  [[nodiscard]] std::string rule_for(const Reference& reference) const;
  // The verifier that has to approve the module's bytes; null: no verifier.
  [[nodiscard]] Verifier* verifier_for(const Reference& reference) const;

  // True when the module is known to meet the rule. Immediate.
  [[nodiscard]] bool is_admitted(const Reference& reference, const std::string& sha256) const;

  // Whether the module meets the rule as far as this host knows: by verdicts and stored proofs.
  // Sends no request to a source, and ignores what verifier_for() has to approve. Denied.
  [[nodiscard]] io::Task<Result<>> recall(budget::Consumer whose, Reference reference,
                                          std::string sha256, std::stop_token stop);

  // The same for a module that a source has just given; looks for signatures in the source if
  // necessary. `manifest` is the digest of the manifest that the source sent for the module; empty
  // for other sources. Denied, with a remedy; the reason is kNeedsDownload if a download may help.
  // Else the errors of Fetcher::find_proof().
  struct Given {
    Requester requester;
    Reference reference;
    bool insecure = false;
    std::string manifest;
    std::string sha256;
  };
  [[nodiscard]] io::Task<Result<>> admit(Given given, std::stop_token stop);

  // Notes the module `sha256`, joined from two that were each admitted for their reference (or the
  // first alone).
  void note_joined(const Reference& module, const Reference& plugin, const std::string& sha256);
  [[nodiscard]] bool is_joined(const Reference& module, const Reference& plugin,
                               const std::string& sha256) const;

 private:
  // The rule, if it lets any module from there run; else as check().
  [[nodiscard]] Result<std::size_t> find(const Reference& reference) const;
  [[nodiscard]] std::filesystem::path path_of(const PolicyRule& rule,
                                              const std::string& sha256) const;
  [[nodiscard]] io::Task<std::optional<CosignProof>> read_proof(budget::Consumer whose,
                                                                const PolicyRule& rule,
                                                                const std::string& sha256);
  [[nodiscard]] io::Task<void> keep_proof(budget::Consumer whose, const PolicyRule& rule,
                                          const std::string& sha256, CosignProof proof);
  // Whether the stored bytes of the module are those of that layer.
  [[nodiscard]] io::Task<Result<bool>> is_layer(budget::Consumer whose, std::string layer,
                                                std::string sha256, std::stop_token stop);
  void note(std::size_t rule, const std::string& sha256);
  // Denied.
  [[nodiscard]] static std::unexpected<Error> refused(const PolicyRule& rule, std::string why);

  const Parts parts_;
  const ModulePolicy policy_;
  std::set<std::pair<std::size_t, std::string>> admitted_;  // By rule, for Cosign.
  struct Joined {
    std::size_t module_rule = 0;
    std::size_t plugin_rule = 0;
    std::string sha256;
    auto operator<=>(const Joined&) const = default;
  };
  std::set<Joined> joined_;
};

}  // namespace hangar::modules
