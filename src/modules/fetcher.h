// Fetches modules by reference, decompresses, checks and stores them; later checks whether they
// have changed without another download.
//
// The fetcher asks the source each time, because tags and URLs are mutable, unless the reference
// promises the digest of a module that its source gave the same requester within the last hour.
// Sources can confirm cheaply that nothing has changed (ETag, manifest digest, resourceVersion);
// then the bytes come from the store, or are not needed at all. A requester gets a module only if
// its own source gives it (proofs.h): knowing the digest is not enough, nor that the bytes are here
// for another requester.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/reservation_queue.h"
#include "http/address_policy.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "io/workers.h"
#include "modules/config_map.h"
#include "modules/cosign.h"
#include "modules/docker_config.h"
#include "modules/limits.h"
#include "modules/module_store.h"
#include "modules/proofs.h"
#include "modules/reference.h"
#include "modules/requester.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

class FetchMemory;

// The reason of an error: the source itself refuses access to the module (proofs.h).
inline constexpr std::string_view kRefused = "Refused";

struct FetchOptions {
  // The digest of the uncompressed module, from the spec's checksum field; empty: what the
  // reference itself promises, if anything.
  std::string expected_sha256;
  // The module that the caller already has. If it is still current, Fetched has no bytes.
  std::string have_sha256;
  // Does not verify https; for oci, plain http is allowed, too.
  bool insecure = false;
  Content content = Content::Module;
  // Fetched has no bytes if the store has them: the caller reads them when it needs them.
  bool leave_in_store = false;
  // If the source cannot be reached, return the module that it last gave this requester.
  bool may_be_stale = true;
  // Downloads the module even if it is stored.
  bool afresh = false;
  // Called with the current activity, for people: "fetching, 3.1 of 16.0 MiB".
  std::function<void(std::string doing)> on_progress = {};
  // Called when the fetch no longer waits for this host: from then on, only the source has yet to
  // answer.
  std::function<void()> on_turn = {};
};

struct Fetched {
  std::string wasm;  // The uncompressed module or the text of a script; empty when `is_unchanged`
                     // or left in the store.
  std::string sha256;
  std::uint64_t size_bytes = 0;
  std::string resolved;       // The exact source: "oci://registry/repository@sha256:...".
  std::string manifest;       // The digest of the manifest that an oci:// reference resolved to.
  bool is_unchanged = false;  // The module is FetchOptions::have_sha256.
  std::string stale_because;  // Why the source did not answer; empty when it did.
};

// Concurrent fetches of one tenant. A slow server holds its slot as long as a download may take, so
// a tenant has few slots.
inline constexpr std::size_t kFetchesPerTenantMax = 3;

