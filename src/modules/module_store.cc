#include "modules/module_store.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "io/file.h"
#include "json/value.h"
#include "modules/internal/gzip.h"
#include "modules/internal/sha256.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::modules {

namespace {

constexpr std::string_view kSuffix = ".wasm.gz";
constexpr std::string_view kIndexName = "index.json";
constexpr std::int64_t kIndexVersion = 1;
// kModuleReferencesMax lines, even if every URL in them is as long as URLs get.
constexpr std::uint64_t kIndexBytesMax = 64 * limits::kMiB;

// "<sha256>.wasm.gz"
bool is_module_name(std::string_view name) {
  return name.ends_with(kSuffix) && is_sha256_hex(name.substr(0, name.size() - kSuffix.size()));
}

// What io::write_file leaves behind when the process is killed in it: the name and ".XXXXXX".
bool is_unfinished_name(std::string_view name) {
  constexpr std::size_t kRandomBytes = 7;
  if (name.size() <= kRandomBytes || name[name.size() - kRandomBytes] != '.') return false;
  const std::string_view final_name = name.substr(0, name.size() - kRandomBytes);
  return final_name == kIndexName || is_module_name(final_name);
}

// Now, by the file system's clock.
void mark_used(const std::filesystem::path& path) {
  // If it fails, the module only looks older than it is.
  static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), nullptr, 0));
}

}  // namespace

Result<std::unique_ptr<ModuleStore>> ModuleStore::open(std::filesystem::path directory,
                                                       Bounds bounds, const Log& log) {
  HANGAR_TRY(io::make_private_directory(directory));
  auto store = std::unique_ptr<ModuleStore>(new ModuleStore(std::move(directory), bounds));
  store->remove_unfinished();
  store->load_index(log);
  return store;
}

Result<> ModuleStore::write(const std::string& sha256, std::string_view gzipped) {
  const std::scoped_lock lock(disk_mutex_);
  HANGAR_TRY(io::write_file(path_of(sha256), gzipped));
  trim(sha256);
  return {};
}

Result<> ModuleStore::add(const std::string& sha256, std::string_view module) {
  if (has(sha256)) return {};
  return write(sha256, gzip(module));
}

Result<std::string> ModuleStore::read(const std::string& sha256) {
  const std::filesystem::path path = path_of(sha256);
  const std::string gzipped = HANGAR_TRY(io::read_file(path, limits::kModuleBytesMax));
  Result<std::string> wasm = gunzip(gzipped, limits::kModuleBytesMax);
  if (!wasm || sha256_hex(*wasm) != sha256) {
    std::error_code ignored;  // A file that stays is found corrupt again.
    std::filesystem::remove(path, ignored);
    return fail(ErrorKind::Corrupt, fmt::format("stored module {} is damaged", sha256));
  }
  mark_used(path);
  return wasm;
}

bool ModuleStore::has(const std::string& sha256) const {
  std::error_code ignored;
  return is_sha256_hex(sha256) && std::filesystem::is_regular_file(path_of(sha256), ignored);
}

Result<> ModuleStore::remember(const std::string& key, Resolution resolution) {
  const std::scoped_lock disk_lock(disk_mutex_);
  std::string text;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = by_key_.find(key);
    if (found != by_key_.end() && found->second->second == resolution) return {};
    put(key, std::move(resolution));
    text = encoded_index();
  }
  return io::write_file(directory_ / kIndexName, text);
}

std::optional<Resolution> ModuleStore::resolution(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

std::filesystem::path ModuleStore::path_of(const std::string& sha256) const {
  return directory_ / (sha256 + std::string(kSuffix));
}

void ModuleStore::load_index(const Log& log) {
  const Result<std::string> text = io::read_file(directory_ / kIndexName, kIndexBytesMax);
  if (!text && text.error().kind() == ErrorKind::NotFound) return;
  const Result<json::Value> index =
      text ? json::parse(*text) : Result<json::Value>(std::unexpected(text.error()));
  if (!index || json::int_at(*index, {"version"}) != kIndexVersion) {
    log.warning("module index dropped",
                {{"error", index ? "unknown version" : index.error().message()}});
    return;
  }
  const json::Array* const references = json::array_at(*index, {"references"});
  if (references == nullptr) return;
  const std::scoped_lock lock(mutex_);
  // The last one is the least recently used; put() puts in front.
  for (std::size_t left = references->size(); left > 0; --left) {
    const json::Value& entry = (*references)[left - 1];
    const std::string_view key = json::string_at(entry, {"key"});
    Resolution resolution{.sha256 = std::string(json::string_at(entry, {"sha256"})),
                          .size_bytes = static_cast<std::uint64_t>(
                              std::max<std::int64_t>(json::int_at(entry, {"size"}), 0)),
                          .resolved = std::string(json::string_at(entry, {"resolved"})),
                          .etag = std::string(json::string_at(entry, {"etag"})),
                          .last_modified = std::string(json::string_at(entry, {"lastModified"})),
                          .revision = std::string(json::string_at(entry, {"revision"}))};
    if (!key.empty() && is_sha256_hex(resolution.sha256)) {
      put(std::string(key), std::move(resolution));
    }
  }
}

void ModuleStore::put(const std::string& key, Resolution resolution) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    const Entries::iterator entry = found->second;
    by_key_.erase(found);
    entries_.erase(entry);
  }
  entries_.emplace_front(key, std::move(resolution));
  by_key_[entries_.front().first] = entries_.begin();
  while (entries_.size() > bounds_.references) {
    by_key_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

std::string ModuleStore::encoded_index() const {
  json::Array references;
  for (const auto& [key, resolution] : entries_) {
    references.push_back(json::Object({{"key", key},
                                       {"sha256", resolution.sha256},
                                       {"size", resolution.size_bytes},
                                       {"resolved", resolution.resolved},
                                       {"etag", resolution.etag},
                                       {"lastModified", resolution.last_modified},
                                       {"revision", resolution.revision}}));
  }
  return json::dump(
      json::Object({{"version", kIndexVersion}, {"references", std::move(references)}}));
}

void ModuleStore::remove_unfinished() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    if (is_unfinished_name(entry.path().filename().string())) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

void ModuleStore::trim(const std::string& keep_sha256) {
  struct Stored {
    std::filesystem::file_time_type used;
    std::uint64_t bytes = 0;
    std::filesystem::path path;
  };
  const std::filesystem::path keep = path_of(keep_sha256);
  std::vector<Stored> modules;
  std::uint64_t total = 0;
  std::error_code ignored;  // What vanishes meanwhile counts as zero bytes, and is gone.
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    if (!is_module_name(entry.path().filename().string())) continue;
    std::error_code error;
    const std::uint64_t bytes = entry.file_size(error);
    if (error) continue;
    total += bytes;
    if (entry.path() == keep) continue;
    modules.push_back({.used = entry.last_write_time(error), .bytes = bytes, .path = entry.path()});
  }
  std::ranges::sort(modules, {}, &Stored::used);
  for (const Stored& module : modules) {
    if (total <= bounds_.bytes) return;
    std::filesystem::remove(module.path, ignored);
    total -= module.bytes;
  }
}

}  // namespace hangar::modules
