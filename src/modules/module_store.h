// Modules that were fetched before, on disk: a host that restarts while a registry is down
// continues with them. The store also remembers what each reference meant when its source last
// answered, and for which requester: all requesters share the bytes, but not the right to them.
//
// A private directory with index.json and files <sha256>.wasm.gz, each of which is checked whenever
// it is read. Several processes may share it: files appear whole, and an index that another process
// has overwritten costs only a download.
#pragma once

#include "base/log.h"
#include "base/packing.h"
#include "base/result.h"
#include "base/slots.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "modules/limits.h"

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

// The key for a reference that one requester names. An entry under such a key proves that the
// source gave that requester the module (proofs.h).
[[nodiscard]] std::string proof_key(std::string_view requester, std::string_view reference);

// What a reference led to, and the values with which its source can confirm that nothing changed.
struct Resolution {
  std::string sha256;  // Of the uncompressed module.
  std::uint64_t size_bytes = 0;
  std::string resolved;  // For people: the digest-pinned reference.
  std::string etag;
  std::string last_modified;
  std::string revision;  // Manifest digest, ConfigMap revision, or a file's stamp.
  // Credential::id() of the credential with which it was read; empty: none, or one that is part of
  // the reference.
  std::string credential;
  // When the source last confirmed it: seconds since 1970; zero: unknown.
  std::uint64_t proven_at = 0;

  bool operator==(const Resolution&) const = default;
};

// Any thread. All calls but resolution() and has() block on the disk: make those on workers.
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

  // Charges modules to their users from now on; at first to the requesters in the index. Call it
  // once, before other threads use the store; `charges` outlives those uses.
  void charge_to(budget::CacheCharges& charges);

  // Stores a module for `user`, and makes room for it (budget/cache_charges.h). `gzipped` may be
  // any gzip of the module with that digest. LimitExceeded, and nothing is stored, when it is more
  // than `user` may have.
  [[nodiscard]] Result<> write(const std::string& sha256, std::string_view gzipped,
                               const budget::Tenant& user = budget::Tenant::host());

  // The same for a module that no source has: one that this host assembled.
  [[nodiscard]] Result<> add(const std::string& sha256, std::string_view module,
                             const budget::Tenant& user = budget::Tenant::host());

  // The same for bytes that claim to be that module, gzipped or not. Corrupt when they are not, or
  // when they are more than `bytes_max` without gzip; the store then stays unchanged.
  [[nodiscard]] Result<> accept(const std::string& sha256, std::string bytes,
                                const budget::Tenant& user = budget::Tenant::host(),
                                std::uint64_t bytes_max = limits::kFetchedBytesMax);

  // `user` uses that module now, if the store has it. LimitExceeded as for write().
  [[nodiscard]] Result<> charge(const std::string& sha256, const budget::Tenant& user);

  // The module, uncompressed. NotFound; Corrupt when the file has changed since it was written: it
  // is then removed.
  [[nodiscard]] Result<std::string> read(const std::string& sha256);

  // The memory that read() takes, according to the file; zero when the module is not there.
  [[nodiscard]] std::uint64_t unpacked_bytes(const std::string& sha256) const;

  // The module as a gzip, checked in the same way.
  [[nodiscard]] Result<std::string> read_packed(const std::string& sha256);

  [[nodiscard]] bool has(const std::string& sha256) const;

  // Remembers what the reference of that proof_key() means now. InvalidInput when one of the texts
  // is not UTF-8. An entry that differs from the present one only by its time is not written to
  // disk: after a restart it looks older than it is, which costs one more request to its source. If
  // there are too many entries, the requester with the most loses its least recently used one.
  [[nodiscard]] Result<> remember(const std::string& key, const Resolution& resolution);
  [[nodiscard]] std::optional<Resolution> resolution(const std::string& key);

  // What the same reference meant for any requester, for a cheap confirmation by the source. It
  // proves nothing until the source has confirmed it.
  [[nodiscard]] std::optional<Resolution> hint(std::string_view reference);

  // Forgets the entries that are void; true if there were any.
  using IsVoid = std::function<bool(std::string_view key, const Resolution& resolution)>;
  [[nodiscard]] Result<bool> forget(const IsVoid& is_void);

 private:
  // A key and its meaning, packed: there may be thousands.
  using Entries = std::list<PackedBytes, slots::Allocator<PackedBytes>>;

  ModuleStore(std::filesystem::path directory, Bounds bounds)
      : directory_(std::move(directory)), bounds_(bounds) {}

  [[nodiscard]] std::unexpected<Error> not_read(const std::string& sha256, Error error);
  // Removes the file.
  [[nodiscard]] std::unexpected<Error> damaged(const std::string& sha256);
  [[nodiscard]] std::filesystem::path path_of(const std::string& sha256) const;
  void load_index(const Log& log);
  // A linear search: asking a source, or the disk, takes much longer.
  [[nodiscard]] Entries::iterator find(std::string_view key);
  // The index as it is now; under disk_mutex_.
  [[nodiscard]] Result<> write_index();
  [[nodiscard]] Result<> write_file(const std::filesystem::path& path,
                                    std::string_view bytes) const;
  // Removes the files left by processes that were killed while writing.
  void remove_unfinished();
  void trim(const std::string& keep_sha256);
  [[nodiscard]] Result<> charge(const std::string& sha256, const budget::Tenant& user,
                                std::uint64_t bytes);
  void forget_file(const std::string& sha256);
  void remove_unused(const std::string& sha256);
  // Makes room for one more entry. Requires that the mutex is held.
  void drop_entry();

  const std::filesystem::path directory_;
  const Bounds bounds_;
  budget::CacheCharges* charges_ = nullptr;  // Null: nothing is charged.
  mutable std::mutex mutex_;                 // Guards all members below.
  Entries entries_;                          // Most recently used first.
  std::mutex disk_mutex_;  // Serialises writes of the index and trimming. Taken before mutex_.
  bool is_index_behind_ = false;  // The last write of the index failed; under disk_mutex_.
};

}  // namespace hangar::modules
