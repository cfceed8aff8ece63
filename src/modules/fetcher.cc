#include "modules/fetcher.h"

#include "base/digest.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/utf8.h"
#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "http/address_policy.h"
#include "http/client.h"
#include "http/status.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "io/workers.h"
#include "json/value.h"
#include "modules/config_map.h"
#include "modules/cosign.h"
#include "modules/docker_config.h"
#include "modules/internal/download.h"
#include "modules/internal/fetch_memory.h"
#include "modules/internal/gzip.h"
#include "modules/internal/http_status.h"
#include "modules/internal/proof_search.h"
#include "modules/internal/registry.h"
#include "modules/internal/registry_auth.h"
#include "modules/internal/wasm_bytes.h"
#include "modules/limits.h"
#include "modules/module_store.h"
#include "modules/oci_manifest.h"
#include "modules/proofs.h"
#include "modules/reference.h"
#include "modules/requester.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace hangar::modules {

namespace {

// Concurrent fetches of all tenants.
constexpr std::size_t kFetchesMax = 8;
// Waiting fetches of one tenant, each for another reference: at its start a host has one for each
// definition of the tenant. A fetch beyond the bound is refused and retried later.
constexpr std::size_t kFetchesWaitingPerTenantMax = 512;

// How often a fetch may need more memory than it waited for before its source is
// considered dishonest.
constexpr int kSurprisesMax = 4;

// Manifests that the loop reads itself, within a fraction of a millisecond.
constexpr std::size_t kManifestReadAtOnceBytesMax = 16 * limits::kKiB;

// Browsers follow 20; a module behind more than a few is misconfigured.
constexpr int kRedirectsMax = 5;

std::shared_ptr<const http::Transport> make_transport(const std::string& ca_pem, bool skip_verify,
                                                      const http::AddressPolicy& addresses) {
  auto transport = std::make_shared<http::Transport>();
  transport->ca_pem = ca_pem;
  transport->skip_verify = skip_verify;
  transport->addresses = addresses;
  return transport;
}

// The validator that a server gave for a version of a module, to be sent with the next request.
// Empty when it gave none, or none that is worth storing.
std::string validator(const http::Headers& headers, std::string_view name) {
  const std::string_view value = http::find_header(headers, name).value_or(std::string_view());
  if (value.size() > limits::kKiB || valid_utf8_prefix(value) != value.size()) return {};
  return std::string(value);
}

// A result from an unverified connection must not answer a requester that wants verification.
std::string name_of(const Reference& reference, bool insecure) {
  return (insecure ? "insecure:" : "") + reference.key();
}
std::string name_of(const Reference& reference, const FetchOptions& options) {
  return name_of(reference, options.insecure);
}

// A registry decides about whole repositories.
std::string scope_of(const Reference& reference, bool insecure) {
  const auto* const oci = std::get_if<OciSource>(&reference.source());
  const std::string scope =
      oci == nullptr ? reference.key() : fmt::format("oci://{}/{}", oci->registry, oci->repository);
  return (insecure ? "insecure:" : "") + scope;
}

// True when the source itself denies access or does not have the module; false when this host may
// not connect to it. Many servers answer 404 to clients that may not know what exists. A ConfigMap
// belongs to the requester: its absence says nothing about a right.
bool is_refusal(const Reference& reference, const Error& error) {
  if (error.reason() == kNotReached) return false;
  return error.kind() == ErrorKind::Denied ||
         (error.kind() == ErrorKind::NotFound && !reference.is_config_map());
}

OnBytes progress_of(const FetchOptions& options) {
  if (!options.on_progress) return {};
  return [say = options.on_progress](std::uint64_t received, std::uint64_t total) {
    const auto mib = [](std::uint64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(limits::kMiB);
    };
    say(total == 0 ? fmt::format("fetching, {:.1f} MiB", mib(received))
                   : fmt::format("fetching, {:.1f} of {:.1f} MiB", mib(received), mib(total)));
  };
}

// Reads a manifest: a long one on a worker, as `[1,1,1` it takes milliseconds and much memory.
io::Task<Result<std::variant<ModuleLayer, ModuleManifest>>> read_counted(io::Workers& workers,
                                                                         budget::Consumer whose,
                                                                         FetchMemory& memory,
                                                                         std::string bytes) {
  HANGAR_CO_TRY(memory.grow_to(bytes.size() + json::parsed_bytes_max(bytes)));
  if (bytes.size() <= kManifestReadAtOnceBytesMax) co_return read_manifest(bytes);
  co_return co_await workers.run(std::move(whose),
                                 [bytes = std::move(bytes)] { return read_manifest(bytes); });
}

Fetched unchanged(const Resolution& resolution) {
  return {.wasm = {},
          .sha256 = resolution.sha256,
          .size_bytes = resolution.size_bytes,
          .resolved = resolution.resolved,
          .manifest = resolution.revision,
          .is_unchanged = true,
          .stale_because = {}};
}

struct FileRead {
  bool is_unchanged = false;
  std::string bytes;
  std::string stamp;
};

// Blocking. A file with the same stamp (inode, size and time of change) is the same file.
Result<FileRead> read_if_changed(const std::string& path, const std::string& known_stamp) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    const int code = errno;
    return fail(code == ENOENT || code == ENOTDIR ? ErrorKind::NotFound : ErrorKind::Denied,
                std::generic_category().message(code));
  }
  // Reading a FIFO would block the worker for ever.
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::InvalidInput, "is not a regular file");
  FileRead read;
  read.stamp = fmt::format("{}:{}:{}:{}.{:09}", status.st_dev, status.st_ino, status.st_size,
                           status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  read.is_unchanged = read.stamp == known_stamp;
  if (!read.is_unchanged) read.bytes = HANGAR_TRY(io::read_file(path, limits::kFetchedBytesMax));
  return read;
}

