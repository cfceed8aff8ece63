#include "host/module_supply.h"

#include "base/limits.h"
#include "io/file.h"

#include <string>
#include <utility>

namespace hangar::host {

Result<modules::DockerConfig> read_docker_config(const Config& config) {
  if (config.docker_config.empty()) return modules::DockerConfig::load();
  const std::string text = HANGAR_TRY(io::read_file(config.docker_config, limits::kObjectBytesMax));
  return modules::DockerConfig::parse(text);
}

Result<ModuleFiles> ModuleFiles::open(const Config& config, const Log& log) {
  ModuleFiles files{.credentials = HANGAR_TRY(read_docker_config(config))};
  HANGAR_TRY(io::make_private_directory(config.module_cache_dir));
  files.store = HANGAR_TRY(modules::ModuleStore::open(config.module_cache_dir / "modules", log));
  return files;
}

ModuleSupply::ModuleSupply(ModuleFiles files, const Config& config, io::Loop& loop,
                           io::Workers& workers, http::Client& http,
                           modules::ConfigMapReader* config_maps, FileModules file_modules,
                           const Log& log)
    : store(std::move(files.store)),
      fetcher({.loop = loop,
               .workers = workers,
               .client = http,
               .store = *store,
               .config_maps = config_maps,
               .may_read_files = file_modules == FileModules::Allowed,
               .log = log}),
      engine(loop, workers),
      code_cache(engine, {.directory = config.module_cache_dir / "code",
                          .compile_program = config.compiler}) {
  fetcher.use_credentials(std::move(files.credentials));
}

}  // namespace hangar::host
