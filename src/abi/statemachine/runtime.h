// Makes a machine from the bytes of a module of any of the three shapes.
#pragma once

#include "abi/statemachine/machine.h"
#include "abi/statemachine/program.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/code_cache.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::abi::statemachine {

// True when `bytes` are a JavaScript bundle and not a module: text that does not begin like
// a module.
[[nodiscard]] bool is_bundle(std::string_view bytes);

// The module that a dynamically linked module needs, for messages and for looking it up: the
// namespace that it imports from. std::nullopt for any other module, for a bundle, and for other
// bytes. Any thread.
[[nodiscard]] std::optional<std::string> missing_plugin(std::string_view bytes);

// The module in which bundles run; part of this program. Any thread.
[[nodiscard]] std::string_view bundle_interpreter();

// Loop thread. Outlives its machines, and is destroyed before the code cache.
class Runtime {
 public:
  // `image_directory`: for the memory images from which many instances start; private to this user.
  // `elsewhere`: asks the machines outside this process, so that none of their code runs here;
  // null: they are asked here. Outlives this object.
  Runtime(wasm::CodeCache& cache, std::filesystem::path image_directory,
          ProgramRunner* elsewhere = nullptr);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  // Compiles a module, or evaluates a bundle once, so that the machine's calls start from that
  // point. A dynamically linked module must carry its plugin (wasm::carry_plugin). Errors:
  // InvalidInput (neither a module nor text, another contract, a syntax error, no machine in it),
  // GuestFault (the bundle threw or trapped), LimitExceeded, Unavailable, Cancelled. The task waits
  // for the compiler on behalf of the beneficiaries. Machines that are asked elsewhere are not
  // evaluated here: Machine::try_out() finds the faults of a bundle.
  [[nodiscard]] io::Task<Result<std::shared_ptr<Machine>>> load(
      std::shared_ptr<const std::string> bytes, MachineLimits limits, std::stop_token stop,
      budget::Beneficiaries beneficiaries = budget::unnamed_consumer());

  // CodeCache::charge() for that machine's use of the disk.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const void>>> charge(
      std::shared_ptr<const Machine> machine, budget::Consumer consumer);

  // Frees the instances that are kept for the next questions; returns how many there were. The next
  // questions make new ones. Not those of the processes elsewhere.
  std::size_t free_kept();

  struct Native;

 private:
  std::unique_ptr<Native> native_;
};

}  // namespace hangar::abi::statemachine
