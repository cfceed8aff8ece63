// Random bytes that a seed repeats, for simulations: while one of these lives, the functions of
// base/random.h draw from it on its thread, so that the same seed gives the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace hangar {

class SimulatedRandom {
 public:
  // One at a time on a thread.
  explicit SimulatedRandom(std::uint64_t seed);
  SimulatedRandom(const SimulatedRandom&) = delete;
  SimulatedRandom& operator=(const SimulatedRandom&) = delete;
  ~SimulatedRandom();

  void fill(std::span<std::byte> bytes);

 private:
  std::mt19937_64 random_;
};

}  // namespace hangar
