// From the reference in an Operator to a module whose guests can sleep: fetched, verified,
// rewritten, compiled, each once, and shared by all operators of the same bytes.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "modules/allow_list.h"
#include "modules/fetcher.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/snapshot/sleepable_module.h"

#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

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
  explicit OperatorModules(Parts parts) : parts_(std::move(parts)) {}

  // Resolves the source anew (a tag may have moved). What is in use already is not read again.
  // Errors, for the operator's status: InvalidInput (not Wasm, another contract, wrong checksum,
  // not allowed), NotFound, Denied, Unavailable, LimitExceeded, Cancelled.
  [[nodiscard]] io::Task<Result<OperatorModule>> prepare(ModuleSource source, std::stop_token stop);

 private:
  struct Known {
    std::weak_ptr<const wasm::SleepableModule> code;
    std::weak_ptr<io::Semaphore> making;  // Of those who make it, or wait for who does.
  };

  [[nodiscard]] io::Task<Result<std::shared_ptr<const wasm::SleepableModule>>> make(
      wasm::Digest digest, std::shared_ptr<const std::string> bytes, std::stop_token stop);
  [[nodiscard]] io::Task<Result<>> check(const wasm::SleepableModule& module) const;

  const Parts parts_;
  std::map<wasm::Digest, Known> known_;
  // By the digest of the reference's key: what it was when it was last looked at.
  std::map<wasm::Digest, wasm::Digest> digest_of_;
};

}  // namespace hangar::operators