// Blocking. Each gzip in the store states the size of its content.
Result<> keep(ModuleStore& store, const Unpacked& module, const budget::Tenant& user) {
  if (store.has(module.sha256)) return store.charge(module.sha256, user);
  const std::string& gzipped = module.gzipped;
  const bool is_honest =
      claimed_size(gzipped, gzipped.size(), limits::kFetchedBytesMax) == module.wasm.size();
  return is_honest ? store.write(module.sha256, gzipped, user)
                   : store.add(module.sha256, module.wasm, user);
}

struct Accepted {
  std::string wasm;
  std::string sha256;
  // If the disk is full, the next fetch downloads again; this one succeeds. But see
  // is_too_little_disk().
  Result<> stored;
};

}  // namespace

Fetcher::Transports::Transports(const std::string& ca_pem, const http::AddressPolicy& addresses)
    : verified(make_transport(ca_pem, /*skip_verify=*/false, addresses)),
      unverified(make_transport(ca_pem, /*skip_verify=*/true, addresses)) {}

Fetcher::Fetcher(Parts parts)
    : loop_(parts.loop),
      workers_(parts.workers),
      client_(parts.client),
      store_(parts.store),
      config_maps_(parts.config_maps),
      memory_(parts.memory),
      may_read_files_(parts.may_read_files),
      log_(std::move(parts.log)),
      admin_transports_(parts.ca_pem, http::AddressPolicy::no_metadata()),
      tenant_transports_(parts.ca_pem, parts.tenant_addresses),
      public_transports_(parts.ca_pem, http::AddressPolicy::public_only()),
      proof_kept_(parts.proof_kept),
      patience_(parts.patience),
      proofs_(parts.store, parts.proof_kept),
      fetches_(parts.loop, {.slots = kFetchesMax,
                            .slots_per_tenant_max = kFetchesPerTenantMax,
                            .waiting_per_tenant_max = kFetchesWaitingPerTenantMax}),
      turns_(parts.loop),
      names_(parts.loop) {}

Result<> Fetcher::check_access(const Requester& requester, const Reference& reference) {
  const auto* const config_map = std::get_if<ConfigMapSource>(&reference.source());
  if (config_map == nullptr) return {};
  const Result<ConfigMapAccess> access = requester.config_maps_of(config_map->namespace_name);
  if (!access) return std::unexpected(Error(access.error()).in("module " + reference.display()));
  return {};
}

const std::shared_ptr<const http::Transport>& Fetcher::transport(const Requester& requester,
                                                                 bool insecure) const {
  const Transports& tenant =
      requester.public_because().empty() ? tenant_transports_ : public_transports_;
  const Transports& transports = requester.tenant().empty() ? admin_transports_ : tenant;
  return insecure ? transports.unverified : transports.verified;
}

