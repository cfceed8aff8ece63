#include "seeing/cost.h"

#include <vector>

namespace hangar::seeing {

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

Cost sum_of(const std::vector<CostRow>& rows) {
  Cost sum;
  for (const CostRow& row : rows)
    sum += row.cost;
  return sum;
}

}  // namespace hangar::seeing
