// The files of CodeCache: names, checks, eviction. Blocking; any thread, any number of processes.
#pragma once

#include "base/result.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/module.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace hangar::wasm::internal {

// What native code for `digest` depends on, as the beginning of a file's name.
[[nodiscard]] std::string key_of(const Digest& digest);

// The entry for `key`, if there is one.
[[nodiscard]] std::optional<std::filesystem::path> find_entry(
    const std::filesystem::path& directory, const std::string& key);

// A name for a file that becomes an entry; no two calls give the same.
[[nodiscard]] std::filesystem::path temporary_name(const std::filesystem::path& directory);

// Turns complete native code into the entry for `key`.
[[nodiscard]] Result<> publish(const std::filesystem::path& temporary, const std::string& key);

// NotFound when it is gone. Corrupt when its bytes are not what its name says or wasmtime refuses
// it; it is deleted then. `allocation` as CodeCache::load has it.
[[nodiscard]] Result<std::shared_ptr<const Module>> load_entry(const Engine& engine,
                                                               const Digest& digest,
                                                               Module::Allocation allocation,
                                                               const std::filesystem::path& entry);

// Deletes the least recently used entries until at most `bytes_max` are left; `kept` always stays.
void evict(const std::filesystem::path& directory, std::uint64_t bytes_max,
           const std::string& kept);

// Deletes files of processes that ended while they compiled.
void remove_leftovers(const std::filesystem::path& directory);

}  // namespace hangar::wasm::internal
