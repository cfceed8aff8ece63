// Entries of a transparency log for signatures (Rekor), and what proves that the log has them: its
// promise (signed entry timestamp), or an inclusion proof up to a signed checkpoint.
//
// An entry comes with the signature, so nothing is asked over the network. Only a promise has the
// time: the log signs it. Pure; any thread. The texts are a stranger's; fuzzed.
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

// Of one signature.
inline constexpr std::size_t kLogEntriesMax = 4;

struct InclusionProof {
  std::uint64_t index = 0;  // In the tree. The index of an entry counts all trees of a log.
  std::uint64_t tree_size = 0;
  std::vector<std::string> hashes;  // 32 bytes each, at most 64.
  std::string checkpoint;           // A signed note.
};

struct LogEntry {
  std::string log_id;  // 32 bytes.
  std::int64_t index = 0;
  std::int64_t integrated_time = 0;  // Seconds since 1970; proven by the promise only.
  std::string body;
  std::string promise;  // A signature; empty: there is none.
  std::optional<InclusionProof> proof;
};

// What the log has to say of a signature.
struct LoggedSignature {
  std::string_view bytes;    // What the signature is over.
  std::string_view payload;  // Of a bundle's envelope; else empty.
  std::string_view signature;
  std::string_view certificate;  // In DER.
};

// The annotation dev.sigstore.cosign/bundle. InvalidInput.
[[nodiscard]] Result<LogEntry> read_annotated_entry(std::string_view text);
// The tlogEntries of a bundle's verificationMaterial; empty when there are none. InvalidInput.
[[nodiscard]] Result<std::vector<LogEntry>> read_bundled_entries(const json::Value& material);

// Whether that log has the entry, and since when, if it says so: the log has to prove it by a
// promise or by an inclusion proof, and whatever of them is there has to be right. Denied.
[[nodiscard]] Result<std::optional<WallTime>> verify_entry(const LogEntry& entry, const Log& log);

// Whether the entry is about that signature. Denied; InvalidInput for an entry of another kind.
[[nodiscard]] Result<> check_entry(const LogEntry& entry, const LoggedSignature& signature);

// The root of a Merkle tree (RFC 6962) with `leaf` at the place that the proof is for; nothing when
// the proof does not fit the tree.
[[nodiscard]] std::optional<std::string> root_of(const InclusionProof& proof,
                                                 std::string_view leaf);

}  // namespace hangar::sigstore
