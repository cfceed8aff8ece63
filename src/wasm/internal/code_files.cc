#include "wasm/internal/code_files.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/slots.h"
#include "wasm/code_config.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/fault.h"
#include "wasm/internal/handles.h"
#include "wasm/module.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wasmtime/module.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
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

// The processor's abilities that code generation looks at: a cache on a shared disk, or a machine
// image, may meet another processor.
std::string processor_features() {
#if defined(__x86_64__)
  std::string text = "x86_64";
  const auto add = [&text](std::string_view name, bool has) {
    if (has) fmt::format_to(std::back_inserter(text), " {}", name);
  };
  __builtin_cpu_init();
  add("sse3", __builtin_cpu_supports("sse3"));
  add("ssse3", __builtin_cpu_supports("ssse3"));
  add("sse4.1", __builtin_cpu_supports("sse4.1"));
  add("sse4.2", __builtin_cpu_supports("sse4.2"));
  add("popcnt", __builtin_cpu_supports("popcnt"));
  add("avx", __builtin_cpu_supports("avx"));
  add("avx2", __builtin_cpu_supports("avx2"));
  add("fma", __builtin_cpu_supports("fma"));
  add("bmi", __builtin_cpu_supports("bmi"));
  add("bmi2", __builtin_cpu_supports("bmi2"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512dq", __builtin_cpu_supports("avx512dq"));
  add("avx512vl", __builtin_cpu_supports("avx512vl"));
  add("avx512bitalg", __builtin_cpu_supports("avx512bitalg"));
  add("avx512vbmi", __builtin_cpu_supports("avx512vbmi"));
  return text;
#else
  return fmt::format("hwcap {:x} {:x}", ::getauxval(AT_HWCAP), ::getauxval(AT_HWCAP2));
#endif
}

// A file's bytes, mapped.
class Mapping {
 public:
  explicit Mapping(int descriptor) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0 || status.st_size <= 0) return;
    size_ = static_cast<std::size_t>(status.st_size);
    void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) return;
    address_ = address;
    // What is read now stays in the page cache, in large pages where the file system has them: then
    // native code costs a fault for 2 MiB, not for 64 KiB.
    ::madvise(address, size_, MADV_HUGEPAGE);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (address_ != nullptr) ::munmap(address_, size_);
  }
  // Empty when the file is, or cannot be mapped.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(address_), address_ != nullptr ? size_ : 0};
  }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

std::unexpected<Error> discard(const fs::path& entry, std::string why) {
  std::error_code ignored;  // Whoever comes next will try again.
  fs::remove(entry, ignored);
  return fail(ErrorKind::Corrupt, std::move(why));
}

// "<key>-<sha256 of the file>.cwasm"
std::string entry_name(const std::string& key, const Digest& checksum) {
  return fmt::format("{}-{}{}", key, checksum.to_hex(), kEntrySuffix);
}

bool is_entry(const fs::path& path) {
  return path.extension() == kEntrySuffix;
}

Result<ModuleHandle> deserialize(wasm_engine_t* engine, int descriptor) {
  // By descriptor, so that it is the file whose checksum was right.
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  wasmtime_module_t* module = nullptr;
  const ErrorHandle error(wasmtime_module_deserialize_file(engine, path.c_str(), &module));
  if (error != nullptr) return fail(ErrorKind::Corrupt, describe(*error));
  return ModuleHandle(module);
}

}  // namespace

CodeFile::CodeFile(const fs::path& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

CodeFile::~CodeFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string key_of(const Digest& digest) {
  const Digest made_by = Digest::of(fmt::format("{}\n{}\n", kCodeVersion, processor_features()));
  return fmt::format("{}-{}", digest.to_hex(), made_by.to_hex().substr(0, 16));
}

std::optional<fs::path> find_entry(const fs::path& directory, const std::string& key) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(key) && is_entry(name)) return entry.path();
  }
  return std::nullopt;
}

