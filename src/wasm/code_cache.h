// Native code of modules: compiled once by hangar-compile, kept in a directory, loaded from there.
//
// An entry is one file, named by what it was made from (module, wasmtime, configuration, processor)
// and by the checksum of its own bytes, so that it is either whole or not trusted: wasmtime
// believes every byte of it. A file that is not what its name says is deleted and made again.
// Several hangar processes may share the directory.
//
// A checksum is no wall against who can write to the directory: they can compute one. Where others
// can, because it is on a volume, the cache needs a seal: a key that is not on that volume. Then an
// entry's name has an HMAC-SHA256 over what it was made from and its bytes, and nothing on the
// volume is loaded or signed in place, since it could change meanwhile: native code is copied to a
// private directory first, and compiled there. docs/formats/native-code.md has the names.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::wasm {

// Compilations at the same time. A module of at most kSmallModuleBytesMax (most of Rust, C++ and
// TinyGo) never waits for a large one, whose compilation takes seconds to minutes; and of two slots
// for small ones no namespace has both. What each compiler may take of memory is reserved with the
// guests' before it starts.
inline constexpr std::size_t kSmallCompilationsMax = 2;
inline constexpr std::size_t kLargeCompilationsMax = 1;
inline constexpr std::uint64_t kSmallModuleBytesMax = 8 * limits::kMiB;
// Modules of one namespace that wait to be compiled, each as a file.
inline constexpr std::size_t kCompilationsWaitingMax = 32;

// Loop thread.
class CodeCache {
 public:
  struct Seal {
    std::string key;
    // On a disk that only this process's user can write to. Files in it have no names.
    std::filesystem::path private_directory;
  };

  struct Options {
    std::filesystem::path directory;        // Private to this user; created when it is missing.
    std::filesystem::path compile_program;  // hangar-compile.
    std::uint64_t bytes_max = limits::kCodeCacheBytesMax;  // On disk, the least recently used go.
    std::chrono::nanoseconds compile_deadline = limits::kCompileMax;
    // Of modules of one namespace that wait to be compiled.
    std::uint64_t waiting_bytes_max = limits::kCompilationsOfOneWaitingBytesMax;
    // Null: nobody else can write to `directory`.
    std::shared_ptr<const Seal> seal = {};
  };

  CodeCache(Engine& engine, Options options);
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;
  ~CodeCache();

  // Makes the directory and removes what crashed processes left in it. Denied when others may write
  // there. Blocking; before anything else.
  [[nodiscard]] Result<> open();

  // Whether load() can do without the module's bytes. May be wrong by the time it is called:
  // another process may have removed the entry.
  [[nodiscard]] bool has(const Digest& digest) const;

  // The module, compiled if it must be; the same object for the same digest as long as anybody
  // holds it. Concurrent calls for one digest share the work. What must be compiled waits its turn
  // among namespaces, small modules of each first. InvalidInput: `wasm_bytes` is no module that can
  // be compiled, or not of this digest. NotFound: not cached and no bytes. LimitExceeded: as
  // compile() says, or as many modules of the consumer's namespace wait as may. Unavailable: as
  // compile() says. Cancelled.
  // `allocation`: Pooled becomes OnDemand for a module that is too large; the others are as they
  // are. Each has its own Module object over the same file, and a Sleepable one is a new object
  // each time: who loads those lets go of them and loads them again (SleepableModule).
  [[nodiscard]] io::Task<Result<std::shared_ptr<const Module>>> load(
      Digest digest, std::shared_ptr<const std::string> wasm_bytes, std::stop_token stop,
      Module::Allocation allocation = Module::Allocation::Pooled,
      budget::Consumer consumer = budget::unnamed_consumer());

  // Ends what is under way, whoever waits for it; nothing is loaded any more once it returns.
  [[nodiscard]] io::Task<void> stop();

  [[nodiscard]] Engine& engine() const { return engine_; }

  // How many modules were compiled by this object, for tests and metrics.
  [[nodiscard]] std::uint64_t compiled_count() const { return compiled_count_; }

 private:
  using Loaded = Result<std::shared_ptr<const Module>>;

  using Key = std::pair<Digest, Module::Allocation>;

  [[nodiscard]] io::Task<Loaded> load_shared(Key key, std::shared_ptr<const std::string> wasm_bytes,
                                             std::stop_token caller_stop,
                                             budget::Consumer consumer);
  [[nodiscard]] io::Task<Loaded> load_alone(Key key, std::shared_ptr<const std::string> wasm_bytes,
                                            std::stop_token stop, budget::Consumer consumer);
  [[nodiscard]] io::Task<Loaded> load_cached(Key key);
  [[nodiscard]] io::Task<Result<>> compile_entry(Digest digest,
                                                 std::shared_ptr<const std::string> wasm_bytes,
                                                 std::stop_token stop, budget::Consumer consumer);
  [[nodiscard]] std::shared_ptr<const Module> find_live(const Key& key);
  [[nodiscard]] std::uint64_t compiler_memory_bytes(std::uint64_t module_bytes) const;
  // Where nobody else can change a file before it is used.
  [[nodiscard]] const std::filesystem::path& private_directory() const;

  Engine& engine_;
  const Options options_;
  std::map<Key, std::weak_ptr<const Module>> live_;
  std::map<Key, std::list<io::OneShot<bool>>> loading_;  // Who waits for it to be done.
  budget::Accounts waiting_;                             // Modules as files.
  budget::FairSlots small_;
  budget::FairSlots large_;
  std::stop_source stop_;
  std::size_t load_count_ = 0;  // Under way.
  io::Event loads_ended_;
  std::uint64_t compiled_count_ = 0;
};

}  // namespace hangar::wasm
