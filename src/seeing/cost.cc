#include "seeing/cost.h"

#include "base/time.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hangar::seeing {

namespace {

std::uint64_t growth(std::uint64_t before, std::uint64_t now) {
  return now - std::min(before, now);
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  cpu += other.cpu;
  memory_byte_seconds += other.memory_byte_seconds;
  cache_byte_seconds += other.cache_byte_seconds;
  disk_byte_seconds += other.disk_byte_seconds;
  turns += other.turns;
  requests += other.requests;
  read_bytes += other.read_bytes;
  written_bytes += other.written_bytes;
  return *this;
}

Cost Cost::growth_since(const Cost& before) const {
  return {.cpu = std::max(cpu - before.cpu, Duration::zero()),
          .memory_byte_seconds = growth(before.memory_byte_seconds, memory_byte_seconds),
          .cache_byte_seconds = growth(before.cache_byte_seconds, cache_byte_seconds),
          .disk_byte_seconds = growth(before.disk_byte_seconds, disk_byte_seconds),
          .turns = growth(before.turns, turns),
          .requests = growth(before.requests, requests),
          .read_bytes = growth(before.read_bytes, read_bytes),
          .written_bytes = growth(before.written_bytes, written_bytes)};
}

Cost sum_of(const std::vector<CostRow>& rows) {
  Cost sum;
  for (const CostRow& row : rows)
    sum += row.cost;
  return sum;
}

}  // namespace hangar::seeing
