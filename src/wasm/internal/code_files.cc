#include "wasm/internal/code_files.h"

#include "base/assert.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/slots.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "io/file.h"
#include "wasm/code_cache.h"
#include "wasm/code_target.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/fault.h"
#include "wasm/internal/handles.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <wasmtime/module.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::wasm::internal {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEntrySuffix = ".cwasm";
constexpr std::string_view kTemporaryPrefix = "tmp-";

// A mapped file.
class Mapping {
 public:
  explicit Mapping(int descriptor) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0 || status.st_size <= 0) return;
    size_ = static_cast<std::size_t>(status.st_size);
    void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) return;
    address_ = address;
    // Pages read now stay in the page cache, as large pages if the file system supports them: then
    // a fault maps 2 MiB of native code, not 64 KiB.
    ::madvise(address, size_, MADV_HUGEPAGE);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, size_);
  }
  // Empty when the file is empty or cannot be mapped.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(address_), address_ != nullptr ? size_ : 0};
  }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

std::unexpected<Error> discard(const fs::path& entry, std::string why) {
  std::error_code ignored;  // The next caller tries again.
  fs::remove(entry, ignored);
  return fail(ErrorKind::Corrupt, std::move(why));
}

// Signs `key`, a zero byte and the bytes, so that code signed for one module is not accepted
// for another.
std::string sign(const std::string& secret, const std::string& key,
                 std::span<const std::byte> bytes) {
  const std::string_view code(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return to_hex(hmac_sha256(secret, {key, std::string_view("\0", 1), code}));
}

// "<key>-<checksum of the file>.cwasm", or "<key>-<checksum>-<builder>.cwasm"; with a seal the
// checksum is keyed and covers the builder, too.
std::string entry_name(const std::string& key, std::span<const std::byte> bytes,
                       const std::string& builder, const CodeCache::Seal* seal) {
  const std::string suffix = builder.empty() ? "" : "-" + builder;
  const std::string checksum =
      seal == nullptr ? Digest::of(bytes).to_hex() : sign(seal->key, key + suffix, bytes);
  return fmt::format("{}-{}{}{}", key, checksum, suffix, kEntrySuffix);
}

std::unexpected<Error> cannot(std::string_view doing, const fs::path& path) {
  return fail(ErrorKind::Unavailable, fmt::format("{} {}: {}", doing, path.string(),
                                                  std::generic_category().message(errno)));
}

// Copies all of `from`, from its beginning. Bounded, because others may make the file grow.
Result<> copy(const CodeFile& from, int to, const fs::path& path) {
  ::lseek(from.descriptor(), 0, SEEK_SET);
  std::uint64_t total = 0;
  while (true) {
    constexpr std::size_t kPiece = std::size_t{16} * 1024 * 1024;
    const ssize_t count = ::sendfile(to, from.descriptor(), nullptr, kPiece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("copy", path);
    if (count == 0) return {};
    total += static_cast<std::uint64_t>(count);
    if (total > limits::kCompiledBytesMax) {
      return fail(ErrorKind::Corrupt, fmt::format("{} is too large", path.string()));
    }
  }
}

// Makes a copy without a name, which writers of `file` cannot change.
Result<std::shared_ptr<const CodeFile>> copy_privately(const CodeFile& file, const fs::path& entry,
                                                       const fs::path& directory) {
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorKind::Corrupt, fmt::format("{} is not a file", entry.string()));
  }
  HANGAR_TRY(io::make_private_directory(directory));
  std::string name = (directory / "private-XXXXXX").string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) return cannot("make a file in", directory);
  auto out = std::allocate_shared<const CodeFile>(slots::Allocator<CodeFile>(), descriptor);
  ::unlink(name.c_str());
  HANGAR_TRY(copy(file, descriptor, entry));
  return out;
}

bool is_entry(const fs::path& path) {
  return path.extension() == kEntrySuffix;
}

Result<ModuleHandle> deserialize(wasm_engine_t* engine, int descriptor) {
  // By descriptor, so that it is the same file whose checksum was verified.
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  wasmtime_module_t* module = nullptr;
  const ErrorHandle error(wasmtime_module_deserialize_file(engine, path.c_str(), &module));
  if (error != nullptr) return fail(ErrorKind::Corrupt, describe(*error));
  return ModuleHandle(module);
}

}  // namespace