Error Fetcher::told(const Requester& requester, const std::string& module, Error error) const {
  if (requester.tenant().empty() || error.reason() != kNotReached) return error;
  log_.warning("module source not reached",
               {{"module", module}, {"namespace", requester.tenant()}, {"error", error.message()}});
  if (error.kind() != ErrorKind::Denied) {
    return {error.kind(), "the module's server cannot be reached (the host's log says why)"};
  }
  if (requester.public_because().empty()) {
    return {error.kind(), "the module's address is not allowed here"};
  }
  return {error.kind(),
          fmt::format("the module's address is not allowed here: {} allows public addresses only",
                      requester.public_because())};
}

std::optional<Resolution> Fetcher::known(const Requester& requester, const Reference& reference,
                                         const FetchOptions& options) const {
  const std::optional<std::string> expected = expected_sha256(reference, options.expected_sha256);
  std::optional<Resolution> own =
      store_.resolution(proof_key(requester.id(), name_of(reference, options)));
  const bool is_other = own && expected && own->sha256 != *expected;
  if (is_other || !check_access(requester, reference)) return std::nullopt;
  const Access access = access_of(requester, reference, options.insecure);
  const bool is_proven =
      own && proofs_.standing(access, *own, io::Loop::wall_now()) != Standing::None;
  return is_proven ? std::move(own) : std::nullopt;
}

Access Fetcher::access_of(const Requester& requester, const Reference& reference,
                          bool insecure) const {
  Access access{.requester = requester.id(),
                .name = name_of(reference, insecure),
                .scope = scope_of(reference, insecure),
                .credential = {}};
  // A password in a URL is a part of the reference's key.
  if (const auto* const oci = std::get_if<OciSource>(&reference.source())) {
    const Result<Credential> credential = credentials_.find(oci->registry, oci->repository);
    // No credential has this identity, so without a credential there is no proof.
    access.credential = credential ? credential->id() : "unknown";
  }
  return access;
}

Standing Fetcher::standing(const Requester& requester, const Reference& reference, bool insecure,
                           const std::string& sha256) const {
  if (!check_access(requester, reference)) return Standing::None;
  return proofs_.standing(access_of(requester, reference, insecure), sha256, io::Loop::wall_now());
}

io::Task<void> Fetcher::grant(Requester requester, Reference reference, bool insecure,
                              std::string sha256) {
  const Result<> granted =
      co_await workers_.run(requester.consumer("module"),
                            [&proofs = proofs_, access = access_of(requester, reference, insecure),
                             sha256 = std::move(sha256)] { return proofs.grant(access, sha256); });
  if (!granted) {
    log_.warning("proof not stored",
                 {{"module", reference.display()}, {"error", granted.error().message()}});
  }
}

io::Task<Result<>> Fetcher::accept_copy(Requester requester, Reference reference, bool insecure,
                                        std::string sha256, std::string copy,
                                        std::uint64_t bytes_max) {
  // The copy is stored under the digest that its bytes really have.
  co_return co_await workers_.run(
      requester.consumer("module"),
      [&store = store_, &proofs = proofs_, access = access_of(requester, reference, insecure),
       sha256 = std::move(sha256), copy = std::move(copy), user = requester.budget_tenant(),
       bytes_max, now = io::Loop::wall_now()]() mutable -> Result<> {
        HANGAR_TRY(store.accept(sha256, std::move(copy), user, bytes_max));
        return proofs.grant_copy(access, sha256, now);
      });
}

io::Task<void> Fetcher::drop(Requester requester, Reference reference, bool insecure) {
  Access access = access_of(requester, reference, insecure);
  co_await drop_proofs(requester.consumer("module"), std::move(access), reference.display());
}

io::Task<void> Fetcher::drop_proofs(budget::Consumer whose, Access access, std::string module) {
  const std::string requester = access.requester;
  const Result<bool> dropped = co_await workers_.run(
      std::move(whose),
      [&proofs = proofs_, access = std::move(access)] { return proofs.drop(access); });
  if (dropped && !*dropped) co_return;
  // After an error the proofs are gone from memory nevertheless.
  ++proofs_generation_;
  log_.info("source refuses access to the module, proofs dropped",
            {{"module", module}, {"requester", requester}});
}

