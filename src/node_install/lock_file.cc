#include "node_install/lock_file.h"

#include "base/digest.h"
#include "base/result.h"
#include "json/value.h"
#include "node_install/files.h"
#include "node_install/limits.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::node_install {

namespace {

constexpr int kFormat = 1;

std::string path_in(std::string_view install_directory) {
  return fmt::format("{}/{}", install_directory, kLockName);
}

}  // namespace

std::string to_text(const Lock& lock) {
  json::Array files;
  for (const Lock::File& file : lock.files) {
    files.push_back(
        json::Object{{"path", file.path}, {"sha256", file.sha256}, {"handler", file.handler}});
  }
  json::Array directories;
  for (const std::string& directory : lock.directories)
    directories.push_back(json::String(directory));
  return json::dump_pretty(json::Object{
             {"format", kFormat},
             {"version", lock.version},
             {"distribution", lock.distribution},
             {"config",
              json::Object{{"path", lock.config}, {"sha256Before", lock.config_sha256_before}}},
             {"files", std::move(files)},
             {"directories", std::move(directories)},
             {"restartPending", lock.restart_pending},
         }) +
         "\n";
}

Result<Lock> parse_lock(std::string_view text) {
  const auto corrupt = [] { return fail(ErrorKind::Corrupt, "not a lock file of hangar-node"); };
  const Result<json::Value> document = json::parse(text);
  if (!document) return corrupt();
  const std::int64_t format = json::int_at(*document, {"format"});
  if (format == 0) return corrupt();
  if (format != kFormat) {
    return fail(ErrorKind::Corrupt,
                fmt::format("the lock file has format {}, this hangar-node reads format {}", format,
                            kFormat));
  }
  Lock lock;
  lock.version = json::string_at(*document, {"version"});
  lock.distribution = json::string_at(*document, {"distribution"});
  lock.config = json::string_at(*document, {"config", "path"});
  lock.config_sha256_before = json::string_at(*document, {"config", "sha256Before"});
  lock.restart_pending = json::bool_at(*document, {"restartPending"});
  const json::Array* files = json::array_at(*document, {"files"});
  const json::Array* directories = json::array_at(*document, {"directories"});
  if (!lock.config.starts_with('/') || files == nullptr || directories == nullptr) return corrupt();
  for (const json::Value& file : *files) {
    Lock::File& read = lock.files.emplace_back();
    read.path = json::string_at(file, {"path"});
    read.sha256 = json::string_at(file, {"sha256"});
    read.handler = json::string_at(file, {"handler"});
    if (!read.path.starts_with('/') || !is_sha256_hex(read.sha256)) return corrupt();
  }
  for (const json::Value& directory : *directories) {
    lock.directories.emplace_back(json::string_at(directory, {}));
    if (!lock.directories.back().starts_with('/')) return corrupt();
  }
  return lock;
}

Result<std::optional<Lock>> read_lock(const Files& files, std::string_view install_directory) {
  const std::string path = path_in(install_directory);
  const Result<std::string> text = files.read(path, limits::kListBytesMax);
  if (!text && text.error().kind() == ErrorKind::NotFound) return std::optional<Lock>();
  if (!text) return std::unexpected(text.error());
  Result<Lock> lock = parse_lock(*text);
  if (!lock) return std::unexpected(std::move(lock).error().in(path));
  return std::optional(*std::move(lock));
}

Result<> write_lock(Files& files, std::string_view install_directory, const Lock& lock) {
  return files.write(path_in(install_directory), to_text(lock), Access::KeepOrPrivate);
}

}  // namespace hangar::node_install