// Loop thread; decompression, hashing and disk access run on workers.
class Fetcher {
 public:
  // All of these outlive the Fetcher.
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    http::Client& client;
    ModuleStore& store;
    // Null: configmap:// is refused.
    ConfigMapReader* config_maps = nullptr;
    // Reserves, for the requester, the memory that a fetch holds; null: no accounting.
    budget::ReservationQueue* memory = nullptr;
    // Whether references may name files of this machine: on the command line, where the user writes
    // them, but not in a host that reads references from a cluster.
    bool may_read_files = false;
    // The CAs to trust instead of the system's; empty: the system's.
    std::string ca_pem;
    // The addresses that URLs named by a tenant may reach.
    http::AddressPolicy tenant_addresses = http::AddressPolicy::public_only();
    Duration proof_kept = limits::kProofKept;
    // How long a requester waits for another one that fetches the same reference, before it
    // downloads the module itself.
    Duration patience = limits::kFetchPatience;
    Log log = {};
  };

  explicit Fetcher(Parts parts);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // For registries, from the next fetch on. There are none at first.
  void use_credentials(DockerConfig config) {
    credentials_ = std::move(config);
    ++proofs_generation_;
  }

  // The maximum number of concurrent fetches of a namespace, where it is lower than usual.
  void limit_tenants(std::function<std::size_t(const budget::Tenant&)> most) {
    fetches_.limit_tenants(std::move(most));
  }
  struct Use {
    std::size_t under_way = 0;
    std::size_t waiting = 0;
  };
  [[nodiscard]] Use use_of(const budget::Tenant& tenant) const {
    return {.under_way = fetches_.held_count(tenant), .waiting = fetches_.waiting_count(tenant)};
  }

  // Guarantees: the bytes have the promised digest. One task at a time fetches a reference, so a
  // module that many requesters want is downloaded once; for each further requester the source only
  // has to confirm it.
  // Errors, each naming the reference:
  //   InvalidInput   not a module, not the promised digest, cut off, a manifest without a module
  //   NotFound       no such file, tag, key
  //   Denied         credentials missing or wrong, the kind of source or its address is not allowed
  //                  here, a ConfigMap that the requester may not name
  //   Unavailable    the source cannot be reached and nothing is stored for it
  //   LimitExceeded  larger than limits::kFetchedBytesMax, compressed or not, or than the memory or
  //                  the disk of the requester
  //   Cancelled
  // The log has the reason; a tenant learns only that a source did not answer, because the reason
  // would help it to explore networks that it cannot reach itself.
  [[nodiscard]] io::Task<Result<Fetched>> fetch(Requester requester, Reference reference,
                                                FetchOptions options, std::stop_token stop);

  // Whether the requester may have that module of that reference, as far as is known without a
  // request to the source.
  [[nodiscard]] Standing standing(const Requester& requester, const Reference& reference,
                                  bool insecure, const std::string& sha256) const;
  // Changes when a proof was dropped, or when credentials changed: earlier results of standing()
  // are then void.
  [[nodiscard]] std::uint64_t proofs_generation() const { return proofs_generation_; }
  [[nodiscard]] Duration proof_kept() const { return proof_kept_; }
  // Proofs::grant(), after a fetch of that reference.
  [[nodiscard]] io::Task<void> grant(Requester requester, Reference reference, bool insecure,
                                     std::string sha256);
  // Stores a copy that the requester itself has, gzipped or not. Corrupt when its bytes are not
  // those of the digest, or more than `bytes_max`.
  [[nodiscard]] io::Task<Result<>> accept_copy(Requester requester, Reference reference,
                                               bool insecure, std::string sha256, std::string copy,
                                               std::uint64_t bytes_max);
  // Drops the requester's proofs for that source, because the source refused access.
  [[nodiscard]] io::Task<void> drop(Requester requester, Reference reference, bool insecure);

  // Finds a signature by cosign for the manifest with that digest, in the repository of the
  // reference, which is of an OCI source. Errors, each naming the reference: Denied when there is
  // no signature by one of the keys; else as for fetch().
  [[nodiscard]] io::Task<Result<VerifiedProof>> find_proof(Requester requester, Reference reference,
                                                           bool insecure, std::string manifest,
                                                           std::shared_ptr<const Signers> signers,
                                                           std::stop_token stop);
  // True when this process has unpacked a blob with that digest to that module.
  [[nodiscard]] bool has_unpacked(const std::string& blob_digest, const std::string& sha256) const;

  // What the source last gave this requester, if it fits the options and the store still has it.
  [[nodiscard]] std::optional<Resolution> known(const Requester& requester,
                                                const Reference& reference,
                                                const FetchOptions& options) const;
  // The digest that a fetch will probably return; empty: unknown. It is a guess and does not give a
  // right to the module.
  [[nodiscard]] std::string likely_sha256(const Requester& requester, const Reference& reference,
                                          const FetchOptions& options) const;

 private:
  // What a source returned: the bytes as received, or the confirmation that nothing has changed.
  struct Download {
    bool is_unchanged = false;
    std::string bytes;
    std::string blob_digest;  // The digest that `bytes` must have; empty: none was given.
    Resolution resolution;    // Without sha256 and size.
  };

  // Denied for a reference that the requester may not use. Called before any lookup.
  [[nodiscard]] static Result<> check_access(const Requester& requester,
                                             const Reference& reference);
  // What the reference meant when its source last answered.
  struct Known {
    std::string key;
    std::optional<Resolution> own;     // For this requester: the proof that it may have the module.
    std::optional<Resolution> latest;  // For any requester: what the source may call unchanged.
  };
  // Nothing if the turn does not come within the patience.
  [[nodiscard]] io::Task<Result<std::optional<io::Turns<std::string>::Turn>>> turn_of(
      std::string name, std::stop_token stop);
  io::Task<Result<Fetched>> fetch_in_turn(Requester requester, Reference reference,
                                          FetchOptions options, FetchMemory& memory,
                                          std::stop_token stop);
  io::Task<Result<Fetched>> fetch_alone(Requester requester, Reference reference,
                                        FetchOptions options, Known known, FetchMemory& memory,
                                        std::stop_token stop);
  [[nodiscard]] Access access_of(const Requester& requester, const Reference& reference,
                                 bool insecure) const;
  io::Task<void> drop_proofs(budget::Consumer whose, Access access, std::string module);
  io::Task<void> remember(budget::Consumer whose, std::string key, Resolution resolution);
  io::Task<Result<Fetched>> from_store(budget::Consumer whose, Resolution resolution,
                                       FetchOptions options);
  io::Task<Result<Fetched>> accept(budget::Consumer whose, Download download,
                                   std::optional<std::string> expected, FetchOptions options,
                                   std::string key, FetchMemory& memory);

  io::Task<Result<Download>> download(Requester requester, Reference reference,
                                      std::optional<Resolution> known, FetchOptions options,
                                      FetchMemory& memory, std::stop_token stop);
  io::Task<Result<Download>> download_http(Requester requester, Reference reference,
                                           std::optional<Resolution> known, FetchOptions options,
                                           FetchMemory& memory, std::stop_token stop);
  // One attempt of find_proof(). LimitExceeded when `memory` is short.
  io::Task<Result<VerifiedProof>> find_proof_once(Requester requester, OciSource source,
                                                  bool insecure, std::string manifest,
                                                  std::shared_ptr<const Signers> signers,
                                                  FetchMemory& memory, std::stop_token stop);
  io::Task<Result<Download>> download_oci(Requester requester, OciSource source,
                                          std::optional<Resolution> known, FetchOptions options,
                                          FetchMemory& memory, std::stop_token stop);
  io::Task<Result<Download>> download_config_map(ConfigMapAccess access, ConfigMapSource source,
                                                 std::optional<Resolution> known, Content wanted,
                                                 std::stop_token stop);
  io::Task<Result<Download>> download_file(budget::Consumer whose, FileSource source,
                                           std::optional<Resolution> known);

  struct Transports {
    Transports(const std::string& ca_pem, const http::AddressPolicy& addresses);
    std::shared_ptr<const http::Transport> verified;
    std::shared_ptr<const http::Transport> unverified;
  };
  [[nodiscard]] const std::shared_ptr<const http::Transport>& transport(const Requester& requester,
                                                                        bool insecure) const;
  // The error as the requester may see it.
  [[nodiscard]] Error told(const Requester& requester, const std::string& module,
                           Error error) const;

  io::Loop& loop_;
  io::Workers& workers_;
  http::Client& client_;
  ModuleStore& store_;
  ConfigMapReader* const config_maps_;
  budget::ReservationQueue* const memory_;
  const bool may_read_files_;
  const Log log_;
  const Transports admin_transports_;
  const Transports tenant_transports_;
  const Transports public_transports_;  // For tenants that may reach only public addresses.
  DockerConfig credentials_;
  const Duration proof_kept_;
  const Duration patience_;
  const Proofs proofs_;
  std::uint64_t proofs_generation_ = 0;
  std::map<std::string, std::string> unpacked_;  // From the digest of a blob to that of its module.
  budget::FairSlots fetches_;
  io::Turns<std::string> turns_;  // By key.
  io::Turns<std::string> names_;  // By reference, for all requesters.
};

}  // namespace hangar::modules
