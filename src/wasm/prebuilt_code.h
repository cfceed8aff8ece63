// Native code that another machine has compiled. Declared here for the cache; the implementing
// folder knows where the code is and whose code may run.
#pragma once

#include "base/result.h"
#include "wasm/digest.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hangar::wasm {

// Any thread.
class PrebuiltCode {
 public:
  PrebuiltCode() = default;
  PrebuiltCode(const PrebuiltCode&) = delete;
  PrebuiltCode& operator=(const PrebuiltCode&) = delete;
  virtual ~PrebuiltCode() = default;

  // Copies code of that module for this machine to `output`, a new file in a directory to which
  // nobody else can write; every byte of the copy may then be trusted. Returns the builder that has
  // signed it, as letters and digits. NotFound: there is no code. Denied: there is, and it may not
  // run. LimitExceeded: it has more than `bytes_max`. Whatever the error, `output` may exist and be
  // incomplete. Blocking.
  [[nodiscard]] virtual Result<std::string> copy_to(const std::filesystem::path& output,
                                                    const Digest& module,
                                                    std::uint64_t bytes_max) const = 0;

  // Whether that builder's code may run. It does not do so for ever.
  [[nodiscard]] virtual bool trusts(std::string_view builder) const = 0;
};

}  // namespace hangar::wasm
