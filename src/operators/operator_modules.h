// From the reference in an Operator to a module whose guests can sleep: fetched, verified,
// rewritten, compiled, each once, and shared by all operators of the same bytes.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/result.h"
#include "base/slots.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "modules/allow_list.h"
#include "modules/fetcher.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/snapshot/sleepable_module.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::operators {

struct ModuleSource {
  std::string reference;  // As modules::Reference reads it.
  std::string sha256;     // Expected, hex; empty: as the reference says, or any.
  bool insecure = false;
};

struct OperatorModule {
  std::shared_ptr<const wasm::SleepableModule> code;  // Its digest: as its author made it.
  std::string resolved;  // The reference, pinned by digest where that can be.
};

// Loop thread only.
class OperatorModules {
 public:
  // All of it outlives this.
  struct Parts {
    io::Loop& loop;
    modules::Fetcher& fetcher;
    wasm::CodeCache& code_cache;
    const abi::kube_runtime::Runtime& runtime;
    std::filesystem::path image_directory;  // Of images that instances share.
    modules::AllowList allow_list = {};
  };
  explicit OperatorModules(Parts parts) : parts_(std::move(parts)), making_(parts_.loop) {}

  // Resolves the source anew (a tag may have moved). What is in use already is not read again.
  // Errors, for the operator's status: InvalidInput (not Wasm, another contract, wrong checksum,
  // not allowed), NotFound, Denied, Unavailable, LimitExceeded, Cancelled.
  [[nodiscard]] io::Task<Result<OperatorModule>> prepare(ModuleSource source, std::stop_token stop);

 private:
  using Module = std::shared_ptr<const wasm::SleepableModule>;

  // Of a reference with that key.
  [[nodiscard]] io::Task<Result<Module>> make(wasm::Digest key, wasm::Digest digest,
                                              std::shared_ptr<const std::string> bytes,
                                              std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> check(const wasm::SleepableModule& module) const;
  // Null: no operator has it.
  [[nodiscard]] Module find(const wasm::Digest& digest) const;

  const Parts parts_;
  io::Turns<wasm::Digest> making_;
  // By the digest of the reference's key: what it was when it was last looked at. Modules that no
  // operator has any more are forgotten.
  using Known = std::pair<const wasm::Digest, std::weak_ptr<const wasm::SleepableModule>>;
  std::map<wasm::Digest, std::weak_ptr<const wasm::SleepableModule>, std::less<>,
           slots::Allocator<Known>>
      known_;
};

}  // namespace hangar::operators
