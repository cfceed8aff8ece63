// The files of CodeCache: names, checks, eviction. Blocking; any thread, any number of processes.
#pragma once

#include "base/result.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
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

// A file of native code whose bytes matched its name when it was opened. Stays readable when the
// entry is deleted.
class CodeFile {
 public:
  explicit CodeFile(const std::filesystem::path& path);
  // Takes ownership of the descriptor.
  explicit CodeFile(int descriptor) : descriptor_(descriptor) {}
  CodeFile(const CodeFile&) = delete;
  CodeFile& operator=(const CodeFile&) = delete;
  ~CodeFile();
  // Negative when the file could not be opened; errno then has the reason.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

// The beginning of a file's name: everything that native code for `digest` depends on.
[[nodiscard]] std::string key_of(const Digest& digest);

// The entry for `key`, if there is one.
[[nodiscard]] std::optional<std::filesystem::path> find_entry(
    const std::filesystem::path& directory, const std::string& key);

// Who has compiled the entry; empty: this host, or another that shares the directory.
[[nodiscard]] std::string builder_of(const std::filesystem::path& entry);

// A name for a file that is to become an entry; unique for each call.
[[nodiscard]] std::filesystem::path temporary_name(const std::filesystem::path& directory);

// Turns complete native code into the entry for `key`, with `builder` in its name unless that is
// empty. With a seal, `temporary` is in the seal's private directory.
[[nodiscard]] Result<> publish(const std::filesystem::path& temporary,
                               const std::filesystem::path& directory, const std::string& key,
                               const std::string& builder, const CodeCache::Seal* seal);

// NotFound when the entry is gone. Corrupt when its bytes do not match its name or wasmtime refuses
// it; the entry is then deleted. `allocation` as in CodeCache::load.
[[nodiscard]] Result<std::shared_ptr<const Module>> load_entry(const Engine& engine,
                                                               const Digest& digest,
                                                               Module::Allocation allocation,
                                                               const std::filesystem::path& entry,
                                                               const CodeCache::Seal* seal);

// The module of `file`, whose bytes this or another hangar process has checked; Unavailable when it
// cannot be mapped. `allocation` as in CodeCache::load.
[[nodiscard]] Result<std::shared_ptr<const Module>> load_file(const Engine& engine,
                                                              std::shared_ptr<const CodeFile> file,
                                                              Module::Allocation allocation);

// Deletes entries, except the one with key `kept`, until at most `bytes_max` remain. `charges`
// choose the entries; null: the least recently used ones go first.
void evict(const std::filesystem::path& directory, std::uint64_t bytes_max, const std::string& kept,
           budget::CacheCharges* charges);

// Charges the tenant with the entry of that module, if there is one, and with images of
// `image_bytes`, while the result exists.
[[nodiscard]] Result<std::shared_ptr<const void>> charge(budget::CacheCharges& charges,
                                                         const std::filesystem::path& directory,
                                                         const Digest& digest,
                                                         std::uint64_t image_bytes,
                                                         const budget::Tenant& tenant);

// Deletes the entry for `key` if nobody uses it.
void remove_unused(const std::filesystem::path& directory, const std::string& key,
                   const budget::CacheCharges& charges);

// Deletes files of processes that exited during a compilation.
void remove_leftovers(const std::filesystem::path& directory);

}  // namespace hangar::wasm::internal