CodeFile::CodeFile(const fs::path& path)
    // Neither blocks on a pipe nor follows a link that someone has put there.
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}

CodeFile::~CodeFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string key_of(const Digest& digest) {
  return fmt::format("{}-{}", digest.to_hex(), CodeTarget::this_machine().id());
}

std::optional<fs::path> find_entry(const fs::path& directory, const std::string& key) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(key) && is_entry(name)) return entry.path();
  }
  return std::nullopt;
}

std::string builder_of(const fs::path& entry) {
  // Digest, target and checksum come first.
  std::string rest = entry.stem().string();
  for (int part = 0; part < 3; ++part) {
    const std::size_t end = rest.find('-');
    if (end == std::string::npos) return {};
    rest.erase(0, end + 1);
  }
  return rest;
}

fs::path temporary_name(const fs::path& directory) {
  static std::atomic<std::uint64_t> count = 0;
  return directory / fmt::format("{}{}-{}", kTemporaryPrefix, ::getpid(), ++count);
}

Result<> publish(const fs::path& temporary, const fs::path& directory, const std::string& key,
                 const std::string& builder, const CodeCache::Seal* seal) {
  const CodeFile file(temporary);
  const Mapping mapping(file.descriptor());
  if (mapping.bytes().empty()) {
    return fail(ErrorKind::Unavailable, "hangar-compile wrote nothing");
  }
  const fs::path entry = directory / entry_name(key, mapping.bytes(), builder, seal);
  std::error_code error;
  if (seal == nullptr) {
    fs::rename(temporary, entry, error);
  } else {
    // Perhaps the temporary file is on another file system. The copy is checked when it is loaded.
    const fs::path part = temporary_name(directory);
    const int descriptor = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0) return cannot("make", part);
    const CodeFile written(descriptor);
    Result<> copied = copy(file, descriptor, part);
    if (copied) fs::rename(part, entry, error);
    std::error_code ignored;
    if (!copied || error) fs::remove(part, ignored);
    fs::remove(temporary, ignored);
    if (!copied) return copied;
  }
  if (error) {
    return fail(ErrorKind::Unavailable,
                fmt::format("rename to {}: {}", entry.string(), error.message()));
  }
  return {};
}

namespace {

// Not make_shared: the weak_ptr of CodeCache would keep the memory of a destroyed module.
std::shared_ptr<const Module> share(Module::Parts parts) {
  return std::shared_ptr<const Module>(new Module(std::move(parts)));
}

}  // namespace

Result<std::shared_ptr<const Module>> load_entry(const Engine& engine, const Digest& digest,
                                                 Module::Allocation allocation,
                                                 const fs::path& entry,
                                                 const CodeCache::Seal* seal) {
  std::shared_ptr<const CodeFile> file =
      std::allocate_shared<const CodeFile>(slots::Allocator<CodeFile>(), entry);
  if (file->descriptor() < 0) {
    return fail(errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable,
                fmt::format("open {}: {}", entry.string(), std::generic_category().message(errno)));
  }
  // The time of last use decides what is evicted.
  ::futimens(file->descriptor(), nullptr);
  if (seal != nullptr) {
    Result<std::shared_ptr<const CodeFile>> copied =
        copy_privately(*file, entry, seal->private_directory);
    if (!copied && copied.error().kind() == ErrorKind::Corrupt) {
      return discard(entry, copied.error().message());
    }
    file = HANGAR_TRY(std::move(copied));
  }
  {
    const Mapping mapping(file->descriptor());
    const std::string name = entry_name(key_of(digest), mapping.bytes(), builder_of(entry), seal);
    if (!is_same_in_constant_time(entry.filename().string(), name)) {
      return discard(entry, "native code fails its checksum");
    }
  }

  auto module = load_file(engine, std::move(file), allocation);
  if (!module) return discard(entry, module.error().message());
  return module;
}

