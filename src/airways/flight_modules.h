// From the URL in an Airway to code that runs: allowed, fetched, verified, compiled, each once.
#pragma once

#include "abi/flight/evaluation.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/allow_list.h"
#include "modules/fetcher.h"
#include "wasm/code_cache.h"
#include "wasm/module.h"

#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::airways {

// Where an Airway's flight comes from.
struct FlightSource {
  std::string url;
  std::string checksum;  // sha256, hex; empty: as the URL says, or any.
  bool insecure = false;
};

// A module whose code is in the cache on disk.
struct FlightModule {
  std::string sha256;    // Of the uncompressed module, hex.
  std::string sha1;      // Of the same bytes: yoke's history names modules by it.
  std::string resolved;  // The reference, pinned by digest.
};

// Loop thread only.
class FlightModules {
 public:
  // All of it outlives this.
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    modules::Fetcher& fetcher;
    wasm::CodeCache& code_cache;
    const abi::flight::Runtime& runtime;
    modules::AllowList allow_list;
    // What was prepared before is remembered here, so that a host which starts again need not read
    // every module to find out that it has its code. Empty: not remembered.
    std::filesystem::path index_file = {};
  };
  explicit FlightModules(Parts parts);

  // Reads the index; one that cannot be read is as good as none. Blocking; before anything else.
  void open();

  // Resolves the source anew (a tag may have moved), fetches what is not here yet, and compiles it.
  // Errors, for the Airway's status: InvalidInput (not Wasm, wrong checksum, not allowed,
  // imports that no flight gets),
  // NotFound, Denied, Unavailable, LimitExceeded.
  [[nodiscard]] io::Task<Result<FlightModule>> prepare(FlightSource source, std::stop_token stop);

  // The code of a module that was prepared: mapped from the cache, shared. When nobody has run it
  // for some seconds its pages leave memory; after some minutes the module itself does.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const wasm::Module>>> load(FlightModule module,
                                                                           std::stop_token stop);

 private:
  struct Kept {
    std::shared_ptr<const wasm::Module> module;
    Instant last_used;
    bool has_pages = true;  // As far as we know: it ran since its pages were released.
  };
  [[nodiscard]] io::Task<void> remember(std::string key, FlightModule module);
  void release_unused();
  // Sees to it that release_unused() runs soon.
  void watch_pages();

  const Parts parts_;
  // By the reference's key (which shows no secret of it): what it was when it was last looked at.
  std::map<std::string, FlightModule> prepared_;
  std::map<std::string, Kept> kept_;  // By sha256.
  io::Loop::Timer release_timer_;     // Runs while anything is kept.
  bool is_watching_pages_ = false;    // The timer is one for pages.
};

}  // namespace hangar::airways
