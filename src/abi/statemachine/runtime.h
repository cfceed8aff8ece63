// From the bytes of a module to a machine, in whichever of the three shapes they are.
#pragma once

#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "io/task.h"
#include "wasm/code_cache.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::abi::statemachine {

// Whether `bytes` are a JavaScript bundle rather than a module: text that does not begin like one.
[[nodiscard]] bool is_bundle(std::string_view bytes);

// Which other module one that is linked dynamically lacks, for messages and for whoever finds it:
// the namespace that it imports from. Nothing for any other module, for a bundle, and for what is
// neither. Any thread.
[[nodiscard]] std::optional<std::string> missing_plugin(std::string_view bytes);

// Loop thread. Outlives its machines, and goes before the code cache.
class Runtime {
 public:
  // `image_directory`: where what many instances begin with lies; private to this user.
  Runtime(wasm::CodeCache& cache, std::filesystem::path image_directory);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  // A module that is linked dynamically carries its plugin (wasm::carry_plugin).
  // Compiles a module, or evaluates a bundle once; the machine's calls begin from there. Errors:
  // InvalidInput (no module and no text, another contract, a syntax error, no machine in it),
  // GuestFault (the bundle threw or trapped), LimitExceeded, Unavailable, Cancelled.
  [[nodiscard]] io::Task<Result<std::shared_ptr<Machine>>> load(
      std::shared_ptr<const std::string> bytes, MachineLimits limits, std::stop_token stop);

  struct Native;

 private:
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::abi::statemachine