Result<std::shared_ptr<const Module>> load_file(const Engine& engine,
                                                std::shared_ptr<const CodeFile> file,
                                                Module::Allocation allocation) {
  // Only the pooled engine refuses a module that is too large for a slot of the pool.
  const Engine::Native& native = engine.native();
  Module::Parts parts{.allocation = allocation, .file = std::move(file)};
  const int descriptor = parts.file->descriptor();
  if (allocation == Module::Allocation::Pooled) {
    if (native.engine(Module::Allocation::Pooled) != nullptr) {
      if (Result<ModuleHandle> module =
              deserialize(native.engine(Module::Allocation::Pooled), descriptor)) {
        parts.code = module->release();
        return share(std::move(parts));
      }
    }
    parts.allocation = Module::Allocation::OnDemand;
  }
  Result<ModuleHandle> module = deserialize(native.engine(parts.allocation), descriptor);
  if (!module) {
    return fail(ErrorKind::Unavailable, "native code is refused: " + module.error().message());
  }
  parts.code = module->release();
  return share(std::move(parts));
}

void evict(const fs::path& directory, std::uint64_t bytes_max, const std::string& kept,
           budget::CacheCharges* charges) {
  std::vector<budget::CacheCharges::File> entries;
  std::vector<fs::path> paths;
  std::error_code error;
  for (const fs::directory_entry& found : fs::directory_iterator(directory, error)) {
    const std::string name = found.path().filename().string();
    if (!is_entry(name)) continue;
    // Another process may remove the file at any time.
    std::error_code gone;
    const auto used = found.last_write_time(gone).time_since_epoch();
    const std::uint64_t bytes = gone ? 0 : found.file_size(gone);
    if (gone) continue;
    entries.push_back({.name = name.substr(0, kept.size()),
                       .bytes = bytes,
                       .used = static_cast<std::int64_t>(used.count())});
    paths.push_back(found.path());
  }
  constexpr auto kShelf = budget::CacheCharges::Shelf::Code;
  const std::vector<std::size_t> chosen =
      charges != nullptr ? charges->make_room(kShelf, entries, bytes_max, kept)
                         : budget::CacheCharges().make_room(kShelf, entries, bytes_max, kept);
  for (const std::size_t index : chosen)
    fs::remove(paths[index], error);
}

Result<std::shared_ptr<const void>> charge(budget::CacheCharges& charges, const fs::path& directory,
                                           const Digest& digest, std::uint64_t image_bytes,
                                           const budget::Tenant& tenant) {
  using Shelf = budget::CacheCharges::Shelf;
  struct Holds {
    budget::CacheCharges::Hold code;
    budget::CacheCharges::Hold images;
  };
  const std::string key = key_of(digest);
  const auto holds = std::make_shared<Holds>();
  std::error_code error;
  const std::optional<fs::path> entry = find_entry(directory, key);
  const std::uint64_t code_bytes = entry ? fs::file_size(*entry, error) : 0;
  if (entry && !error) {
    auto held = charges.charge(tenant, {.shelf = Shelf::Code, .name = key}, code_bytes);
    if (!held) return std::unexpected(budget::too_little_disk(held.error()));
    holds->code = *std::move(held);
  }
  if (image_bytes > 0) {
    auto held = charges.charge(tenant, {.shelf = Shelf::Images, .name = key}, image_bytes);
    if (!held) return std::unexpected(budget::too_little_disk(held.error()));
    holds->images = *std::move(held);
  }
  return std::shared_ptr<const void>(holds);
}

void remove_unused(const fs::path& directory, const std::string& key,
                   const budget::CacheCharges& charges) {
  const std::optional<fs::path> entry = find_entry(directory, key);
  if (!entry || charges.is_used({.shelf = budget::CacheCharges::Shelf::Code, .name = key})) return;
  std::error_code ignored;  // A file that remains is deleted by evict().
  fs::remove(*entry, ignored);
}

void remove_leftovers(const fs::path& directory) {
  // Longer than any compilation takes: a younger file may be another process's work.
  constexpr auto kAge = 2 * limits::kCompileMax;
  std::error_code error;
  for (const fs::directory_entry& found : fs::directory_iterator(directory, error)) {
    std::error_code gone;
    const auto written = found.last_write_time(gone);
    const bool is_temporary = found.path().filename().string().starts_with(kTemporaryPrefix);
    if (gone || !is_temporary) continue;
    if (fs::file_time_type::clock::now() - written > kAge) fs::remove(found.path(), gone);
  }
}

}  // namespace hangar::wasm::internal
