#include "modules/module_store.h"

#include "base/digest.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/packing.h"
#include "base/result.h"
#include "base/utf8.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "io/file.h"
#include "json/value.h"
#include "modules/internal/gzip.h"
#include "modules/internal/wasm_bytes.h"
#include "modules/limits.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::modules {

namespace {

constexpr std::string_view kSuffix = ".wasm.gz";
constexpr std::string_view kIndexName = "index.json";
// Since version 2 an entry belongs to one requester.
constexpr std::int64_t kIndexVersion = 2;
// Separates the two parts of a key; occurs in neither.
constexpr char kKeySeparator = ' ';
// kModuleReferencesMax entries, even if every URL in them has the maximal length.
constexpr std::uint64_t kIndexBytesMax = 64 * limits::kMiB;

// "<sha256>.wasm.gz"
bool is_module_name(std::string_view name) {
  return name.ends_with(kSuffix) && is_sha256_hex(name.substr(0, name.size() - kSuffix.size()));
}

// The name of io::write_file's temporary file, left if the process is killed: the name and
// ".XXXXXX".
bool is_unfinished_name(std::string_view name) {
  constexpr std::size_t kRandomBytes = 7;
  if (name.size() <= kRandomBytes || name[name.size() - kRandomBytes] != '.') return false;
  const std::string_view final_name = name.substr(0, name.size() - kRandomBytes);
  return final_name == kIndexName || is_module_name(final_name);
}

// A younger file may be in use by another process of the same user: several commands share a store.
constexpr std::chrono::hours kUnfinishedAge{1};

// Sets the time of last use to now, by the file system's clock.
void mark_used(const std::filesystem::path& path) {
  // If it fails, the module only looks older than it is.
  static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), nullptr, 0));
}

// The fields of an entry, except its key, which comes first.
template <class Archive, class Meaning>
void visit(Archive& archive, Meaning& resolution) {
  archive(resolution.sha256, resolution.size_bytes, resolution.resolved, resolution.etag,
          resolution.last_modified, resolution.revision, resolution.credential,
          resolution.proven_at);
}

PackedBytes pack(std::string_view key, const Resolution& resolution) {
  Packer packer;
  packer(key);
  visit(packer, resolution);
  return packer.bytes();
}

std::string_view key_of(const PackedBytes& entry) {
  std::string_view key;
  Unpacker unpacker(entry);
  unpacker(key);
  return key;
}

Resolution resolution_of(const PackedBytes& entry) {
  std::string_view key;
  Resolution resolution;
  Unpacker unpacker(entry);
  unpacker(key);
  visit(unpacker, resolution);
  return resolution;
}

// The requester of an entry, with the space after it.
std::string_view requester_of(std::string_view key) {
  return key.substr(0, key.find(kKeySeparator) + 1);
}

// The requester of an entry (Requester::id()) as a tenant.
budget::Tenant tenant_of(std::string_view key) {
  std::string_view requester = requester_of(key);
  if (!requester.empty()) requester.remove_suffix(1);
  return budget::Tenant::of_namespace(requester == "*" ? std::string() : std::string(requester));
}

budget::CacheCharges::Key charge_key(const std::string& sha256) {
  return {.shelf = budget::CacheCharges::Shelf::Modules, .name = sha256};
}

// The file could not be read; otherwise its bytes are wrong.
bool is_of_disk(const Error& error) {
  return error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::Denied ||
         error.kind() == ErrorKind::Unavailable;
}

bool is_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

// Entry by entry: as one document, thousands of entries would take megabytes for each new one.
std::string encoded_index(const std::vector<PackedBytes>& entries) {
  std::string text = fmt::format(R"({{"version":{},"references":[)", kIndexVersion);
  std::string_view separator;
  for (const PackedBytes& entry : entries) {
    const Resolution resolution = resolution_of(entry);
    text += std::exchange(separator, ",");
    text += json::dump(json::Object({{"key", key_of(entry)},
                                     {"sha256", resolution.sha256},
                                     {"size", resolution.size_bytes},
                                     {"resolved", resolution.resolved},
                                     {"etag", resolution.etag},
                                     {"lastModified", resolution.last_modified},
                                     {"revision", resolution.revision},
                                     {"credential", resolution.credential},
                                     {"provenAt", resolution.proven_at}}));
  }
  return text += "]}";
}

}  // namespace

