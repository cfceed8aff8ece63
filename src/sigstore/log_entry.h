// Entries of a transparency log for signatures (Rekor), and the proofs that the log contains them:
// its promise (signed entry timestamp), or an inclusion proof up to a signed checkpoint.
//
// An entry comes with the signature, so no network is needed. Only a promise proves the time,
// because the log signs it. Pure; any thread. The texts are untrusted; fuzzed.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "sigstore/trust_root.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::sigstore {

// Entries of one signature.
inline constexpr std::size_t kLogEntriesMax = 4;

struct InclusionProof {
  std::uint64_t index = 0;  // Index in the tree. The index of an entry counts all trees of a log.
  std::uint64_t tree_size = 0;
  std::vector<std::string> hashes;  // 32 bytes each, at most 64.
  std::string checkpoint;           // A signed note.
};

struct LogEntry {
  std::string log_id;  // 32 bytes.
  std::int64_t index = 0;
  std::int64_t integrated_time = 0;  // Seconds since 1970; only the promise proves it.
  std::string body;
  std::string promise;  // A signature; empty: none.
  std::optional<InclusionProof> proof;
};

// The signature that an entry has to be about.
struct LoggedSignature {
  std::string_view bytes;    // The signed bytes.
  std::string_view payload;  // Payload of a bundle's envelope; else empty.
  std::string_view signature;
  std::string_view certificate;  // In DER.
};

// The annotation dev.sigstore.cosign/bundle. InvalidInput.
[[nodiscard]] Result<LogEntry> read_annotated_entry(std::string_view text);
// The tlogEntries of a bundle's verificationMaterial; empty when there are none. InvalidInput.
[[nodiscard]] Result<std::vector<LogEntry>> read_bundled_entries(const json::Value& material);

// Checks that the log contains the entry, and returns the time if a promise proves it. There must
// be a promise or an inclusion proof, and each one that exists must be valid. Denied.
[[nodiscard]] Result<std::optional<WallTime>> verify_entry(const LogEntry& entry, const Log& log);

// Checks that the entry is about that signature. Denied; InvalidInput for an entry of another kind.
[[nodiscard]] Result<> check_entry(const LogEntry& entry, const LoggedSignature& signature);

// The root of a Merkle tree (RFC 6962) with `leaf` at the index of the proof; std::nullopt when the
// proof does not fit the tree.
[[nodiscard]] std::optional<std::string> root_of(const InclusionProof& proof,
                                                 std::string_view leaf);

}  // namespace hangar::sigstore
