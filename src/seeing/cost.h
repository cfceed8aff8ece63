// The cost of each namespace and module since the host started. The sum of the rows is the use of
// the host's processes; one row is the host itself.
#pragma once

#include "base/time.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::seeing {

// Names of the rows that belong to no namespace. No namespace can have these names.
inline constexpr std::string_view kHostRow = "(host)";
inline constexpr std::string_view kClusterRow = "(cluster)";
inline constexpr std::string_view kOthersRow = "(others)";

// Memory and disk are integrals over time: a byte that is held for a minute counts 60.
struct Cost {
  Duration cpu{};
  std::uint64_t memory_byte_seconds = 0;  // Resident.
  std::uint64_t cache_byte_seconds = 0;   // Share of the shared cache of objects.
  std::uint64_t disk_byte_seconds = 0;    // Disk of sleeping guests.
  std::uint64_t turns = 0;
  std::uint64_t requests = 0;       // To the API server, including cached answers.
  std::uint64_t read_bytes = 0;     // Bodies of answers.
  std::uint64_t written_bytes = 0;  // Bodies of writes.

  Cost& operator+=(const Cost& other);
  // What was added since `before`; zero for what has shrunk.
  [[nodiscard]] Cost growth_since(const Cost& before) const;
  friend bool operator==(const Cost&, const Cost&) = default;
};

struct CostRow {
  std::string namespace_;  // A namespace, or one of the names above.
  std::string module;      // SHA-256, hexadecimal; empty: work that belongs to no single module.
  Cost cost;

  friend bool operator==(const CostRow&, const CostRow&) = default;
};

struct CostQuestion {
  std::string namespace_;  // Empty: all namespaces.

  friend bool operator==(const CostQuestion&, const CostQuestion&) = default;
};

struct FoundCost {
  WallTime at;
  Duration window{};  // Since the host started.
  std::vector<CostRow> rows;
  // Measured for the host's processes as a whole; only for readers of all namespaces.
  std::optional<Cost> processes;
  std::vector<std::string> problems;
};

[[nodiscard]] Cost sum_of(const std::vector<CostRow>& rows);

}  // namespace hangar::seeing
