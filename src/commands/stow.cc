#include "commands/stow.h"

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "commands/temporary_directory.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/go_text.h"
#include "json/value.h"
#include "modules/docker_config.h"
#include "modules/fetcher.h"
#include "modules/push.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar::commands {

namespace {

// Tags that registries accept: [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}. The tag becomes part of a URL.
bool is_tag(std::string_view tag) {
  constexpr std::size_t kSizeMax = 128;
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !tag.empty() && tag.size() <= kSizeMax && is_word(tag.front()) &&
         std::ranges::all_of(tag, [&](char c) { return is_word(c) || c == '.' || c == '-'; });
}

struct Module {
  std::string sha256;
  std::filesystem::path file;  // Uncompressed.
};

std::string pushed_text(std::uint64_t bytes, std::uint64_t of) {
  constexpr double kMegabyte = 1e6;
  return fmt::format("pushing {:.1f} of {:.1f} MB", static_cast<double>(bytes) / kMegabyte,
                     static_cast<double>(of) / kMegabyte);
}

class Stow {
 public:
  Stow(const host::Config& config, const StowOptions& options, const Log& log)
      : config_(config), options_(options), log_(log), workers_(loop_, 2), http_(loop_) {}

  [[nodiscard]] Result<std::string> run() {
    modules::OciSource target = HANGAR_TRY(modules::read_push_target(options_.target));
    const std::unique_ptr<TemporaryDirectory> work = HANGAR_TRY(TemporaryDirectory::make());
    // Clears the line of the progress, whatever happens.
    const std::shared_ptr<void> shown(nullptr, [this](void*) { show({}); });
    show("compiling the module");
    const Module module = HANGAR_TRY(io::run_to_end(loop_, read_module(work->path())));
    show("compressing the module");
    std::set<std::string> tags(options_.tags.begin(), options_.tags.end());
    tags.insert({"latest", "sha256_" + module.sha256, target.tag});
    const Result<modules::Pushed> pushed = io::run_to_end(
        loop_, modules::push_module(
                   http_,
                   {.module = module.file,
                    .target = std::move(target),
                    .more_tags = {tags.begin(), tags.end()},
                    .credentials = HANGAR_TRY(host::read_docker_config(config_)),
                    .transport = transport(),
                    .on_progress = [this](std::uint64_t bytes,
                                          std::uint64_t of) { show(pushed_text(bytes, of)); },
                    .plain_http = options_.insecure,
                    .work = work->path()},
                   std::stop_token()));
    if (!pushed) {
      return std::unexpected(Error(pushed.error()).in("failed to stow wasm artifact"));
    }
    // With the default indentation of yaml.v3.
    std::string text =
        fmt::format("digestUrl: {}\nmoduleSHA: {}\ntags:\n", pushed->reference, pushed->sha256);
    for (const std::string& tag : tags) {
      const std::string quoted = json::to_yaml_as_go(json::Value(json::Array{json::Value(tag)}));
      text += "    " + quoted;
    }
    return text;
  }

 private:
  void show(std::string_view text) const {
    if (options_.show) options_.show(text);
  }

  [[nodiscard]] std::shared_ptr<const http::Transport> transport() const {
    auto transport = std::make_shared<http::Transport>();
    transport->skip_verify = options_.insecure;
    return transport;
  }

  // Compiles the module, so that no module is pushed that a host cannot run.
  [[nodiscard]] io::Task<Result<Module>> read_module(const std::filesystem::path& directory) {
    host::ModuleFiles files = HANGAR_CO_TRY(host::ModuleFiles::open(config_, log_));
    host::ModuleSupply supply(std::move(files), config_, loop_, workers_, http_, nullptr,
                              host::FileModules::Allowed, log_);
    HANGAR_CO_TRY(supply.code_cache.open());
    modules::Reference reference =
        HANGAR_CO_TRY(modules::Reference::parse(options_.module.string()));
    if (!std::holds_alternative<modules::FileSource>(reference.source())) {
      co_return fail(
          ErrorKind::InvalidInput,
          fmt::format("failed to load wasm file: {} is not a file", reference.display()));
    }
    Result<modules::Fetched> fetched = co_await supply.fetcher.fetch(
        modules::Requester::cluster_wide(), std::move(reference), {}, std::stop_token());
    if (!fetched) {
      co_return std::unexpected(std::move(fetched).error().in("failed to load wasm file"));
    }
    const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(fetched->sha256));
    Module module{.sha256 = fetched->sha256, .file = directory / "module.wasm"};
    HANGAR_CO_TRY(io::write_file(module.file, fetched->wasm));
    const auto compiled = co_await supply.code_cache.load(
        digest, std::make_shared<const std::string>(std::move(fetched->wasm)), std::stop_token());
    co_await supply.code_cache.stop();
    if (!compiled) {
      co_return std::unexpected(Error(compiled.error()).in("invalid wasm module"));
    }
    co_return module;
  }

  const host::Config& config_;
  const StowOptions& options_;
  const Log& log_;
  io::Loop loop_;
  io::Workers workers_;
  http::Client http_;
};

}  // namespace

Result<Finished> stow(const host::Config& config, const StowOptions& options,
                      const Streams& streams, const Log& log) {
  for (const std::string& tag : options.tags) {
    if (!is_tag(tag)) {
      return fail(ErrorKind::InvalidInput, fmt::format("--tag: \"{}\" is not a tag", tag));
    }
  }
  const host::Config resolved = HANGAR_TRY(host::resolve(config));
  streams.say(HANGAR_TRY(Stow(resolved, options, log).run()));
  return Finished{};
}

}  // namespace hangar::commands
