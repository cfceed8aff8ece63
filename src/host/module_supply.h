// Where guests' code comes from, for everything that runs guests: modules fetched and kept, and
// what compiles, loads and runs them.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "host/config.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/workers.h"
#include "modules/config_map.h"
#include "modules/docker_config.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"
#include "modules/supply.h"
#include "wasm/code_cache.h"
#include "wasm/engine.h"

#include <cstdint>
#include <memory>

namespace hangar::host {

// Credentials for registries: those of `config`, else those of this user.
[[nodiscard]] Result<modules::DockerConfig> read_docker_config(const Config& config);

// What is on disk, opened before any thread starts.
struct ModuleFiles {
  // Makes the directories of a resolved configuration. Denied when others may write there.
  // InvalidInput for a key of compiled code that is too short, or lies beside that code.
  [[nodiscard]] static Result<ModuleFiles> open(const Config& config, const Log& log);

  modules::DockerConfig credentials;
  std::shared_ptr<const wasm::CodeCache::Seal> code_seal;  // Null: none is configured.
  std::unique_ptr<modules::ModuleStore> store;
};

enum class FileModules : std::uint8_t { Refused, Allowed };

// What all supplies of modules share.
struct ModuleSupply {
  // `config_maps` may be null: references to ConfigMaps are refused then. All outlive this.
  ModuleSupply(ModuleFiles files, const Config& config, io::Loop& loop, io::Workers& workers,
               http::Client& http, modules::ConfigMapReader* config_maps, FileModules file_modules,
               const Log& log);

  const Log log;
  std::unique_ptr<modules::ModuleStore> store;
  budget::Accounts memory;  // Of all guests, and of modules on their way to become some.
  wasm::Engine engine;
  modules::Fetcher fetcher;
  const modules::Sources sources;  // For the makers of the features.
  wasm::CodeCache code_cache;
};

}  // namespace hangar::host
