#include "modules/internal/proof_search.h"

#include "base/digest.h"
#include "base/result.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "modules/cosign.h"
#include "modules/internal/fetch_memory.h"
#include "modules/internal/registry.h"
#include "modules/oci_manifest.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::modules {

namespace {

// The signature is absent, in one of the ways in which registries say so: some have no API for
// referrers, or permit nobody to use it. An outage proves nothing.
bool is_absent(const Error& error) {
  return error.kind() != ErrorKind::Unavailable && error.kind() != ErrorKind::Cancelled;
}

// One search. Used by one task.
class ProofSearch {
 public:
  ProofSearch(Registry& registry, io::Workers& workers, budget::Consumer whose, std::string digest,
              std::shared_ptr<const Signers> signers, FetchMemory& memory, std::stop_token stop)
      : registry_(registry),
        workers_(workers),
        whose_(std::move(whose)),
        digest_(std::move(digest)),
        signers_(std::move(signers)),
        memory_(memory),
        stop_(std::move(stop)) {}

  io::Task<Result<VerifiedProof>> run() {
    HANGAR_CO_TRY(co_await read_manifests());
    std::optional<std::string> index;
    Result<std::string> referrers = co_await registry_.referrers(digest_, stop_);
    if (referrers) {
      index = *std::move(referrers);
    } else if (!is_absent(referrers.error())) {
      co_return std::unexpected(std::move(referrers).error());
    } else {
      Result<Registry::Manifest> tagged =
          co_await registry_.manifest(referrers_tag(digest_), stop_);
      if (tagged) index = std::move(tagged->bytes);
      if (!tagged && !is_absent(tagged.error())) {
        co_return std::unexpected(std::move(tagged).error());
      }
    }
    if (index) {
      HANGAR_CO_TRY(count(*index));
      const Result<std::vector<Descriptor>> listed = co_await workers_.run(
          whose_, [bytes = *std::move(index)] { return read_referrers(bytes); });
      if (!listed) why_not_ = listed.error().message();
      for (const Descriptor& one : listed ? *listed : std::vector<Descriptor>())
        if (HANGAR_CO_TRY(co_await look_behind(one.digest))) co_return std::move(found_);
    }
    if (HANGAR_CO_TRY(co_await look_behind(signature_tag(digest_)))) co_return std::move(found_);
    co_return std::unexpected(not_found());
  }

 private:
  // Reserves the memory in which a document is parsed, besides that of the proof: a registry may
  // send a MiB of numbers, which takes 34 MiB.
  [[nodiscard]] Result<> count(std::string_view document) {
    return memory_.grow_to(proof_bytes_ + document.size() + json::parsed_bytes_max(document));
  }

  io::Task<Result<>> read_manifests() {
    Registry::Manifest manifest = HANGAR_CO_TRY(co_await registry_.manifest(digest_, stop_));
    HANGAR_CO_TRY(count(manifest.bytes));
    auto content = HANGAR_CO_TRY(
        co_await workers_.run(whose_, [bytes = manifest.bytes] { return read_manifest(bytes); }));
    proof_bytes_ += manifest.bytes.size();
    found_.proof.manifests.push_back(std::move(manifest.bytes));
    if (const auto* const inner = std::get_if<ModuleManifest>(&content)) {
      manifest = HANGAR_CO_TRY(co_await registry_.manifest(inner->manifest.digest, stop_));
      proof_bytes_ += manifest.bytes.size();
      // Verifying the proof parses it.
      HANGAR_CO_TRY(count(manifest.bytes));
      found_.proof.manifests.push_back(std::move(manifest.bytes));
    }
    co_return Result<>();
  }

  // `reference` is the digest or the tag of a manifest with signatures. True when one of them is a
  // proof.
  io::Task<Result<bool>> look_behind(std::string reference) {
    Result<Registry::Manifest> manifest = co_await registry_.manifest(std::move(reference), stop_);
    if (!manifest) {
      if (!is_absent(manifest.error())) co_return std::unexpected(std::move(manifest).error());
      if (manifest.error().kind() != ErrorKind::NotFound) why_not_ = manifest.error().message();
      co_return false;
    }
    // The tag often names one of the referrers.
    if (!seen_.insert(manifest->digest).second) co_return false;
    HANGAR_CO_TRY(count(manifest->bytes));
    Result<std::vector<ListedSignature>> listed = co_await workers_.run(
        whose_, [bytes = std::move(manifest->bytes)] { return read_signatures(bytes); });
    if (!listed) {
      why_not_ = listed.error().message();
      co_return false;
    }
    for (ListedSignature& one : *listed) {
      if (signature_count_ == kSignaturesMax) co_return false;
      ++signature_count_;
      if (HANGAR_CO_TRY(co_await is_proof(std::move(one)))) co_return true;
    }
    co_return false;
  }

  io::Task<Result<bool>> is_proof(ListedSignature listed) {
    Result<std::string> blob = co_await registry_.blob(listed.blob, {}, stop_);
    if (!blob) {
      if (!is_absent(blob.error())) co_return std::unexpected(std::move(blob).error());
      why_not_ = blob.error().message();
      co_return false;
    }
    HANGAR_CO_TRY(count(*blob));
    found_.proof.form = listed.form;
    found_.proof.blob = *std::move(blob);
    found_.proof.signature = std::move(listed.signature);
    found_.proof.annotations = std::move(listed.annotations);
    // A bundle may have many signatures, and a rule many keys.
    Result<std::string> layer = co_await workers_.run(
        whose_,
        [proof = found_.proof, digest = std::move(listed.blob.digest),
         signers = signers_]() -> Result<std::string> {
          if ("sha256:" + sha256_hex(proof.blob) != digest) {
            return fail(ErrorKind::InvalidInput,
                        fmt::format("the registry's bytes are not those of blob {}", digest));
          }
          return verify_proof(proof, *signers);
        });
    if (!layer) {
      why_not_ = layer.error().message();
      co_return false;
    }
    found_.layer = *std::move(layer);
    co_return true;
  }

  [[nodiscard]] Error not_found() const {
    if (signature_count_ == 0) {
      return {ErrorKind::Denied, fmt::format("no signature found for {}{}: {}", digest_,
                                             why_not_.empty() ? "" : fmt::format(" ({})", why_not_),
                                             signers_->advice())};
    }
    return {ErrorKind::Denied,
            fmt::format("none of the {}{} signatures found for {} counts, the last because {}: {}",
                        signature_count_ == kSignaturesMax ? "first " : "", signature_count_,
                        digest_, why_not_, signers_->advice())};
  }

  Registry& registry_;
  io::Workers& workers_;
  const budget::Consumer whose_;
  const std::string digest_;
  const std::shared_ptr<const Signers> signers_;
  FetchMemory& memory_;
  const std::stop_token stop_;
  VerifiedProof found_;
  std::uint64_t proof_bytes_ = 0;  // Of its manifests.
  std::set<std::string> seen_;     // Digests of manifests.
  std::size_t signature_count_ = 0;
  std::string why_not_;
};

}  // namespace

io::Task<Result<VerifiedProof>> find_proof(Registry& registry, io::Workers& workers,
                                           budget::Consumer whose, std::string digest,
                                           std::shared_ptr<const Signers> signers,
                                           FetchMemory& memory, std::stop_token stop) {
  ProofSearch search(registry, workers, std::move(whose), std::move(digest), std::move(signers),
                     memory, std::move(stop));
  co_return co_await search.run();
}

}  // namespace hangar::modules