std::string Fetcher::likely_sha256(const Requester& requester, const Reference& reference,
                                   const FetchOptions& options) const {
  if (const auto expected = expected_sha256(reference, options.expected_sha256)) {
    return is_sha256_hex(*expected) ? *expected : std::string();
  }
  const std::string name = name_of(reference, options);
  std::optional<Resolution> resolution = store_.resolution(proof_key(requester.id(), name));
  if (!resolution) resolution = store_.hint(name);
  return resolution ? resolution->sha256 : std::string();
}

io::Task<Result<Fetched>> Fetcher::fetch(Requester requester, Reference reference,
                                         FetchOptions options, std::stop_token stop) {
  HANGAR_CO_TRY(check_access(requester, reference));
  const auto say = [&options](std::string doing) {
    if (options.on_progress) options.on_progress(std::move(doing));
  };
  const std::string& module = reference.display();
  const io::Turns<std::string>::Turn turn = HANGAR_CO_TRY(
      co_await turns_.take(proof_key(requester.id(), name_of(reference, options)), stop));
  const budget::Consumer consumer = requester.consumer(reference.key());
  FetchMemory memory(memory_, consumer);
  Result<Fetched> fetched = fail(ErrorKind::LimitExceeded, "");
  for (int surprises = 0; surprises <= kSurprisesMax; ++surprises) {
    Result<> waited = co_await memory.wait(stop, [&say](const budget::Shortage& shortage) {
      say(fmt::format("waiting for memory, {}", to_text(shortage)));
    });
    if (!waited) co_return std::unexpected(std::move(waited).error().in("module " + module));
    say(fmt::format("waiting to be fetched, {} before it in line",
                    fetches_.waiting_count(consumer.tenant)));
    const Result<budget::FairSlots::Slot> slot = co_await fetches_.acquire(consumer, {}, stop);
    if (!slot && slot.error().kind() == ErrorKind::LimitExceeded) {
      co_return fail(ErrorKind::Unavailable,
                     fmt::format("module {}: too many modules are waited for: {}", module,
                                 slot.error().message()));
    }
    if (!slot) co_return std::unexpected(slot.error());
    say("fetching");
    if (options.on_turn) options.on_turn();
    fetched = co_await fetch_in_turn(requester, reference, options, memory, stop);
    if (fetched || !memory.is_short()) break;
  }
  if (!fetched) {
    Error error = told(requester, module, std::move(fetched).error());
    co_return std::unexpected(std::move(error).in("module " + module));
  }
  co_return fetched;
}

// The requester whose turn it is may wait long for threads or memory of its own namespace. The
// others must not wait with it.
io::Task<Result<std::optional<io::Turns<std::string>::Turn>>> Fetcher::turn_of(
    std::string name, std::stop_token stop) {
  std::stop_source end;
  const std::stop_callback on_stop(stop, [&end] { end.request_stop(); });
  const io::Loop::Timer timer = loop_.after(patience_, [&end] { end.request_stop(); });
  auto turn = co_await names_.take(std::move(name), end.get_token());
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
  if (!turn) co_return std::nullopt;
  co_return *std::move(turn);
}

// If another requester has downloaded the module meanwhile, the store has it when this turn starts,
// and the source only has to confirm it.
io::Task<Result<Fetched>> Fetcher::fetch_in_turn(Requester requester, Reference reference,
                                                 FetchOptions options, FetchMemory& memory,
                                                 std::stop_token stop) {
  const std::string name = name_of(reference, options);
  const auto turn = HANGAR_CO_TRY(co_await turn_of(name, stop));
  Known known{.key = proof_key(requester.id(), name)};
  known.own = store_.resolution(known.key);
  known.latest = known.own ? known.own : store_.hint(name);
  co_return co_await fetch_alone(std::move(requester), std::move(reference), std::move(options),
                                 std::move(known), memory, std::move(stop));
}

