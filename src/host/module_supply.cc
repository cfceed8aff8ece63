#include "host/module_supply.h"

#include "base/limits.h"
#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "budget/container_memory.h"
#include "host/disk_shares.h"
#include "io/file.h"
#include "modules/limits.h"
#include "modules/signature_gate.h"
#include "schematics/key_files.h"
#include "schematics/keys.h"
#include "signatures/module_policy.h"
#include "signatures/prebuilt_directory.h"
#include "wasm/limits.h"
#include "wasm/prebuilt_code.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace hangar::host {

Result<modules::DockerConfig> read_docker_config(const Config& config) {
  if (config.docker_config.empty()) return modules::DockerConfig::load();
  const std::string text = HANGAR_TRY(io::read_file(config.docker_config, limits::kObjectBytesMax));
  return modules::DockerConfig::parse(text);
}

namespace {

// A key of HMAC-SHA256 that is shorter than the MAC would be easier to guess than the MAC.
constexpr std::size_t kCodeKeyBytesMin = 32;

bool is_below(const std::filesystem::path& path, const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, error);
  const std::filesystem::path above = std::filesystem::weakly_canonical(directory, error);
  return std::ranges::mismatch(above, whole).in1 == above.end();
}

Result<std::shared_ptr<const wasm::CodeCache::Seal>> read_code_seal(const Config& config) {
  if (config.code_cache_key_file.empty()) return nullptr;
  std::string key = HANGAR_TRY(io::read_file(config.code_cache_key_file, limits::kObjectBytesMax));
  const std::string what = fmt::format("code-cache-key-file {}", config.code_cache_key_file);
  if (key.size() < kCodeKeyBytesMin) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{}: has {} bytes, expected {} or more: head -c 32 /dev/urandom makes "
                            "them",
                            what, key.size(), kCodeKeyBytesMin));
  }
  if (is_below(config.code_cache_key_file, config.module_cache_dir)) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format(
            "{}: is inside {}, so that a user who can write code there could sign it. Keep it "
            "elsewhere",
            what, config.module_cache_dir.string()));
  }
  return std::make_shared<const wasm::CodeCache::Seal>(wasm::CodeCache::Seal{
      .key = std::move(key),
      .private_directory =
          std::filesystem::temp_directory_path() / fmt::format("hangar-code-{}", ::geteuid())});
}

}  // namespace

namespace {

Result<std::unique_ptr<const wasm::PrebuiltCode>> open_prebuilt(const Config& config,
                                                                const Log& log) {
  if (config.native_code_dir.empty()) return nullptr;
  Result<schematics::PublicKeys> keys = schematics::load_public_keys(config.builder_keys);
  if (!keys) return std::unexpected(std::move(keys).error().in("builder-keys"));
  if (keys->size() == 0) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("builder-keys: {} has no file that ends in .pem",
                            config.builder_keys.string()));
  }
  return std::make_unique<const signatures::PrebuiltDirectory>(config.native_code_dir,
                                                               *std::move(keys), log);
}

}  // namespace

Result<ModuleFiles> ModuleFiles::open(const Config& config, const Log& log) {
  ModuleFiles files{.credentials = HANGAR_TRY(read_docker_config(config)),
                    .code_seal = HANGAR_TRY(read_code_seal(config)),
                    .prebuilt = HANGAR_TRY(open_prebuilt(config, log))};
  if (!config.module_policy.empty()) {
    files.policy = HANGAR_TRY(signatures::read_module_policy(config.module_policy));
  }
  HANGAR_TRY(io::make_private_directory(config.module_cache_dir));
  files.store = HANGAR_TRY(modules::ModuleStore::open(config.module_cache_dir / "modules",
                                                      {.bytes = disk_shares(config).modules}, log));
  return files;
}

namespace {

// The part of guest memory that only the flights of reviews may use, which finish within seconds:
// enough for one of a Go program, or for dozens of small ones.
constexpr std::uint64_t kReviewsPart = 8;
constexpr std::uint64_t kReviewsMemoryMax = 128 * limits::kMiB;

// One namespace may have half of both caches, as it may have half of the memory.
std::uint64_t namespace_disk_bytes(const DiskShares& shares) {
  return (shares.modules + shares.code) / 2;
}

wasm::CodeCache::Options code_cache_options(const Config& config,
                                            std::shared_ptr<const wasm::CodeCache::Seal> seal,
                                            const wasm::PrebuiltCode* prebuilt,
                                            budget::CacheCharges& charges) {
  const DiskShares shares = disk_shares(config);
  return {
      .directory = config.module_cache_dir / "code",
      .compile_program = config.compiler,
      .prebuilt = prebuilt,
      .bytes_max = shares.code,
      .compiled_bytes_max = shares.compiling,
      .all_waiting_bytes_max = shares.waiting,
      .waiting_bytes_max = std::min(limits::kCompilationsOfOneWaitingBytesMax, shares.waiting / 4),
      .seal = std::move(seal),
      .charges = &charges};
}

budget::Accounts::Limits memory_limits(const Config& config) {
  const std::uint64_t all =
      config.guest_memory_bytes > 0 ? config.guest_memory_bytes : budget::guest_memory_max();
  // By default one namespace cannot take all of the memory. The setting is for hosts where all
  // namespaces belong to one team.
  const std::uint64_t of_one =
      config.namespace_memory_bytes > 0 ? config.namespace_memory_bytes : all / 2;
  return {.host_bytes_max = all,
          .tenant_bytes_max = std::min(all, of_one),
          .kept_bytes = config.webhooks.bind_address.empty()
                            ? 0
                            : std::min(all / kReviewsPart, kReviewsMemoryMax)};
}

}  // namespace

ModuleSupply::ModuleSupply(ModuleFiles files, const Config& config, io::Loop& loop,
                           io::Workers& workers, http::Client& http,
                           modules::ConfigMapReader* config_maps, FileModules file_modules,
                           const Log& log_in)
    : log(log_in),
      store(std::move(files.store)),
      disk({.namespace_bytes_max = namespace_disk_bytes(disk_shares(config))}),
      memory(memory_limits(config)),
      engine(loop, workers, {.memory = &memory, .rates = &rates}),
      fetcher({.loop = loop,
               .workers = workers,
               .client = http,
               .store = *store,
               .config_maps = config_maps,
               .memory = engine.memory(),
               .may_read_files = file_modules == FileModules::Allowed,
               .tenant_addresses = config.module_addresses,
               .log = log}),
      gate(files.policy
               ? std::make_unique<modules::SignatureGate>(
                     modules::SignatureGate::Parts{
                         .workers = workers,
                         .fetcher = fetcher,
                         .store = *store,
                         .memory = engine.memory(),
                         .directory = config.module_cache_dir / "signatures",
                         .log = log},
                     signatures::make_module_policy(
                         *files.policy, {.loop = loop,
                                         .workers = workers,
                                         .program = config.compiler,
                                         .directory = config.module_cache_dir / "verified"}))
               : nullptr),
      loads(loop),
      sources({.loop = loop,
               .workers = workers,
               .fetcher = fetcher,
               .store = *store,
               .memory = engine.memory(),
               .loads = &loads,
               .allow_list = modules::AllowList(config.module_allow_list),
               .gate = gate.get(),
               .log = log,
               .recheck = config.module_recheck_interval}),
      prebuilt(std::move(files.prebuilt)),
      code_cache(engine,
                 code_cache_options(config, std::move(files.code_seal), prebuilt.get(), disk)) {
  store->charge_to(disk);
  fetcher.use_credentials(std::move(files.credentials));
}

}  // namespace hangar::host
