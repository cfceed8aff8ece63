#include "base/random.h"

#include "base/assert.h"
#include "base/simulated_random.h"

#include <sys/random.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hangar {

namespace {

// Null: the kernel's.
constinit thread_local SimulatedRandom* simulated = nullptr;

}  // namespace

SimulatedRandom::SimulatedRandom(std::uint64_t seed) : random_(seed) {
  HANGAR_ASSERT(simulated == nullptr, "a thread has one simulation at a time");
  simulated = this;
}

SimulatedRandom::~SimulatedRandom() {
  simulated = nullptr;
}

void SimulatedRandom::fill(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random_());
}

void fill_random(std::span<std::byte> bytes) {
  if (simulated != nullptr) return simulated->fill(bytes);
  while (!bytes.empty()) {
    // A signal may cut reads of more than 256 bytes short.
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    HANGAR_ASSERT(count >= 0 || errno == EINTR, "the kernel has random bytes");
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

RandomKey random_key() {
  RandomKey key{};
  fill_random(std::as_writable_bytes(std::span(key)));
  return key;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace hangar