io::Task<Result<Fetched>> Fetcher::fetch_alone(Requester requester, Reference reference,
                                               FetchOptions options, Known known,
                                               FetchMemory& memory, std::stop_token stop) {
  const std::optional<std::string> expected = expected_sha256(reference, options.expected_sha256);
  const auto is_useless = [&](const std::optional<Resolution>& resolution) {
    if (!resolution) return false;
    if (options.afresh) return true;
    // "Unchanged" is useless if the source's bytes are not the promised ones.
    if (expected && resolution->sha256 != *expected) return true;
    return resolution->sha256 != options.have_sha256 && !store_.has(resolution->sha256);
  };
  if (is_useless(known.own)) known.own.reset();
  if (is_useless(known.latest)) known.latest.reset();
  const Access access = access_of(requester, reference, options.insecure);
  const Standing standing =
      known.own ? proofs_.standing(access, *known.own, io::Loop::wall_now()) : Standing::None;
  if (standing == Standing::None) known.own.reset();

  // The bytes can never change, and the source gave them to this requester recently. It would not
  // be enough that the store has them and that the requester knows their digest.
  if (standing == Standing::Fresh && (expected || reference.is_pinned())) {
    Result<Fetched> fetched =
        co_await from_store(requester.consumer("module"), *known.own, options);
    if (fetched || budget::is_too_little_disk(fetched.error())) co_return fetched;
    known.own.reset();
    known.latest.reset();
  }

  Result<Download> download_result =
      co_await download(requester, reference, known.latest, options, memory, stop);
  if (!download_result) {
    Error error = std::move(download_result).error();
    if (is_refusal(reference, error)) {
      co_await drop_proofs(requester.consumer("module"), access, reference.display());
      co_return std::unexpected(std::move(error).with_reason(std::string(kRefused)));
    }
    if (error.kind() != ErrorKind::Unavailable || !known.own || !options.may_be_stale) {
      co_return std::unexpected(std::move(error));
    }
    Result<Fetched> fetched =
        co_await from_store(requester.consumer("module"), *known.own, options);
    if (!fetched && budget::is_too_little_disk(fetched.error())) co_return fetched;
    if (!fetched) co_return std::unexpected(std::move(error));
    log_.warning("module source away, using the stored module",
                 {{"module", reference.display()}, {"error", error.message()}});
    fetched->stale_because = told(requester, reference.display(), std::move(error)).message();
    co_return fetched;
  }
  if (download_result->is_unchanged) {
    Result<Fetched> fetched =
        co_await from_store(requester.consumer("module"), *known.latest, options);
    if (!fetched && budget::is_too_little_disk(fetched.error())) co_return fetched;
    if (fetched) {
      known.latest->credential = std::move(download_result->resolution.credential);
      known.latest->proven_at = Proofs::seconds_of(io::Loop::wall_now());
      co_await remember(requester.consumer("module"), std::move(known.key),
                        *std::move(known.latest));
      co_return fetched;
    }
    log_.warning("stored module lost, fetching it again",
                 {{"module", reference.display()}, {"error", fetched.error().message()}});
    download_result = co_await download(requester, reference, std::nullopt, options, memory, stop);
    if (!download_result) co_return std::unexpected(std::move(download_result).error());
  }
  co_return co_await accept(requester.consumer("module"), *std::move(download_result), expected,
                            std::move(options), std::move(known.key), memory);
}

io::Task<void> Fetcher::remember(budget::Consumer whose, std::string key, Resolution resolution) {
  const std::string resolved = resolution.resolved;
  const Result<> stored = co_await workers_.run(
      std::move(whose),
      [&store = store_, key = std::move(key), resolution = std::move(resolution)] {
        return store.remember(key, resolution);
      });
  if (!stored) {
    log_.warning("module not stored", {{"module", resolved}, {"error", stored.error().message()}});
  }
}

io::Task<Result<Fetched>> Fetcher::from_store(budget::Consumer whose, Resolution resolution,
                                              FetchOptions options) {
  HANGAR_CO_TRY(
      co_await workers_.run(whose, [&store = store_, sha256 = resolution.sha256,
                                    user = whose.tenant] { return store.charge(sha256, user); }));
  if (resolution.sha256 == options.have_sha256) co_return unchanged(resolution);
  Fetched fetched;
  fetched.size_bytes = resolution.size_bytes;
  if (!options.leave_in_store || !store_.has(resolution.sha256)) {
    fetched.wasm = HANGAR_CO_TRY(co_await workers_.run(
        std::move(whose),
        [&store = store_, sha256 = resolution.sha256] { return store.read(sha256); }));
    fetched.size_bytes = fetched.wasm.size();
  }
  fetched.sha256 = std::move(resolution.sha256);
  fetched.resolved = std::move(resolution.resolved);
  fetched.manifest = std::move(resolution.revision);
  co_return fetched;
}

