// The cache of native code. hangar-compile compiles each module once, or somebody else has
// (PrebuiltCode); after that its code is loaded from a directory.
//
// An entry is one file. Its name contains what the code was made from (module, wasmtime,
// configuration, processor) and the checksum of its bytes, because wasmtime trusts every byte: an
// entry is either whole or not used. A file that does not match its name is deleted and made again.
// Several hangar processes may share the directory.
//
// A checksum does not protect against a writer of the directory, who can compute one. If there may
// be other writers, because the directory is on a volume, the cache needs a seal: a key that is not
// on that volume. The name of an entry then contains an HMAC-SHA256 over what the code was made
// from and its bytes. A file on the volume could change at any time, so none is loaded or signed in
// place: native code is first copied to a private directory, and compiled there.
//
// The name of code that a builder has compiled also contains the builder. Such code is used only
// while the builder is trusted, and deleted afterwards.
// docs/formats/native-code.md describes the names.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/beneficiaries.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/shared_turns.h"
#include "io/event.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/prebuilt_code.h"
#include "wasm/snapshot/private_file.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::wasm {

// Concurrent compilations. A module of at most kSmallModuleBytesMax (most of Rust, C++ and TinyGo)
// never waits for a large one, whose compilation takes seconds to minutes; and no namespace holds
// both slots for small ones. Namespaces take turns by the processor time that their compilations
// have used. A compilation that has used more than a turn (limits::kCompileTurnMin) is stopped
// while a namespace waits that has used less. The memory of each compiler is reserved before it
// starts, from the same budget as the guests' memory.
inline constexpr std::size_t kSmallCompilationsMax = 2;
inline constexpr std::size_t kLargeCompilationsMax = 1;
inline constexpr std::uint64_t kSmallModuleBytesMax = 8 * limits::kMiB;
// How many modules of one namespace may wait for compilation, each as a file.
inline constexpr std::size_t kCompilationsWaitingMax = 32;

// Loop thread.
class CodeCache {
 public:
  struct Seal {
    std::string key;
    // On a disk to which only the user of this process can write. Files there have no names.
    std::filesystem::path private_directory;
  };

  struct Options {
    std::filesystem::path directory;        // Private to this user; created when it is missing.
    std::filesystem::path compile_program;  // hangar-compile. Empty: nothing is compiled.
    // Asked before a module is compiled; outlives the cache. Null: there is no such code.
    const PrebuiltCode* prebuilt = nullptr;
    std::uint64_t bytes_max = limits::kCodeCacheBytesMax;  // `charges` choose what to evict.
    std::chrono::nanoseconds compile_deadline = limits::kCompileMax;
    // The processor time of a turn: this, and more for each MiB of the module.
    std::chrono::nanoseconds turn_min = limits::kCompileTurnMin;
    std::chrono::nanoseconds turn_per_mib = limits::kCompileTurnPerMiB;
    std::chrono::nanoseconds memory_wait_max = limits::kCompileMemoryWaitMax;
    // How often a compilation reports the processor time that it has used.
    std::chrono::nanoseconds turn_step = std::chrono::seconds(1);
    std::uint64_t compiled_bytes_max = limits::kCompiledBytesMax;  // For the code of one module.
    // Modules that wait for compilation: of all namespaces, and of one.
    std::uint64_t all_waiting_bytes_max = limits::kCompilationsWaitingBytesMax;
    std::uint64_t waiting_bytes_max = limits::kCompilationsOfOneWaitingBytesMax;
    // Null: no one else can write to `directory`.
    std::shared_ptr<const Seal> seal = {};
    // Charged with the code that tenants use (charge()); outlives the cache. Null: no charges.
    budget::CacheCharges* charges = nullptr;
  };

  CodeCache(Engine& engine, Options options);
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;
  ~CodeCache();

  // Creates the directory and removes what crashed processes left in it. Denied when others may
  // write to it. Blocking; call it before anything else.
  [[nodiscard]] Result<> open();

  // Whether load() can do without the module's bytes. The answer may be outdated when load() is
  // called: another process may have removed the entry.
  [[nodiscard]] bool has(const Digest& digest) const;

  // Loads the module, and compiles it if necessary and possible. The same digest gives the same
  // object as long as someone holds it. Concurrent calls for one digest share the work, which waits
  // for a compiler on behalf of all their beneficiaries. Namespaces take turns at compilation, and
  // the small modules of each go first.
  //
  // InvalidInput: `wasm_bytes` is not a module that can be compiled, or does not have this digest.
  // NotFound: not cached and no bytes. Unavailable: no compiler, and no prebuilt code that may run.
  // LimitExceeded: as for compile(); or too many modules of the first beneficiary's namespace wait;
  // or no tenant of the beneficiaries may have so much code on disk, and it is not kept.
  // Unavailable: as for compile(), also when the compilation's turn was over: the caller retries
  // after a while. Cancelled.
  //
  // `allocation`: Pooled becomes OnDemand for a module that is too large; the others stay. Each
  // kind has its own Module object over the same file. A Sleepable module is a new object for each
  // call: its owner drops it and loads it again (SleepableModule).
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Module>>> load(
      Digest digest, std::shared_ptr<const std::string> wasm_bytes, std::stop_token stop,
      Module::Allocation allocation = Module::Allocation::Pooled,
      budget::Beneficiaries beneficiaries = budget::unnamed_consumer());