std::string proof_key(std::string_view requester, std::string_view reference) {
  return fmt::format("{}{}{}", requester, kKeySeparator, reference);
}

Result<std::unique_ptr<ModuleStore>> ModuleStore::open(std::filesystem::path directory,
                                                       Bounds bounds, const Log& log) {
  HANGAR_TRY(io::make_private_directory(directory));
  auto store = std::unique_ptr<ModuleStore>(new ModuleStore(std::move(directory), bounds));
  store->remove_unfinished();
  store->load_index(log);
  return store;
}

void ModuleStore::charge_to(budget::CacheCharges& charges) {
  charges_ = &charges;
  charges.set_remover(budget::CacheCharges::Shelf::Modules,
                      [this](const std::string& sha256) { remove_unused(sha256); });
  std::vector<PackedBytes> entries;
  {
    const std::scoped_lock lock(mutex_);
    entries.assign(entries_.rbegin(), entries_.rend());
  }
  // A charge that is refused here is repeated when the requester asks for the module again.
  for (const PackedBytes& entry : entries)
    (void)charge(resolution_of(entry).sha256, tenant_of(key_of(entry)));
}

Result<> ModuleStore::charge(const std::string& sha256, const budget::Tenant& user,
                             std::uint64_t bytes) {
  if (charges_ == nullptr) return {};
  if (const auto charged = charges_->charge(user, charge_key(sha256), bytes); !charged) {
    return std::unexpected(budget::too_little_disk(charged.error()));
  }
  return {};
}

Result<> ModuleStore::charge(const std::string& sha256, const budget::Tenant& user) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path_of(sha256), error);
  return error ? Result<>() : charge(sha256, user, bytes);
}

Result<> ModuleStore::write(const std::string& sha256, std::string_view gzipped,
                            const budget::Tenant& user) {
  HANGAR_TRY(charge(sha256, user, gzipped.size()));
  const std::scoped_lock lock(disk_mutex_);
  if (Result<> written = write_file(path_of(sha256), gzipped); !written) {
    if (!has(sha256)) forget_file(sha256);
    return written;
  }
  trim(sha256);
  return {};
}

Result<> ModuleStore::add(const std::string& sha256, std::string_view module,
                          const budget::Tenant& user) {
  if (has(sha256)) return charge(sha256, user);
  return write(sha256, gzip(module), user);
}

Result<> ModuleStore::accept(const std::string& sha256, std::string bytes,
                             const budget::Tenant& user, std::uint64_t bytes_max) {
  const Result<Unpacked> unpacked = unpack(std::move(bytes), bytes_max, Content::ModuleOrScript);
  if (!unpacked || unpacked->sha256 != sha256) {
    return fail(ErrorKind::Corrupt, fmt::format("the bytes are not those of sha256:{}", sha256));
  }
  return add(sha256, unpacked->wasm, user);
}

void ModuleStore::forget_file(const std::string& sha256) {
  if (charges_ != nullptr) charges_->forget(charge_key(sha256));
}

void ModuleStore::remove_unused(const std::string& sha256) {
  const std::scoped_lock lock(disk_mutex_);
  // Another thread may be about to write it again.
  if (charges_->is_used(charge_key(sha256))) return;
  std::error_code ignored;  // A file that remains is removed by trim().
  std::filesystem::remove(path_of(sha256), ignored);
}

Result<std::string> ModuleStore::read(const std::string& sha256) {
  const std::filesystem::path path = path_of(sha256);
  Result<std::string> wasm = gunzip_file(path, limits::kFetchedBytesMax);
  if (!wasm && is_of_disk(wasm.error())) return not_read(sha256, std::move(wasm).error());
  if (!wasm || sha256_hex(*wasm) != sha256) return damaged(sha256);
  mark_used(path);
  return wasm;
}

