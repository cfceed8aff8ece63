// Searches a registry for a proof that cosign signed an artifact.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/cosign.h"
#include "modules/internal/fetch_memory.h"
#include "modules/internal/registry.h"

#include <memory>
#include <stop_token>
#include <string>

namespace hangar::modules {

// A proof for the manifest with that digest. The search requests the referrers first, then the tags
// that cosign and registries without an API for referrers use. Errors: Denied when there is no
// signature by one of the keys, with the reason; else as for Registry. LimitExceeded
// when `memory` is short of what a document of the registry needs to be read. Signatures are
// verified by `workers`. All three outlive the task.
[[nodiscard]] io::Task<Result<VerifiedProof>> find_proof(Registry& registry, io::Workers& workers,
                                                         budget::Consumer whose, std::string digest,
                                                         std::shared_ptr<const Signers> signers,
                                                         FetchMemory& memory, std::stop_token stop);

}  // namespace hangar::modules
