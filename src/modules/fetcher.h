// Modules by reference: fetched, inflated, checked, kept; and looked at again without being fetched
// again.
//
// A reference is always asked for anew, because tags and URLs are mutable, unless it promises a
// digest of a module that its source gave the same requester before. Sources say "still the same"
// cheaply (ETag, manifest digest, resourceVersion); then the bytes come from the store, or are not
// needed at all. To know a digest, or that the bytes are here for another requester, gives nobody a
// module: its own source has to, at least once.
#pragma once

#include "base/log.h"
#include "base/result.h"
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
#include "modules/docker_config.h"
#include "modules/module_store.h"
#include "modules/reference.h"
#include "modules/requester.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::modules {

class FetchMemory;

struct FetchOptions {
  // Of the uncompressed module, as the spec's checksum field has it; empty: what the reference
  // itself promises, if anything.
  std::string expected_sha256;
  // The module that the caller has at hand. If it is still that one, Fetched has no bytes.
  std::string have_sha256;
  // https without verification; oci also over plain http.
  bool insecure = false;
  Content content = Content::Module;
  // Fetched has no bytes where the store has them: who needs them later reads them then.
  bool leave_in_store = false;
  // When the source cannot be reached, what it gave this requester last is an answer.
  bool may_be_stale = true;
  // What is done now, for people: "fetching, 3.1 of 16.0 MiB".
  std::function<void(std::string doing)> on_progress = {};
};

struct Fetched {
  std::string wasm;  // Uncompressed; the text of a script; empty when `is_unchanged`, or left.
  std::string sha256;
  std::uint64_t size_bytes = 0;
  std::string resolved;       // "oci://registry/repository@sha256:...": what exactly was fetched.
  bool is_unchanged = false;  // It is FetchOptions::have_sha256.
  std::string stale_because;  // Why the source could not be asked; empty when it was.
};

// Fetches of one tenant at the same time. A slow server holds its slot for as long as a download
// may take, so a tenant has few of them.
inline constexpr std::size_t kFetchesPerTenantMax = 3;