Result<std::string> ModuleStore::read_packed(const std::string& sha256) {
  const std::filesystem::path path = path_of(sha256);
  Result<std::string> packed = io::read_file(path, limits::kFetchedBytesMax);
  if (!packed) return not_read(sha256, std::move(packed).error());
  const Result<std::string> wasm = gunzip(*packed, limits::kFetchedBytesMax);
  if (!wasm || sha256_hex(*wasm) != sha256) return damaged(sha256);
  mark_used(path);
  return packed;
}

std::unexpected<Error> ModuleStore::not_read(const std::string& sha256, Error error) {
  if (error.kind() == ErrorKind::NotFound) forget_file(sha256);
  return std::unexpected(std::move(error));
}

std::unexpected<Error> ModuleStore::damaged(const std::string& sha256) {
  std::error_code ignored;  // A file that remains is found corrupt again.
  std::filesystem::remove(path_of(sha256), ignored);
  forget_file(sha256);
  return fail(ErrorKind::Corrupt, fmt::format("stored module {} is damaged", sha256));
}

std::uint64_t ModuleStore::unpacked_bytes(const std::string& sha256) const {
  return claimed_size_of_file(path_of(sha256), limits::kFetchedBytesMax);
}

bool ModuleStore::has(const std::string& sha256) const {
  std::error_code ignored;
  return is_sha256_hex(sha256) && std::filesystem::is_regular_file(path_of(sha256), ignored);
}

Result<> ModuleStore::remember(const std::string& key, const Resolution& resolution) {
  // The index is JSON, and an index that cannot be parsed is lost as a whole.
  if (!is_utf8(key) || !is_utf8(resolution.resolved) || !is_utf8(resolution.etag) ||
      !is_utf8(resolution.last_modified) || !is_utf8(resolution.revision)) {
    return fail(ErrorKind::InvalidInput, "the reference or the answer of its source is not UTF-8");
  }
  PackedBytes entry = pack(key, resolution);
  const std::scoped_lock disk_lock(disk_mutex_);
  {
    const std::scoped_lock lock(mutex_);
    const auto found = find(key);
    bool is_known = false;
    if (found != entries_.end()) {
      Resolution known = resolution_of(*found);
      known.proven_at = resolution.proven_at;
      is_known = known == resolution;
      entries_.erase(found);
    }
    entries_.push_front(std::move(entry));
    if (is_known && !is_index_behind_) return {};
    if (entries_.size() > bounds_.references) drop_entry();
  }
  return write_index();
}

void ModuleStore::drop_entry() {
  std::map<std::string_view, std::size_t> counts;
  std::size_t most = 0;
  for (const PackedBytes& entry : entries_)
    most = std::max(most, ++counts[requester_of(key_of(entry))]);
  const auto least_recent = std::ranges::find_if(
      entries_.rbegin(), entries_.rend(),
      [&](const PackedBytes& entry) { return counts[requester_of(key_of(entry))] == most; });
  if (least_recent != entries_.rend()) entries_.erase(std::next(least_recent).base());
}

Result<> ModuleStore::write_index() {
  std::vector<PackedBytes> entries;
  {
    const std::scoped_lock lock(mutex_);
    entries.assign(entries_.begin(), entries_.end());
  }
  Result<> written = write_file(directory_ / kIndexName, encoded_index(entries));
  is_index_behind_ = !written;
  return written;
}

Result<> ModuleStore::write_file(const std::filesystem::path& path, std::string_view bytes) const {
  // Somebody may have removed it, because a cache may be removed.
  HANGAR_TRY(io::make_private_directory(directory_));
  // Files are checked when they are read, and made anew.
  return io::write_file(path, bytes, io::Durability::None);
}

Result<bool> ModuleStore::forget(const IsVoid& is_void) {
  const std::scoped_lock disk_lock(disk_mutex_);
  {
    const std::scoped_lock lock(mutex_);
    const auto count = std::erase_if(entries_, [&](const PackedBytes& entry) {
      return is_void(key_of(entry), resolution_of(entry));
    });
    if (count == 0) return false;
  }
  HANGAR_TRY(write_index());
  return true;
}

std::optional<Resolution> ModuleStore::resolution(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = find(key);
  if (found == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found);
  return resolution_of(*found);
}

