// From the URL in an Airway to code that runs: allowed, fetched, verified, compiled, each once.
#pragma once

#include "abi/flight/evaluation.h"
#include "airways/airway.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/code_cache.h"
#include "wasm/module.h"

#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

// Copies of the flights that Airways are pinned to, in the host's namespace. A flight in Go is a
// few MiB when it is packed.
[[nodiscard]] archive::CopyFormat flight_copies();

// What an Airway names.
[[nodiscard]] modules::Source converter_of(const Airway& airway);

// A module whose code is in the cache on disk.
struct FlightModule {
  std::string sha256;    // Of the uncompressed module, hex.
  std::string sha1;      // Of the same bytes: yoke's history names modules by it.
  std::string resolved;  // The reference, pinned by digest.
};

// Loop thread only.
class FlightModules final : public modules::Maker {
 public:
  // All of it outlives this.
  struct Parts {
    modules::Sources sources;
    wasm::CodeCache& code_cache;
    const abi::flight::Runtime& runtime;
    // What was made before is remembered here, so that a host which starts again need not read
    // every module to find out that it has its code. Empty: not remembered.
    std::filesystem::path index_file = {};
  };
  explicit FlightModules(Parts parts);

  // Where copies of pinned flights are, and in which namespace. Null: nowhere. Outlives its use.
  void use_archive(archive::ModuleArchive* archive, std::string namespace_name) {
    archive_ = archive;
    archive_namespace_ = std::move(namespace_name);
  }

  // Reads the index; one that cannot be read is as good as none. Blocking; before anything else.
  void open();

  // Errors, for the Airway's status: InvalidInput (not Wasm, wrong checksum, not allowed, imports
  // that no flight gets), NotFound, Denied, Unavailable, LimitExceeded.
  [[nodiscard]] modules::Supply& supply() { return supply_; }
  [[nodiscard]] static FlightModule module_of(const modules::Supplied& supplied);
  // Denied when the administrator does not let that be named (any more): what is pinned is not
  // asked for at its source, where that would come up.
  [[nodiscard]] Result<> check_allowed(std::string_view reference) const;

  // For who has nothing else to do: waits until the source, asked anew, has given it.
  [[nodiscard]] io::Task<Result<FlightModule>> prepare(modules::Wish wish, std::stop_token stop);

  // InvalidInput when that module cannot be a converter: whatever is supplied may be a flight.
  [[nodiscard]] io::Task<Result<>> check_converter(FlightModule module, std::stop_token stop);

  // The code of a module that was supplied, as long as it may run: mapped from the cache, shared.
  // When nobody has run it for some seconds its pages leave memory; after some minutes the module
  // itself does.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const wasm::Module>>> load(FlightModule module,
                                                                           std::stop_token stop);

  // For the supply.
  [[nodiscard]] modules::Product find(const std::string& sha256) override;
  [[nodiscard]] io::Task<Result<modules::Product>> make(std::string sha256,
                                                        std::shared_ptr<const std::string> bytes,
                                                        budget::Consumer consumer,
                                                        std::stop_token stop) override;
  [[nodiscard]] bool is_asked_by_digest() const override { return true; }
  [[nodiscard]] io::Task<Result<std::string>> recall(modules::Requester requester,
                                                     std::string sha256,
                                                     std::stop_token stop) override;

 private:
  struct Kept {
    std::shared_ptr<const wasm::Module> module;
    Instant last_used;
    bool has_pages = true;  // As far as we know: it ran since its pages were released.
  };
  void know(FlightModule module);
  [[nodiscard]] io::Task<void> remember(FlightModule module);
  void release_unused();
  // Sees to it that release_unused() runs soon.
  void watch_pages();

  const Parts parts_;
  std::map<std::string, std::shared_ptr<const FlightModule>> made_;  // By sha256.
  std::map<std::string, Kept> kept_;                                 // The same.
  io::Loop::Timer release_timer_;                                    // Runs while anything is kept.
  bool is_watching_pages_ = false;                                   // The timer is one for pages.
  archive::ModuleArchive* archive_ = nullptr;
  std::string archive_namespace_;
  modules::Supply supply_;
};

}  // namespace hangar::airways
