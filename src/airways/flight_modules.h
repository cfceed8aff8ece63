// From a URL to code that can run: allowed, fetched, verified and compiled, each module once.
#pragma once

#include "abi/flight/evaluation.h"
#include "airways/airway.h"
#include "archive/copy_format.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/beneficiaries.h"
#include "io/loop.h"
#include "io/task.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/code_cache.h"
#include "wasm/module.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// How copies of pinned modules are stored: those of Airways and ClusterFlights in the host's
// namespace, those of Flights in the Flight's namespace. Each format has its own name, because no
// one but its owner knows which of its copies are needed, and because a Flight in the host's
// namespace must not get a module of an Airway. A packed flight in Go takes a few MiB.
[[nodiscard]] archive::CopyFormat airway_copies();
[[nodiscard]] archive::CopyFormat cluster_flight_copies();
[[nodiscard]] archive::CopyFormat flight_copies();

// The source of an Airway's converter.
[[nodiscard]] modules::Source converter_of(const Airway& airway);

// A module whose code is in the cache on disk.
struct FlightModule {
  std::string sha256;    // Of the uncompressed module, hex.
  std::string sha1;      // Of the same bytes, for yoke's history.
  std::string resolved;  // The reference, pinned by digest.
};

// Loop thread only.
class FlightModules final : public modules::Maker {
 public:
  // The references outlive this object.
  struct Parts {
    modules::Sources sources;
    wasm::CodeCache& code_cache;
    const abi::flight::Runtime& runtime;
    // An index of the modules made so far: after a restart, the host knows which code it has
    // without reading every module. Empty: no index.
    std::filesystem::path index_file = {};
  };
  explicit FlightModules(Parts parts);

  // Where copies of pinned modules are read.
  struct CopyPlace {
    archive::ModuleArchive* archive;  // Outlives its use.
    std::string kept_in;              // As archive::namespace_for() has it.
  };
  void read_copies(std::vector<CopyPlace> places) { copies_ = std::move(places); }

  // Reads the index; an unreadable one is ignored. Blocking; call it first.
  void open();

  // Its errors are for statuses: InvalidInput (not Wasm, wrong checksum, not allowed, imports that
  // flights do not have), NotFound, Denied, Unavailable, LimitExceeded.
  [[nodiscard]] modules::Supply& supply() { return supply_; }
  [[nodiscard]] static FlightModule module_of(const modules::Supplied& supplied);
  // InvalidInput if the allow list does not have this reference, or no longer. A pinned module is
  // not requested from its source, which would check this.
  [[nodiscard]] Result<> check_allowed(std::string_view reference) const;

  // For callers that can wait: asks the source and waits for its module, as Supply::get().
  [[nodiscard]] io::Task<Result<FlightModule>> prepare(modules::Wish wish, std::stop_token stop,
                                                       modules::Supply::OnWaiting on_waiting = {});
  // For reconciles, as Supply::get_in_time().
  [[nodiscard]] io::Task<Result<FlightModule>> prepare_in_time(modules::Wish wish,
                                                               std::stop_token stop,
                                                               std::function<void()> on_other);

  // InvalidInput if the module cannot be a converter: the supply checks only that it can be a
  // flight.
  [[nodiscard]] io::Task<Result<>> check_converter(FlightModule module, std::stop_token stop);

  // The code of a supplied module, mapped from the cache and shared, if the present keys accept it.
  // It is loaded for `consumer`. Its pages leave memory when it has not run for some seconds; the
  // module itself leaves memory after some minutes.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const wasm::Module>>> load(
      FlightModule module, budget::Consumer consumer, std::stop_token stop);

  // modules::Maker.
  [[nodiscard]] modules::Product find(const std::string& sha256) override;
  [[nodiscard]] io::Task<Result<modules::Product>> make(std::string sha256,
                                                        std::shared_ptr<const std::string> bytes,
                                                        budget::Beneficiaries beneficiaries,
                                                        std::stop_token stop) override;
  // The code is not held: it is loaded for each run, and made again if it is gone.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const void>>> charge(
      modules::Product product, budget::Consumer consumer) override;
  [[nodiscard]] bool is_asked_by_digest() const override { return true; }
  [[nodiscard]] io::Task<Result<std::string>> recall(modules::Requester requester,
                                                     std::string sha256,
                                                     std::stop_token stop) override;

 private:
  struct Kept {
    std::shared_ptr<const wasm::Module> module;
    Instant last_used;
    bool has_pages = true;  // Assumed: it was loaded since its pages were released.
  };
  void know(FlightModule module);
  [[nodiscard]] io::Task<void> remember(FlightModule module, budget::Beneficiaries beneficiaries);
  void release_unused();
  // Schedules release_unused() for soon.
  void watch_pages();

  const Parts parts_;
  std::map<std::string, std::shared_ptr<const FlightModule>> made_;  // By sha256.
  std::map<std::string, Kept> kept_;                                 // By sha256.
  io::Loop::Timer release_timer_;                                    // Runs while anything is kept.
  bool is_watching_pages_ = false;                                   // The timer is the short one.
  std::vector<CopyPlace> copies_;
  modules::Supply supply_;
};

}  // namespace hangar::airways
