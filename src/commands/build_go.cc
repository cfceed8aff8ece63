#include "commands/build_go.h"

#include "base/limits.h"
#include "base/result.h"
#include "commands/temporary_directory.h"
#include "go_build/build.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/run.h"
#include "modules/docker_config.h"
#include "modules/push.h"
#include "modules/reference.h"
#include "wasm/limits.h"

#include <fmt/format.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::commands {

namespace {

namespace fs = std::filesystem;

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(limits::kMiB));
}

// The name of a directory itself, not of the path that the user gave: ".", "../cmd".
fs::path default_name(const std::string& program) {
  std::error_code error;
  const fs::path directory = fs::canonical(program, error);
  return go_build::name_of(error ? program : directory.string()) + ".wasm";
}

Result<std::string> push(const fs::path& module, modules::OciSource target,
                         modules::DockerConfig credentials, const BuildGoOptions& options,
                         const fs::path& work, const std::function<void(std::string_view)>& say) {
  auto transport = std::make_shared<http::Transport>();
  transport->skip_verify = options.insecure;
  io::Loop loop;
  http::Client client(loop);
  const modules::Pushed pushed =
      HANGAR_TRY(io::run_to_end(loop, modules::push_module(client,
                                                           {.module = module,
                                                            .target = std::move(target),
                                                            .credentials = std::move(credentials),
                                                            .transport = std::move(transport),
                                                            .plain_http = options.insecure,
                                                            .work = work},
                                                           std::stop_token())));
  say(fmt::format("pushed {} as {} (compressed {}, module sha256 {})", options.push,
                  pushed.reference, mebibytes(pushed.compressed_bytes), pushed.sha256));
  return pushed.reference;
}

}  // namespace

Result<std::string> build_go(const host::Config& config, const BuildGoOptions& options,
                             const std::function<void(std::string_view)>& say) {
  // Checks the target and the credentials before the build, which takes minutes.
  std::optional<modules::OciSource> target;
  modules::DockerConfig credentials;
  if (!options.push.empty()) {
    target = HANGAR_TRY(modules::read_push_target(options.push));
    credentials = HANGAR_TRY(host::read_docker_config(config));
    const Result<modules::Credential> found =
        credentials.find(target->registry, target->repository);
    if (!found) return std::unexpected(found.error());
  }
  const std::unique_ptr<TemporaryDirectory> work = HANGAR_TRY(TemporaryDirectory::make());
  fs::path output = options.output;
  if (output.empty()) {
    output = default_name(options.program);
    if (target) output = work->path() / output;
  }
  const go_build::Built built = HANGAR_TRY(go_build::build({.program = options.program,
                                                            .output = output,
                                                            .tags = options.tags,
                                                            .ldflags = options.ldflags,
                                                            .work = work->path()},
                                                           say));
  say(fmt::format("{}: {}", output.filename().string(), mebibytes(built.bytes)));
  if (built.bytes > limits::kModuleBytesMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("{} has {}, and a module may have {}: a host would refuse it", output.string(),
                    mebibytes(built.bytes), mebibytes(limits::kModuleBytesMax)));
  }
  if (!target) return "file://" + fs::absolute(output).lexically_normal().string();
  return push(output, *std::move(target), std::move(credentials), options, work->path(), say);
}

}  // namespace hangar::commands