  // Charges the consumer's tenant with the code of that module and images of `image_bytes` while
  // the result exists. LimitExceeded when that is more than the tenant may have
  // (budget/cache_charges.h).
  [[nodiscard]] io::Task<Result<std::shared_ptr<const void>>> charge(Digest digest,
                                                                     std::uint64_t image_bytes,
                                                                     budget::Consumer consumer);

  // Cancels all loads, whoever waits for them; no load is in progress once this returns.
  [[nodiscard]] io::Task<void> stop();

  [[nodiscard]] Engine& engine() const { return engine_; }

  // How many modules were compiled by this object, for tests and metrics.
  [[nodiscard]] std::uint64_t compiled_count() const { return compiled_count_; }

 private:
  using Loaded = Result<std::shared_ptr<const Module>>;

  using Key = std::pair<Digest, Module::Allocation>;

  [[nodiscard]] io::Task<Loaded> load_shared(Key key, std::shared_ptr<const std::string> wasm_bytes,
                                             std::stop_token caller_stop,
                                             budget::Beneficiaries beneficiaries);
  [[nodiscard]] io::Task<Loaded> load_alone(Key key, std::shared_ptr<const std::string> wasm_bytes,
                                            std::stop_token stop,
                                            budget::Beneficiaries beneficiaries);
  [[nodiscard]] io::Task<Loaded> load_cached(Key key, budget::Beneficiaries beneficiaries);
  // NotFound: there is no prebuilt code. Denied, LimitExceeded, Unavailable: it cannot be used.
  [[nodiscard]] io::Task<Loaded> load_prebuilt(Key key, budget::Beneficiaries beneficiaries);
  [[nodiscard]] io::Task<Result<>> compile_entry(Digest digest,
                                                 std::shared_ptr<const std::string> wasm_bytes,
                                                 std::stop_token stop,
                                                 budget::Beneficiaries beneficiaries);
  class Turn;
  [[nodiscard]] io::Task<Result<>> compile_in_turn(Digest digest, PrivateFile input, Turn& turn,
                                                   std::uint64_t module_bytes, std::stop_token stop,
                                                   budget::Beneficiaries beneficiaries);
  // Makes complete native code the entry for `digest`; `temporary` is in private_directory() and is
  // gone afterwards. `builder`: who has compiled it; empty: this host. LimitExceeded as for
  // check_disk().
  [[nodiscard]] io::Task<Result<>> keep(Digest digest, std::filesystem::path temporary,
                                        std::string builder, budget::Beneficiaries beneficiaries);
  // Any thread.
  [[nodiscard]] bool is_trusted(const std::filesystem::path& entry) const;
  // LimitExceeded if no tenant of the beneficiaries may have so much code.
  [[nodiscard]] Result<> check_disk(const std::vector<budget::Consumer>& consumers,
                                    std::uint64_t code_bytes) const;
  // The same for code that was refused before.
  [[nodiscard]] Result<> check_refused(const Digest& digest,
                                       const budget::Beneficiaries& beneficiaries) const;
  [[nodiscard]] io::Task<Result<std::optional<budget::Reservation>>> reserve_memory(
      Turn& turn, std::uint64_t bytes, std::stop_token stop);
  [[nodiscard]] std::shared_ptr<const Module> find_live(const Key& key);
  [[nodiscard]] std::uint64_t compiler_memory_bytes(std::uint64_t module_bytes) const;
  // The directory in which no one else can change a file before it is used.
  [[nodiscard]] const std::filesystem::path& private_directory() const;

  Engine& engine_;
  const Options options_;
  std::map<Key, std::weak_ptr<const Module>> live_;
  budget::SharedTurns<Key> loading_;
  budget::Accounts waiting_;  // Waiting modules, as files.
  // The sizes of code that was too large for its tenants, so that it is not compiled or copied
  // again to be refused again.
  std::map<Digest, std::uint64_t> refused_bytes_;
  budget::FairSlots small_;
  budget::FairSlots large_;
  std::stop_source stop_;
  std::size_t load_count_ = 0;  // Loads in progress.
  io::Event loads_ended_;
  std::uint64_t compiled_count_ = 0;
};

}  // namespace hangar::wasm
