// SHA-256 of what arrives in pieces.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::node_install {

class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void add(std::string_view bytes);
  // 64 hexadecimal digits in lower case. Nothing can be added afterwards.
  [[nodiscard]] std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string sha256_of(std::string_view bytes);
// Whether it is written as finish() writes it.
[[nodiscard]] bool is_sha256(std::string_view text);

}  // namespace hangar::node_install
