// Supplies guests' code: fetches and stores modules, and compiles, loads and runs them.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "budget/rates.h"
#include "host/config.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/workers.h"
#include "modules/config_map.h"
#include "modules/docker_config.h"
#include "modules/fetcher.h"
#include "modules/load_slots.h"
#include "modules/module_store.h"
#include "modules/signature_gate.h"
#include "modules/supply.h"
#include "signatures/module_policy.h"
#include "wasm/code_cache.h"
#include "wasm/engine.h"
#include "wasm/prebuilt_code.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace hangar::host {

// Credentials for registries: from the file of `config`, or those of this user.
[[nodiscard]] Result<modules::DockerConfig> read_docker_config(const Config& config);

// Directories and files, opened before any thread starts.
struct ModuleFiles {
  // Creates the directories of a resolved configuration. Denied when other users may write there.
  // InvalidInput when the key for compiled code is too short or lies in the module directory, or
  // for a module policy or a builder's key that is wrong.
  [[nodiscard]] static Result<ModuleFiles> open(const Config& config, const Log& log);

  modules::DockerConfig credentials;
  std::shared_ptr<const wasm::CodeCache::Seal> code_seal;  // Null: code is not signed.
  std::unique_ptr<const wasm::PrebuiltCode> prebuilt;      // Null: there are no builders.
  std::unique_ptr<modules::ModuleStore> store;
  std::optional<signatures::PolicyFile> policy;
};

enum class FileModules : std::uint8_t { Refused, Allowed };

// The parts that all features share.
struct ModuleSupply {
  // `config_maps` may be null: references to ConfigMaps are then refused. All references must
  // outlive this.
  ModuleSupply(ModuleFiles files, const Config& config, io::Loop& loop, io::Workers& workers,
               http::Client& http, modules::ConfigMapReader* config_maps, FileModules file_modules,
               const Log& log);

  const Log log;
  std::unique_ptr<modules::ModuleStore> store;
  budget::CacheCharges disk;  // Modules and compiled code, by the tenants that use them.
  budget::Accounts memory;  // For all guests, and for modules that are being fetched and compiled.
  budget::Rates rates;      // Processor time of namespaces.
  wasm::Engine engine;
  modules::Fetcher fetcher;
  const std::unique_ptr<modules::SignatureGate> gate;  // Null: there is no module policy.
  modules::LoadSlots loads;
  const modules::Sources sources;  // For the features' module loaders.
  const std::unique_ptr<const wasm::PrebuiltCode> prebuilt;
  wasm::CodeCache code_cache;
};

}  // namespace hangar::host
