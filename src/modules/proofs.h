// Which requester may have which module: a source gave the module to this requester, with this
// credential, not long ago.
//
// Bytes are shared, the right to them is not: knowing a digest gives no right. The rule:
//   1. A proof is of one requester (a namespace), one source, one credential and one digest.
//   2. It is fresh for an hour. Then the source is asked again; what it confirms is fresh again.
//   3. When the source refuses (401, 403, 404), the requester's proofs with that credential there
//      are dropped: only pinned modules that this process has already given it keep running.
//   4. When the source gives no answer (no connection, 5xx, silence, other bytes), a proof that is
//      not fresh still counts: an outage of a registry stops nothing.
//      When the source was not asked, because the requester's other fetches or its memory are in
//      the way, it counts for another hour only: a requester that was refused must not be able to
//      keep its proof by keeping its own queue busy.
//   5. A copy of the module in the requester's own namespace is a proof, too: it has the bytes.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "modules/limits.h"
#include "modules/module_store.h"

#include <cstdint>
#include <string>

namespace hangar::modules {

// A requester's access to a source, with a credential.
struct Access {
  std::string requester;  // Requester::id().
  std::string name;       // The reference: the second half of a proof_key().
  std::string scope;  // The unit of access at the source: the repository of a registry; else the
                      // reference.
  std::string credential;  // Credential::id().
};

enum class Standing : std::uint8_t {
  None,   // There is no proof.
  Old,    // It counts only if the source was asked and did not answer.
  Stale,  // It counts until the source answers, asked or not.
  Fresh,
};

// Any thread. All but standing() block on the disk.
class Proofs {
 public:
  // `store` outlives it.
  explicit Proofs(ModuleStore& store, Duration kept = limits::kProofKept)
      : store_(store), kept_(kept) {}

  [[nodiscard]] Standing standing(const Access& access, const std::string& sha256,
                                  WallTime now) const;
  // The same for what the store remembers of the reference: an entry of proof_key().
  [[nodiscard]] Standing standing(const Access& access, const Resolution& resolution,
                                  WallTime now) const;

  // Remembers that the source has given the module, whatever the reference comes to mean later. It
  // counts from when the source was last asked; without that, nothing is remembered. `sha256` may
  // be the digest of a module that was made of the one that the source gave.
  [[nodiscard]] Result<> grant(const Access& access, const std::string& sha256) const;
  // Remembers that the requester has the bytes.
  [[nodiscard]] Result<> grant_copy(const Access& access, const std::string& sha256,
                                    WallTime now) const;

  // The source has refused this credential. True if there was anything to drop.
  [[nodiscard]] Result<bool> drop(const Access& access) const;

  [[nodiscard]] static std::uint64_t seconds_of(WallTime now);

 private:
  ModuleStore& store_;
  const Duration kept_;
};

}  // namespace hangar::modules
