// Native code in a directory of the configuration, signed by builders whom the host trusts: for
// hosts without a compiler. docs/formats/native-code.md describes the files.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "schematics/keys.h"
#include "wasm/code_target.h"
#include "wasm/digest.h"
#include "wasm/prebuilt_code.h"

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::signatures {

// The files of one module's code for one target.
struct PrebuiltFiles {
  [[nodiscard]] static PrebuiltFiles of(const std::filesystem::path& directory,
                                        const wasm::Digest& module, const wasm::CodeTarget& target);
  std::filesystem::path code;
  std::filesystem::path signature;
};

// Anyone may write to the directory: code is copied first, and the copy is verified. Tenants read
// its errors in a status: these say what to do, and the log has paths and features of this host.
class PrebuiltDirectory final : public wasm::PrebuiltCode {
 public:
  PrebuiltDirectory(std::filesystem::path directory, schematics::PublicKeys keys, const Log& log)
      : directory_(std::move(directory)), keys_(std::move(keys)), log_(log) {}

  // Prefers code for the features of this processor to code for all processors.
  [[nodiscard]] Result<std::string> copy_to(const std::filesystem::path& output,
                                            const wasm::Digest& module,
                                            std::uint64_t bytes_max) const override;
  // A builder is the fingerprint of its key.
  [[nodiscard]] bool trusts(std::string_view builder) const override {
    return keys_.find(builder) != nullptr;
  }

 private:
  [[nodiscard]] Result<std::string> copy_for(const wasm::CodeTarget& target,
                                             const std::filesystem::path& output,
                                             const wasm::Digest& module,
                                             std::uint64_t bytes_max) const;
  // Logs `why`, and returns an error of its kind with what tenants may know.
  [[nodiscard]] std::unexpected<Error> refuse(const std::filesystem::path& file, const Error& why,
                                              std::string_view told) const;

  const std::filesystem::path directory_;
  const schematics::PublicKeys keys_;
  const Log log_;
};

}  // namespace hangar::signatures
