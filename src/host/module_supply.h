// Where guests' code comes from, for everything that runs guests: modules fetched and kept, and
// what compiles, loads and runs them.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/workers.h"
#include "modules/config_map.h"
#include "modules/docker_config.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"
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
  [[nodiscard]] static Result<ModuleFiles> open(const Config& config, const Log& log);

  modules::DockerConfig credentials;
  std::unique_ptr<modules::ModuleStore> store;
};

enum class FileModules : std::uint8_t { Refused, Allowed };

struct ModuleSupply {
  // `config_maps` may be null: references to ConfigMaps are refused then. All outlive this.
  ModuleSupply(ModuleFiles files, const Config& config, io::Loop& loop, io::Workers& workers,
               http::Client& http, modules::ConfigMapReader* config_maps, FileModules file_modules,
               const Log& log);

  std::unique_ptr<modules::ModuleStore> store;
  modules::Fetcher fetcher;
  wasm::Engine engine;
  wasm::CodeCache code_cache;
};

}  // namespace hangar::host
