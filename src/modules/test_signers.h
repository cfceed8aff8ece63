// Signers of modules without keys. For tests.
#pragma once

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
  [[nodiscard]] bool have_signed(std::string_view bytes,
                                 std::string_view signature) const override {
    return signature == name_ + std::string(bytes);
  }

 private:
  const std::string name_;
};

}  // namespace hangar::modules
