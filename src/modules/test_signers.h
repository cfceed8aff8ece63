// Signers of modules without keys. For tests.
#pragma once

#include "base/result.h"
#include "modules/cosign.h"

#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

// Signs by writing its name before the bytes.
class NamedSigner final : public Signers {
 public:
  explicit NamedSigner(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string id() const override { return name_; }
  [[nodiscard]] Result<std::string> find_signer(const Claim& claim) const override {
    if (claim.signature == name_ + std::string(claim.bytes)) return "one of the rule's keys";
    return fail(ErrorKind::Denied, "the signature was made by none of the rule's keys");
  }
  [[nodiscard]] std::string advice() const override { return "sign it by name"; }

 private:
  const std::string name_;
};

}  // namespace hangar::modules