fs::path temporary_name(const fs::path& directory) {
  static std::atomic<std::uint64_t> count = 0;
  return directory / fmt::format("{}{}-{}", kTemporaryPrefix, ::getpid(), ++count);
}

Result<> publish(const fs::path& temporary, const std::string& key) {
  const CodeFile file(temporary);
  const Mapping mapping(file.descriptor());
  if (mapping.bytes().empty()) {
    return fail(ErrorKind::Unavailable, "hangar-compile wrote nothing");
  }
  const fs::path entry = temporary.parent_path() / entry_name(key, Digest::of(mapping.bytes()));
  std::error_code error;
  fs::rename(temporary, entry, error);
  if (error) {
    return fail(ErrorKind::Unavailable,
                fmt::format("rename {}: {}", temporary.string(), error.message()));
  }
  return {};
}

namespace {

// Not make_shared: who only remembers that there was a module (CodeCache) would keep its memory.
std::shared_ptr<const Module> share(Module::Parts parts) {
  return std::shared_ptr<const Module>(new Module(std::move(parts)));
}

}  // namespace

Result<std::shared_ptr<const Module>> load_entry(const Engine& engine, const Digest& digest,
                                                 Module::Allocation allocation,
                                                 const fs::path& entry) {
  const auto file = std::allocate_shared<const CodeFile>(slots::Allocator<CodeFile>(), entry);
  if (file->descriptor() < 0) {
    return fail(errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable,
                fmt::format("open {}: {}", entry.string(), std::generic_category().message(errno)));
  }
  {
    const Mapping mapping(file->descriptor());
    const std::string name = entry_name(key_of(digest), Digest::of(mapping.bytes()));
    if (entry.filename() != name) return discard(entry, "native code fails its checksum");
  }
  // Its age decides who goes when room is needed.
  ::futimens(file->descriptor(), nullptr);

  // A module that is too large for a slot of the pool is refused by the pooled engine only.
  const Engine::Native& native = engine.native();
  Module::Parts parts{.allocation = allocation};
  if (allocation == Module::Allocation::Pooled) {
    if (native.pooled != nullptr) {
      if (Result<ModuleHandle> module = deserialize(native.pooled.get(), file->descriptor())) {
        parts.code = module->release();
        return share(parts);
      }
    }
    parts.allocation = Module::Allocation::OnDemand;
  }
  Result<ModuleHandle> module = deserialize(native.engine(parts.allocation), file->descriptor());
  if (!module) return discard(entry, "native code is refused: " + module.error().message());
  parts.code = module->release();
  if (parts.allocation == Module::Allocation::Sleepable) parts.file = file;
  return share(std::move(parts));
}

Result<std::shared_ptr<const Module>> load_again(const Engine& engine,
                                                 std::shared_ptr<const CodeFile> file) {
  constexpr auto kAllocation = Module::Allocation::Sleepable;
  Result<ModuleHandle> module =
      deserialize(engine.native().engine(kAllocation), file->descriptor());
  if (!module) {
    return fail(ErrorKind::Unavailable,
                "native code cannot be loaded again: " + module.error().message());
  }
  return share({.allocation = kAllocation, .code = module->release(), .file = std::move(file)});
}

void evict(const fs::path& directory, std::uint64_t bytes_max, const std::string& kept) {
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    std::uint64_t bytes = 0;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  for (const fs::directory_entry& found : fs::directory_iterator(directory, error)) {
    // Another process may remove it between these lines.
    std::error_code gone;
    Entry entry{.path = found.path(), .used = found.last_write_time(gone)};
    if (!gone) entry.bytes = found.file_size(gone);
    if (gone || !is_entry(entry.path)) continue;
    total += entry.bytes;
    if (!entry.path.filename().string().starts_with(kept)) entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (total <= bytes_max) return;
    if (fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

void remove_leftovers(const fs::path& directory) {
  // Longer than any compilation takes: younger files may be another process's work.
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
