#include "commands/module_signing.h"

#include "abi/flight/evaluation.h"
#include "base/invalid.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "commands/flight_runner.h"
#include "commands/module_fetch.h"
#include "commands/streams.h"
#include "domains/zygote.h"
#include "host/config.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/go_text.h"
#include "json/value.h"
#include "modules/fetcher.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "modules/verifier.h"
#include "schematics/key_files.h"
#include "schematics/keys.h"
#include "schematics/sections.h"
#include "schematics/signature.h"
#include "wasm/limits.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::commands {

namespace {

std::span<const std::byte> module_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Reads a module from a file or URL, for a command that does so once.
class ModuleReader {
 public:
  ModuleReader(const host::Config& config, const Log& log)
      : config_(config), log_(log), workers_(loop_, 2), http_(loop_) {}

  // The result is uncompressed.
  [[nodiscard]] Result<modules::Fetched> read(const std::string& module) {
    return io::run_to_end(loop_, fetch_module(config_, loop_, workers_, http_, module, log_));
  }

  // Runs the module with these arguments and returns its output.
  [[nodiscard]] Result<std::string> ask(modules::Source module, std::vector<std::string> args,
                                        std::optional<domains::ZygoteProcess> zygote) {
    FlightRunner runner({.config = config_,
                         .loop = loop_,
                         .workers = workers_,
                         .http = http_,
                         .metrics = metrics_,
                         .log = log_},
                        std::move(zygote));
    abi::flight::Output output = HANGAR_TRY(
        io::run_to_end(loop_, runner.ask(std::move(module), std::move(args), std::stop_token())));
    if (output.exit_code == 0) return std::move(output.stdout_bytes);
    return fail(
        ErrorKind::GuestFault,
        fmt::format(
            "failed to instantiate module: module closed with exit_code({}): {}", output.exit_code,
            output.stderr_bytes.empty() ? "(no output captured on stderr)" : output.stderr_bytes));
  }

  // Denied: the module does not meet the rule of the module policy.
  [[nodiscard]] Result<> verify(const std::string& module) {
    return io::run_to_end(loop_, verify_by_rule(module));
  }

 private:
  [[nodiscard]] io::Task<Result<>> verify_by_rule(std::string module) {
    host::ModuleFiles files = HANGAR_CO_TRY(host::ModuleFiles::open(config_, log_));
    host::ModuleSupply supply(std::move(files), config_, loop_, workers_, http_, nullptr,
                              host::FileModules::Allowed, log_);
    const modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(module));
    HANGAR_CO_TRY(supply.sources.allow_list.check(reference));
    if (!supply.gate) co_return invalid("module-policy is required");
    HANGAR_CO_TRY(supply.gate->check(reference));
    const modules::Requester requester = modules::Requester::cluster_wide();
    modules::Fetched fetched =
        HANGAR_CO_TRY(co_await supply.fetcher.fetch(requester, reference, {}, std::stop_token()));
    Result<> admitted = co_await supply.gate->admit({.requester = requester,
                                                     .reference = reference,
                                                     .manifest = fetched.manifest,
                                                     .sha256 = fetched.sha256},
                                                    std::stop_token());
    modules::Verifier* const verifier = supply.gate->verifier_for(reference);
    if (admitted && verifier != nullptr) {
      admitted = co_await verifier->verify(
          fetched.sha256, std::make_shared<const std::string>(std::move(fetched.wasm)),
          requester.consumer("module"), std::stop_token());
      if (!admitted)
        admitted =
            std::unexpected(std::move(admitted).error().in(supply.gate->rule_for(reference)));
    }
    if (admitted) co_return admitted;
    co_return std::unexpected(
        std::move(admitted).error().in(fmt::format("module {}", reference.display())));
  }

  const host::Config& config_;
  const Log& log_;
  Metrics metrics_;
  io::Loop loop_;
  io::Workers workers_;
  http::Client http_;
};

Result<std::string> read_module_file(const std::filesystem::path& path) {
  Result<std::string> bytes = io::read_file(path, limits::kModuleBytesMax);
  if (!bytes) return std::unexpected(std::move(bytes).error().in("failed to read wasm"));
  return bytes;
}

// Replaces a file so that readers see the old or the complete new content. Like a write in place,
// it keeps links and permissions.
Result<> replace_file(std::filesystem::path path, std::string_view bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  std::filesystem::perms permissions = status.permissions();
  if (std::filesystem::exists(status)) {
    // Replaces the target of a link, not the link.
    path = std::filesystem::canonical(path, error);
    if (error) return fail(ErrorKind::Unavailable, path.string() + ": " + error.message());
  } else {
    // POSIX reads the umask only by setting it.
    const ::mode_t mask = ::umask(0);
    ::umask(mask);
    permissions = static_cast<std::filesystem::perms>(0644U & ~mask);
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    std::ofstream(path, std::ios::binary) << bytes;  // A pipe, for example.
    return {};
  }
  HANGAR_TRY(io::write_file(path, bytes));
  std::filesystem::permissions(path, permissions, error);
  if (error) return fail(ErrorKind::Unavailable, path.string() + ": " + error.message());
  return {};
}

// `text` in the form of a command's section.
Result<std::string> as_command(std::string_view text) {
  json::Array arguments;
  for (const std::string& one : HANGAR_TRY(schematics::read_command(text)))
    arguments.emplace_back(one);
  return json::dump_as_go(arguments);
}

}  // namespace

