// The files of CodeCache: names, checks, eviction. Blocking; any thread, any number of processes.
#pragma once

#include "base/result.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/module.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace hangar::wasm::internal {

// A file of native code whose bytes were what its name says when it was opened. Stays readable
// when the entry is deleted.
class CodeFile {
 public:
  explicit CodeFile(const std::filesystem::path& path);
  // Takes it over.
  explicit CodeFile(int descriptor) : descriptor_(descriptor) {}
  CodeFile(const CodeFile&) = delete;
  CodeFile& operator=(const CodeFile&) = delete;
  ~CodeFile();
  // Negative when it could not be opened, for the reason in errno.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

// What native code for `digest` depends on, as the beginning of a file's name.
[[nodiscard]] std::string key_of(const Digest& digest);

// The entry for `key`, if there is one.
[[nodiscard]] std::optional<std::filesystem::path> find_entry(
    const std::filesystem::path& directory, const std::string& key);

// A name for a file that becomes an entry; no two calls give the same.
[[nodiscard]] std::filesystem::path temporary_name(const std::filesystem::path& directory);

// Turns complete native code into the entry for `key`. With a seal `temporary` is in its private
// directory.
[[nodiscard]] Result<> publish(const std::filesystem::path& temporary,
                               const std::filesystem::path& directory, const std::string& key,
                               const CodeCache::Seal* seal);

// NotFound when it is gone. Corrupt when its bytes are not what its name says or wasmtime refuses
// it; it is deleted then. `allocation` as CodeCache::load has it.
[[nodiscard]] Result<std::shared_ptr<const Module>> load_entry(const Engine& engine,
                                                               const Digest& digest,
                                                               Module::Allocation allocation,
                                                               const std::filesystem::path& entry,
                                                               const CodeCache::Seal* seal);

// The module of `file`, whose bytes this or another hangar process has checked; Unavailable when it
// cannot be mapped. `allocation` as CodeCache::load has it.
[[nodiscard]] Result<std::shared_ptr<const Module>> load_file(const Engine& engine,
                                                              std::shared_ptr<const CodeFile> file,
                                                              Module::Allocation allocation);

// Deletes the least recently used entries until at most `bytes_max` are left; `kept` always stays.
void evict(const std::filesystem::path& directory, std::uint64_t bytes_max,
           const std::string& kept);

// Deletes files of processes that ended while they compiled.
void remove_leftovers(const std::filesystem::path& directory);

}  // namespace hangar::wasm::internal