// Loop thread; inflating, hashing and the disk are the workers' business.
class Fetcher {
 public:
  // All outlive the Fetcher.
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    http::Client& client;
    ModuleStore& store;
    // Null: configmap:// is refused.
    ConfigMapReader* config_maps = nullptr;
    // Where a fetch reserves what it holds in memory, for its requester; null: nowhere.
    budget::ReservationQueue* memory = nullptr;
    // Whether references may name files of this machine: for the command line, where the user names
    // them, rather than for a host that reads references from a cluster.
    bool may_read_files = false;
    // The CAs to trust, in place of the system's; empty: those.
    std::string ca_pem;
    // What URLs may lead to that a tenant named.
    http::AddressPolicy tenant_addresses = http::AddressPolicy::public_only();
    Log log;
  };

  explicit Fetcher(Parts parts);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // For registries, from the next fetch on. Start with none.
  void use_credentials(DockerConfig config) { credentials_ = std::move(config); }

  // How many fetches of a namespace go on at a time, where that is less than of others.
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

  // Guarantees: the bytes have the promised digest. The same reference is fetched by one task at a
  // time, so what many want is downloaded once; for each further requester its source is asked.
  // Errors, each naming the reference:
  //   InvalidInput   not a module, not the promised digest, cut off, a manifest without a module
  //   NotFound       no such file, tag, key
  //   Denied         credentials missing or wrong, the kind of source or its address is not allowed
  //                  here, a ConfigMap that the requester may not name
  //   Unavailable    the source cannot be reached and nothing is stored for it
  //   LimitExceeded  larger than limits::kModuleBytesMax, compressed or not, or than the memory
  //   that
  //                  the requester may have
  //   Cancelled
  // Of a source that did not answer a tenant reads only that: the reason is in the log. It could
  // look around with it in networks that it cannot reach itself.
  [[nodiscard]] io::Task<Result<Fetched>> fetch(Requester requester, Reference reference,
                                                FetchOptions options, std::stop_token stop);

  // What the source gave this requester last, if that is what the options expect, and it is here.
  [[nodiscard]] std::optional<Resolution> known(const Requester& requester,
                                                const Reference& reference,
                                                const FetchOptions& options) const;
  // What a fetch is likely to end with; empty: no idea. It is a guess, and no right to the module.
  [[nodiscard]] std::string likely_sha256(const Requester& requester, const Reference& reference,
                                          const FetchOptions& options) const;

 private:
  // What a source gave: bytes as they came, or the news that nothing changed.
  struct Download {
    bool is_unchanged = false;
    std::string bytes;
    std::string blob_digest;  // What `bytes` have to hash to; empty: nobody said.
    Resolution resolution;    // Without sha256 and size.
  };

  // What the reference names, for that requester: nothing is looked up or said of it before.
  [[nodiscard]] static Result<> check_access(const Requester& requester,
                                             const Reference& reference);
  // What the reference was when it was last looked at.
  struct Known {
    std::string key;
    std::optional<Resolution> own;     // For this requester, whose proof it is.
    std::optional<Resolution> latest;  // For anybody: what the source may call unchanged.
  };
  io::Task<Result<Fetched>> fetch_in_turn(Requester requester, Reference reference,
                                          FetchOptions options, FetchMemory& memory,
                                          std::stop_token stop);
  io::Task<Result<Fetched>> fetch_alone(Requester requester, Reference reference,
                                        FetchOptions options, Known known, FetchMemory& memory,
                                        std::stop_token stop);
  io::Task<void> remember(std::string key, Resolution resolution);
  io::Task<Result<Fetched>> from_store(Resolution resolution, FetchOptions options);
  io::Task<Result<Fetched>> accept(Download download, std::optional<std::string> expected,
                                   FetchOptions options, std::string key, FetchMemory& memory);

  io::Task<Result<Download>> download(Requester requester, Reference reference,
                                      std::optional<Resolution> known, FetchOptions options,
                                      FetchMemory& memory, std::stop_token stop);
  io::Task<Result<Download>> download_http(Requester requester, Reference reference,
                                           std::optional<Resolution> known, FetchOptions options,
                                           FetchMemory& memory, std::stop_token stop);
  io::Task<Result<Download>> download_oci(Requester requester, OciSource source,
                                          std::optional<Resolution> known, FetchOptions options,
                                          FetchMemory& memory, std::stop_token stop);
  io::Task<Result<Download>> download_config_map(ConfigMapAccess access, ConfigMapSource source,
                                                 std::optional<Resolution> known, Content wanted,
                                                 std::stop_token stop);
  io::Task<Result<Download>> download_file(FileSource source, std::optional<Resolution> known);

  struct Transports {
    Transports(const std::string& ca_pem, const http::AddressPolicy& addresses);
    std::shared_ptr<const http::Transport> verified;
    std::shared_ptr<const http::Transport> unverified;
  };
  [[nodiscard]] const std::shared_ptr<const http::Transport>& transport(const Requester& requester,
                                                                        bool insecure) const;
  // What the requester is told of an error.
  [[nodiscard]] Error told(const Requester& requester, const std::string& module,
                           Error error) const;

  io::Workers& workers_;
  http::Client& client_;
  ModuleStore& store_;
  ConfigMapReader* const config_maps_;
  budget::ReservationQueue* const memory_;
  const bool may_read_files_;
  const Log log_;
  const Transports admin_transports_;
  const Transports tenant_transports_;
  const Transports public_transports_;  // Of tenants that may reach nothing else.
  DockerConfig credentials_;
  budget::FairSlots fetches_;
  io::Turns<std::string> turns_;  // By key.
  io::Turns<std::string> names_;  // By reference, whoever asks.
};

}  // namespace hangar::modules
