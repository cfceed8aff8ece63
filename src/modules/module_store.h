// Modules that were fetched before, on disk: a host that restarts while a registry is away goes on
// with what it had. Also remembers what each reference meant when it was last looked at, and for
// whom: the bytes are shared by all requesters, the right to them is not.
//
// A private directory: <sha256>.wasm.gz, each checked whenever it is read, and index.json. Several
// processes may share it: files appear whole, and an index that another process has overwritten
// only costs a download.
#pragma once

#include "base/log.h"
#include "base/packing.h"
#include "base/result.h"
#include "base/slots.h"
#include "modules/limits.h"

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

// A reference as one requester names it. An entry under such a key is the proof that its source
// gave that requester the module.
[[nodiscard]] std::string proof_key(std::string_view requester, std::string_view reference);

// What a reference led to, and what its source needs in order to say "still the same".
struct Resolution {
  std::string sha256;  // Of the uncompressed module.
  std::uint64_t size_bytes = 0;
  std::string resolved;  // For people: the digest-pinned reference.
  std::string etag;
  std::string last_modified;
  std::string revision;  // Manifest digest, ConfigMap revision, or a file's stamp.

  bool operator==(const Resolution&) const = default;
};

// Any thread. All but resolution() and has() block on the disk: call those on workers.
class ModuleStore {
 public:
  struct Bounds {
    std::uint64_t bytes = limits::kModuleStoreBytesMax;
    std::uint32_t references = limits::kModuleReferencesMax;
  };

  // Creates the directory if needed. Denied when others may write to it. An index that cannot be
  // read is dropped.
  [[nodiscard]] static Result<std::unique_ptr<ModuleStore>> open(std::filesystem::path directory,
                                                                 Bounds bounds, const Log& log);
  [[nodiscard]] static Result<std::unique_ptr<ModuleStore>> open(std::filesystem::path directory,
                                                                 const Log& log = {}) {
    return open(std::move(directory), Bounds{}, log);
  }
  ModuleStore(const ModuleStore&) = delete;
  ModuleStore& operator=(const ModuleStore&) = delete;

  // Keeps a module and removes those not used for longest beyond the bound. `gzipped` may be any
  // gzip of the module with that digest.
  [[nodiscard]] Result<> write(const std::string& sha256, std::string_view gzipped);

  // The same for a module that no source has: one that was put together here.
  [[nodiscard]] Result<> add(const std::string& sha256, std::string_view module);

  // The same for bytes of which somebody says that they are that module, gzipped or not. Corrupt
  // when they are not; nothing is touched then.
  [[nodiscard]] Result<> accept(const std::string& sha256, std::string bytes);

  // The module, uncompressed. NotFound; Corrupt when it is not what was written: it is removed
  // then.
  [[nodiscard]] Result<std::string> read(const std::string& sha256);

  // What read() takes of memory, as far as the file says; zero when it is not there.
  [[nodiscard]] std::uint64_t unpacked_bytes(const std::string& sha256) const;

  // The same as a gzip, checked like that.
  [[nodiscard]] Result<std::string> read_packed(const std::string& sha256);

  [[nodiscard]] bool has(const std::string& sha256) const;

  // Remembers what the reference of that proof_key() means now. InvalidInput when one of the texts
  // is no UTF-8.
  [[nodiscard]] Result<> remember(const std::string& key, const Resolution& resolution);
  [[nodiscard]] std::optional<Resolution> resolution(const std::string& key);

  // What the same reference meant for anybody, which its source can confirm cheaply. It is no proof
  // until the source has.
  [[nodiscard]] std::optional<Resolution> hint(std::string_view reference);

  // Lets the requester have that module from now on, whatever its references come to mean.
  [[nodiscard]] Result<> grant(std::string_view requester, const std::string& sha256);
  // Whether a source gave this requester that module, or grant() was called.
  [[nodiscard]] bool is_proven(std::string_view requester, std::string_view sha256);

 private:
  // A key and what it means, in one piece: there may be thousands.
  using Entries = std::list<PackedBytes, slots::Allocator<PackedBytes>>;

  ModuleStore(std::filesystem::path directory, Bounds bounds)
      : directory_(std::move(directory)), bounds_(bounds) {}

  struct Stored {
    std::string gzipped;
    std::string wasm;
  };
  [[nodiscard]] Result<Stored> read_checked(const std::string& sha256);
  [[nodiscard]] std::filesystem::path path_of(const std::string& sha256) const;
  void load_index(const Log& log);
  // Looks at one after the other: to ask a source, or the disk, takes much longer.
  [[nodiscard]] Entries::iterator find(std::string_view key);
  void remove_unfinished();
  void trim(const std::string& keep_sha256);

  const std::filesystem::path directory_;
  const Bounds bounds_;
  mutable std::mutex mutex_;  // For all below.
  Entries entries_;           // The most recently used first.
  std::mutex disk_mutex_;     // Index and trimming: one at a time. Taken before mutex_.
};

}  // namespace hangar::modules