std::optional<Resolution> ModuleStore::hint(std::string_view reference) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find_if(entries_, [reference](const PackedBytes& entry) {
    const std::string_view key = key_of(entry);
    return key.substr(key.find(kKeySeparator) + 1) == reference;
  });
  if (found == entries_.end()) return std::nullopt;
  return resolution_of(*found);
}

std::filesystem::path ModuleStore::path_of(const std::string& sha256) const {
  return directory_ / (sha256 + std::string(kSuffix));
}

void ModuleStore::load_index(const Log& log) {
  const Result<std::string> text = io::read_file(directory_ / kIndexName, kIndexBytesMax);
  if (!text && text.error().kind() == ErrorKind::NotFound) return;
  const Result<json::Value> index =
      text ? json::parse(*text) : Result<json::Value>(std::unexpected(text.error()));
  const std::int64_t version = index ? json::int_at(*index, {"version"}) : 0;
  if (version != kIndexVersion) {
    log.warning("module index dropped",
                {{"error", index ? fmt::format("it has version {}, this hangar reads version {}",
                                               version, kIndexVersion)
                                 : index.error().message()}});
    return;
  }
  const json::Array* const references = json::array_at(*index, {"references"});
  if (references == nullptr) return;
  const std::scoped_lock lock(mutex_);
  std::set<std::string_view> keys;
  for (const json::Value& entry : *references) {
    if (entries_.size() >= bounds_.references) break;
    const std::string_view key = json::string_at(entry, {"key"});
    const Resolution resolution{
        .sha256 = std::string(json::string_at(entry, {"sha256"})),
        .size_bytes =
            static_cast<std::uint64_t>(std::max<std::int64_t>(json::int_at(entry, {"size"}), 0)),
        .resolved = std::string(json::string_at(entry, {"resolved"})),
        .etag = std::string(json::string_at(entry, {"etag"})),
        .last_modified = std::string(json::string_at(entry, {"lastModified"})),
        .revision = std::string(json::string_at(entry, {"revision"})),
        .credential = std::string(json::string_at(entry, {"credential"})),
        .proven_at = static_cast<std::uint64_t>(
            std::max<std::int64_t>(json::int_at(entry, {"provenAt"}), 0))};
    if (key.empty() || !is_sha256_hex(resolution.sha256)) continue;
    if (keys.insert(key).second) entries_.push_back(pack(key, resolution));
  }
}

ModuleStore::Entries::iterator ModuleStore::find(std::string_view key) {
  return std::ranges::find(entries_, key, key_of);
}

void ModuleStore::remove_unfinished() {
  const auto abandoned = std::filesystem::file_time_type::clock::now() - kUnfinishedAge;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    if (!is_unfinished_name(entry.path().filename().string())) continue;
    std::error_code error;
    if (entry.last_write_time(error) > abandoned || error) continue;
    std::filesystem::remove(entry.path(), ignored);
  }
}

void ModuleStore::trim(const std::string& keep_sha256) {
  using File = budget::CacheCharges::File;
  std::vector<File> modules;
  std::vector<std::filesystem::path> paths;
  std::error_code ignored;  // A file that vanishes meanwhile does not count.
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!is_module_name(name)) continue;
    std::error_code error;
    const std::uint64_t bytes = entry.file_size(error);
    if (error) continue;
    const auto used = entry.last_write_time(error).time_since_epoch();
    modules.push_back({.name = name.substr(0, name.size() - kSuffix.size()),
                       .bytes = bytes,
                       .used = static_cast<std::int64_t>(used.count())});
    paths.push_back(entry.path());
  }
  constexpr auto kShelf = budget::CacheCharges::Shelf::Modules;
  const std::vector<std::size_t> chosen =
      charges_ != nullptr
          ? charges_->make_room(kShelf, modules, bounds_.bytes, keep_sha256)
          : budget::CacheCharges().make_room(kShelf, modules, bounds_.bytes, keep_sha256);
  for (const std::size_t index : chosen)
    std::filesystem::remove(paths[index], ignored);
}

}  // namespace hangar::modules