Result<Finished> list_schematics(const host::Config& config, const std::string& module,
                                 const Streams& streams, const Log& log) {
  const host::Config resolved = HANGAR_TRY(host::resolve(config));
  const Result<modules::Fetched> fetched = ModuleReader(resolved, log).read(module);
  if (!fetched) {
    return std::unexpected(
        Error(fetched.error()).in("failed to list schematics: failed to load wasm"));
  }
  const Result<std::vector<schematics::Schematic>> found =
      schematics::schematics_of(module_bytes(fetched->wasm));
  if (!found) {
    return std::unexpected(
        Error(found.error()).in("failed to list schematics: invalid wasm module"));
  }
  for (const schematics::Schematic& one : *found)
    streams.out(one.name + "\n");
  return Finished{};
}

Result<Finished> get_schematic(const host::Config& config, const std::string& module,
                               std::string_view name, const Streams& streams, const Log& log) {
  constexpr std::string_view kDoing = "failed to get schematics";
  const host::Config resolved = HANGAR_TRY(host::resolve_for_guests(config));
  // The zygote must start before anything is read, so that its memory contains none of it.
  std::optional<domains::ZygoteProcess> zygote = HANGAR_TRY(host::start_zygote(resolved));
  ModuleReader reader(resolved, log);
  const Result<modules::Fetched> fetched = reader.read(module);
  if (!fetched) {
    return std::unexpected(
        Error(fetched.error()).in(fmt::format("{}: failed to load wasm", kDoing)));
  }
  const Result<std::vector<schematics::Schematic>> all =
      schematics::schematics_of(module_bytes(fetched->wasm));
  if (!all) {
    return std::unexpected(Error(all.error()).in(fmt::format("{}: invalid wasm module", kDoing)));
  }
  const auto found = std::ranges::find(*all, name, &schematics::Schematic::name);
  if (found == all->end()) {
    return fail(ErrorKind::NotFound,
                fmt::format("{}: schematics property not found: {}", kDoing, name));
  }
  if (found->kind == schematics::Kind::Document) {
    streams.out(found->contents);
    return Finished{};
  }
  Result<std::vector<std::string>> args = schematics::read_command(found->contents);
  if (!args) {
    return std::unexpected(
        std::move(args).error().in(fmt::format("{}: failed to decode schematic args", kDoing)));
  }
  const Result<std::string> printed = reader.ask({.reference = module, .sha256 = fetched->sha256},
                                                 *std::move(args), std::move(zygote));
  if (!printed) {
    return std::unexpected(
        Error(printed.error())
            .in(fmt::format("{}: failed to execute schematics: {}", kDoing, name)));
  }
  streams.out(*printed);
  return Finished{};
}

Result<Finished> set_schematic(const SetSchematicOptions& options) {
  const modules::Reference reference = HANGAR_TRY(modules::Reference::parse(options.module));
  const auto* const file = std::get_if<modules::FileSource>(&reference.source());
  if (file == nullptr) {
    return invalid("failed to set schematics: cannot set schematics on remote wasm asset");
  }
  if (options.contents.empty()) return invalid("no data for section");
  schematics::Schematic schematic{
      .name = options.name, .kind = options.kind, .contents = options.contents};
  if (options.kind == schematics::Kind::Command) {
    Result<std::string> command = as_command(options.contents);
    if (!command) {
      return std::unexpected(
          std::move(command).error().in("could not parse stdin as command args"));
    }
    schematic.contents = *std::move(command);
  }
  const std::string module = HANGAR_TRY(read_module_file(file->path));
  const Result<std::string> changed = schematics::with_schematic(module_bytes(module), schematic);
  if (!changed) return std::unexpected(Error(changed.error()).in("invalid wasm module"));
  HANGAR_TRY(replace_file(file->path, *changed));
  return Finished{};
}

Result<Finished> sign(const SignOptions& options) {
  const std::string module = HANGAR_TRY(read_module_file(options.module));
  const schematics::PrivateKey key = HANGAR_TRY(schematics::load_private_key(options.key));
  const Result<std::string> signed_module =
      schematics::sign_module(module_bytes(module), key, options.is_signed);
  if (!signed_module) {
    return std::unexpected(Error(signed_module.error()).in("failed to sign module"));
  }
  Result<> written =
      replace_file(options.out.empty() ? options.module : options.out, *signed_module);
  if (!written)
    return std::unexpected(std::move(written).error().in("failed to write signed module"));
  return Finished{};
}

Result<Finished> verify(const VerifyOptions& options) {
  const std::string module = HANGAR_TRY(read_module_file(options.module));
  const Result<schematics::PublicKeys> keys = schematics::load_public_keys(options.keys);
  if (!keys) return std::unexpected(Error(keys.error()).in("failed to load public key(s)"));
  Result<> verified = schematics::verify_module(module_bytes(module), *keys);
  if (!verified) return std::unexpected(std::move(verified).error().in("failed to verify module"));
  return Finished{};
}

Result<Finished> verify_by_policy(const host::Config& config, const std::string& module,
                                  const Log& log) {
  const host::Config resolved = HANGAR_TRY(host::resolve(config));
  HANGAR_TRY(ModuleReader(resolved, log).verify(module));
  return Finished{};
}

}  // namespace hangar::commands