io::Task<Result<Fetched>> Fetcher::accept(budget::Consumer whose, Download download,
                                          std::optional<std::string> expected, FetchOptions options,
                                          std::string key, FetchMemory& memory) {
  const std::string blob_digest = download.blob_digest;
  Resolution resolution = std::move(download.resolution);
  resolution.proven_at = Proofs::seconds_of(io::Loop::wall_now());
  // The memory for the content; for a module that came without gzip, for the gzip that the store
  // makes of it, which is smaller.
  const std::uint64_t packed_bytes = download.bytes.size();
  const std::uint64_t unpacked_bytes =
      is_gzip(download.bytes) ? claimed_size(download.bytes, packed_bytes, limits::kFetchedBytesMax)
                              : packed_bytes;
  HANGAR_CO_TRY(memory.grow_to(packed_bytes + unpacked_bytes));
  // Without accounting the claimed size need not be trusted.
  const std::uint64_t bytes_max =
      memory_ == nullptr ? limits::kFetchedBytesMax
                         : std::min(memory.held_bytes() - packed_bytes, limits::kFetchedBytesMax);
  auto work = [&store = store_, bytes = std::move(download.bytes),
               blob_digest = std::move(download.blob_digest), expected = std::move(expected),
               content = options.content, resolution, key = std::move(key), user = whose.tenant,
               bytes_max]() mutable -> Result<Accepted> {
    if (!blob_digest.empty() && "sha256:" + sha256_hex(bytes) != blob_digest) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("the registry's bytes are not those of blob {}", blob_digest));
    }
    Unpacked unpacked = HANGAR_TRY(unpack(std::move(bytes), bytes_max, content));
    if (expected) HANGAR_TRY(verify_sha256(*expected, unpacked.sha256));
    Accepted accepted;
    accepted.stored = keep(store, unpacked, user);
    resolution.sha256 = unpacked.sha256;
    resolution.size_bytes = unpacked.wasm.size();
    if (accepted.stored) accepted.stored = store.remember(key, resolution);
    accepted.wasm = std::move(unpacked.wasm);
    accepted.sha256 = std::move(unpacked.sha256);
    return accepted;
  };
  Result<Accepted> worked = co_await workers_.run(std::move(whose), std::move(work));
  if (!worked) {
    // The content is larger than claimed: it is compressed twice, or in several members.
    if (worked.error().kind() == ErrorKind::LimitExceeded && bytes_max < limits::kFetchedBytesMax) {
      HANGAR_CO_TRY(memory.refuse(packed_bytes + limits::kFetchedBytesMax));
    }
    co_return std::unexpected(std::move(worked).error());
  }
  Accepted accepted = *std::move(worked);
  if (!accepted.stored && budget::is_too_little_disk(accepted.stored.error())) {
    co_return std::unexpected(std::move(accepted.stored).error());
  }
  if (!blob_digest.empty()) {
    if (unpacked_.size() >= limits::kModuleReferencesMax)
      unpacked_.clear();  // Downloads will fill it again.
    unpacked_[blob_digest] = accepted.sha256;
  }
  if (!accepted.stored) {
    log_.warning("module not stored",
                 {{"module", resolution.resolved}, {"error", accepted.stored.error().message()}});
  }
  Fetched fetched;
  fetched.size_bytes = accepted.wasm.size();
  fetched.sha256 = std::move(accepted.sha256);
  fetched.resolved = std::move(resolution.resolved);
  fetched.manifest = std::move(resolution.revision);
  fetched.is_unchanged = fetched.sha256 == options.have_sha256;
  const bool is_left = options.leave_in_store && accepted.stored;
  if (!fetched.is_unchanged && !is_left) fetched.wasm = std::move(accepted.wasm);
  co_return fetched;
}

