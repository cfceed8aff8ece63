// The body of a request as its guest sent it: in memory only, until it is redacted and written.
#pragma once

#include "base/time.h"
#include "recorder/record.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hangar::recorder {

// Namespace and name, as in SecretName.
using SecretNames = std::vector<std::pair<std::string, std::string>>;

struct RawBody {
  Contract contract = Contract::Operator;
  std::string namespace_;
  std::string name;
  std::uint64_t instance = 0;
  std::uint64_t id = 0;
  Instant at;
  BodyState state = BodyState::Whole;  // Otherwise `bytes` is empty.
  SecretNames secrets;
  std::string bytes;

  // What it takes in memory, about.
  [[nodiscard]] std::size_t size_bytes() const {
    constexpr std::size_t kSecretBytes = 64;
    return sizeof *this + namespace_.size() + name.size() + secrets.size() * kSecretBytes +
           bytes.size();
  }
};

}  // namespace hangar::recorder