io::Task<Result<VerifiedProof>> Fetcher::find_proof(Requester requester, Reference reference,
                                                    bool insecure, std::string manifest,
                                                    std::shared_ptr<const Signers> signers,
                                                    std::stop_token stop) {
  const std::string& module = reference.display();
  const OciSource source = std::get<OciSource>(reference.source());
  const budget::Consumer consumer = requester.consumer(reference.key());
  FetchMemory memory(memory_, consumer);
  Result<VerifiedProof> proof = fail(ErrorKind::LimitExceeded, "");
  for (int surprises = 0; surprises <= kSurprisesMax; ++surprises) {
    if (Result<> waited = co_await memory.wait(stop, {}); !waited) {
      co_return std::unexpected(
          std::move(waited).error().in(fmt::format("module {}: its signature", module)));
    }
    const Result<budget::FairSlots::Slot> slot = co_await fetches_.acquire(consumer, {}, stop);
    if (!slot) {
      const bool is_full = slot.error().kind() == ErrorKind::LimitExceeded;
      co_return fail(is_full ? ErrorKind::Unavailable : slot.error().kind(),
                     fmt::format("module {}: its signature: {}", module, slot.error().message()));
    }
    proof = co_await find_proof_once(requester, source, insecure, manifest, signers, memory, stop);
    if (proof || !memory.is_short()) break;
  }
  if (!proof) {
    Error error = told(requester, module, std::move(proof).error());
    co_return std::unexpected(std::move(error).in("module " + module));
  }
  co_return proof;
}

io::Task<Result<VerifiedProof>> Fetcher::find_proof_once(Requester requester, OciSource source,
                                                         bool insecure, std::string manifest,
                                                         std::shared_ptr<const Signers> signers,
                                                         FetchMemory& memory,
                                                         std::stop_token stop) {
  Credential credential = HANGAR_CO_TRY(credentials_.find(source.registry, source.repository));
  Registry registry(client_, std::move(source), std::move(credential),
                    {.transport = transport(requester, insecure),
                     .plain_http = insecure,
                     .requester = requester.tenant()});
  co_return co_await modules::find_proof(registry, workers_, requester.consumer("module"),
                                         std::move(manifest), std::move(signers), memory,
                                         std::move(stop));
}

bool Fetcher::has_unpacked(const std::string& blob_digest, const std::string& sha256) const {
  const auto found = unpacked_.find(blob_digest);
  return found != unpacked_.end() && found->second == sha256;
}

io::Task<Result<Fetcher::Download>> Fetcher::download(Requester requester, Reference reference,
                                                      std::optional<Resolution> known,
                                                      FetchOptions options, FetchMemory& memory,
                                                      std::stop_token stop) {
  if (const auto* const oci = std::get_if<OciSource>(&reference.source())) {
    co_return co_await download_oci(std::move(requester), *oci, std::move(known),
                                    std::move(options), memory, std::move(stop));
  }
  if (const auto* const config_map = std::get_if<ConfigMapSource>(&reference.source())) {
    ConfigMapAccess access = HANGAR_CO_TRY(requester.config_maps_of(config_map->namespace_name));
    co_return co_await download_config_map(std::move(access), *config_map, std::move(known),
                                           options.content, std::move(stop));
  }
  if (const auto* const file = std::get_if<FileSource>(&reference.source())) {
    co_return co_await download_file(requester.consumer("module"), *file, std::move(known));
  }
  co_return co_await download_http(std::move(requester), std::move(reference), std::move(known),
                                   std::move(options), memory, std::move(stop));
}

io::Task<Result<Fetcher::Download>> Fetcher::download_http(Requester requester, Reference reference,
                                                           std::optional<Resolution> known,
                                                           FetchOptions options,
                                                           FetchMemory& memory,
                                                           std::stop_token stop) {
  const auto& source = std::get<HttpSource>(reference.source());
  http::Request request;
  request.url = source.url;
  request.headers = {{"Accept", "application/wasm, */*"}};
  if (!source.user.empty() || !source.password.empty()) {
    request.headers.emplace_back("Authorization",
                                 basic_authorization(source.user, source.password));
  }
  if (known && !known->etag.empty()) {
    request.headers.emplace_back("If-None-Match", known->etag);
  } else if (known && !known->last_modified.empty()) {
    request.headers.emplace_back("If-Modified-Since", known->last_modified);
  }
  request.transport = transport(requester, options.insecure);
  request.requester = requester.tenant();
  request.redirects_max = kRedirectsMax;
  http::Response response = HANGAR_CO_TRY(co_await modules::download(
      &client_, std::move(request), limits::kFetchedBytesMax, progress_of(options),
      [&memory](std::uint64_t bytes) { return memory.grow_to(bytes); }, std::move(stop)));
  Download download;
  download.is_unchanged = response.status == http::kNotModified && known;
  if (response.status != http::kOk && !download.is_unchanged) {
    co_return fail(kind_of_status(response.status), describe_status(response.status));
  }
  download.bytes = std::move(response.body);
  download.resolution.resolved = reference.display();
  download.resolution.etag = validator(response.headers, "ETag");
  download.resolution.last_modified = validator(response.headers, "Last-Modified");
  co_return download;
}

io::Task<Result<Fetcher::Download>> Fetcher::download_oci(Requester requester, OciSource source,
                                                          std::optional<Resolution> known,
                                                          FetchOptions options, FetchMemory& memory,
                                                          std::stop_token stop) {
  Credential credential = HANGAR_CO_TRY(credentials_.find(source.registry, source.repository));
  Download download;
  download.resolution.credential = credential.id();
  Registry registry(client_, source, std::move(credential),
                    {.transport = transport(requester, options.insecure),
                     .plain_http = options.insecure,
                     .requester = requester.tenant()});
  Registry::Manifest manifest = HANGAR_CO_TRY(
      co_await registry.manifest(source.digest.empty() ? source.tag : source.digest, stop));
  download.resolution.revision = manifest.digest;
  download.resolution.resolved =
      fmt::format("oci://{}/{}@{}", source.registry, source.repository, manifest.digest);
  download.is_unchanged = known && known->revision == manifest.digest;
  if (download.is_unchanged) co_return download;

  const budget::Consumer whose = requester.consumer("module");
  auto content = HANGAR_CO_TRY(co_await read_counted(workers_, whose, memory, manifest.bytes));
  if (const auto* const inner = std::get_if<ModuleManifest>(&content)) {
    manifest = HANGAR_CO_TRY(co_await registry.manifest(inner->manifest.digest, stop));
    content = HANGAR_CO_TRY(co_await read_counted(workers_, whose, memory, manifest.bytes));
  }
  const auto* const layer = std::get_if<ModuleLayer>(&content);
  if (layer == nullptr) {
    co_return fail(ErrorKind::InvalidInput, "oci manifest: the index leads to another index");
  }
  download.blob_digest = layer->blob.digest;
  HANGAR_CO_TRY(memory.grow_to(layer->blob.size_bytes));
  download.bytes = HANGAR_CO_TRY(co_await registry.blob(layer->blob, progress_of(options), stop));
  co_return download;
}

io::Task<Result<Fetcher::Download>> Fetcher::download_config_map(ConfigMapAccess access,
                                                                 ConfigMapSource source,
                                                                 std::optional<Resolution> known,
                                                                 Content wanted,
                                                                 std::stop_token stop) {
  if (config_maps_ == nullptr) {
    co_return fail(ErrorKind::Denied, "modules in configmaps need a cluster");
  }
  const ConfigMapContent content =
      HANGAR_CO_TRY(co_await config_maps_->read(std::move(access), source.name, std::move(stop)));
  Download download;
  download.resolution.revision = content.revision;
  download.resolution.resolved =
      fmt::format("configmap://{}/{}", source.namespace_name, source.name);
  if (!source.key.empty()) download.resolution.resolved += "/" + source.key;
  download.is_unchanged = known && !content.revision.empty() && known->revision == content.revision;
  if (!download.is_unchanged) {
    download.bytes = HANGAR_CO_TRY(module_bytes(content, source.key, wanted));
  }
  co_return download;
}

io::Task<Result<Fetcher::Download>> Fetcher::download_file(budget::Consumer whose,
                                                           FileSource source,
                                                           std::optional<Resolution> known) {
  if (!may_read_files_) {
    co_return fail(ErrorKind::Denied,
                   "files of the host are not for modules: use https, oci or configmap");
  }
  Download download;
  download.resolution.resolved = source.path;
  FileRead read = HANGAR_CO_TRY(co_await workers_.run(
      std::move(whose),
      [path = std::move(source.path), stamp = known ? known->revision : std::string()] {
        return read_if_changed(path, stamp);
      }));
  download.is_unchanged = read.is_unchanged;
  download.bytes = std::move(read.bytes);
  download.resolution.revision = std::move(read.stamp);
  co_return download;
}

}  // namespace hangar::modules
