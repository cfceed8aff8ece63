#include "commands/cost_table.h"

#include "base/seconds.h"
#include "base/text.h"
#include "base/time.h"
#include "commands/plain_table.h"
#include "json/value.h"
#include "seeing/cost.h"
#include "seeing/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace hangar::commands {

namespace {

using seeing::Cost;
using seeing::CostRow;
using seeing::FoundCost;

// The first two are text columns.
constexpr std::size_t kCostTexts = 2;
using CostCells = std::vector<std::string>;

// Converts byte-seconds to MiB-hours.
std::string in_mib_hours(std::uint64_t byte_seconds) {
  constexpr double kMibHour = 1024.0 * 1024.0 * 3600.0;
  return fmt::format("{:.2f}", static_cast<double>(byte_seconds) / kMibHour);
}

std::string in_mib(std::uint64_t bytes) {
  constexpr double kMib = 1024.0 * 1024.0;
  return fmt::format("{:.2f}", static_cast<double>(bytes) / kMib);
}

CostCells cost_heads() {
  return {"NAMESPACE",  "MODULE", "CPU-S", "MEM-MIB-H", "CACHE-MIB-H",
          "DISK-MIB-H", "TURNS",  "CALLS", "READ-MIB",  "WRITTEN-MIB"};
}

CostCells cost_cells(std::string_view namespace_, std::string_view module, const Cost& cost) {
  constexpr std::size_t kDigits = 12;  // As `hangar why` shows modules.
  return {printable(namespace_),
          module.empty() ? "-" : printable(module.substr(0, kDigits)),
          fmt::format("{:.2f}", in_seconds(cost.cpu)),
          in_mib_hours(cost.memory_byte_seconds),
          in_mib_hours(cost.cache_byte_seconds),
          in_mib_hours(cost.disk_byte_seconds),
          std::to_string(cost.turns),
          std::to_string(cost.requests),
          in_mib(cost.read_bytes),
          in_mib(cost.written_bytes)};
}

void sort_costs(std::vector<CostRow>& rows) {
  std::map<std::string, Duration> sums;
  for (const CostRow& row : rows)
    sums[row.namespace_] += row.cost.cpu;
  const auto is_host = [](const CostRow& row) { return row.namespace_ == seeing::kHostRow; };
  std::ranges::sort(rows, [&](const CostRow& left, const CostRow& right) {
    // Where the larger value comes first, left and right are swapped.
    return std::make_tuple(is_host(left), sums[right.namespace_], left.namespace_, right.cost.cpu,
                           left.module) < std::make_tuple(is_host(right), sums[left.namespace_],
                                                          right.namespace_, left.cost.cpu,
                                                          right.module);
  });
}

// Quoted, because a name with a comma or a quote would split into several fields.
std::string csv_field(std::string_view text) {
  std::string field = printable(text);
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char character : field) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + '"';
}

}  // namespace

std::string cost_text(FoundCost found) {
  sort_costs(found.rows);
  std::vector<CostCells> rows = {cost_heads()};
  for (const CostRow& row : found.rows)
    rows.push_back(cost_cells(row.namespace_, row.module, row.cost));
  rows.push_back(cost_cells("(sum)", {}, seeing::sum_of(found.rows)));
  // Every valid name of a namespace fits.
  constexpr std::size_t kWidthMax = 63;
  std::string text;
  for (const std::string& line : plain_table(rows, {.texts = kCostTexts, .width_max = kWidthMax}))
    text += line + "\n";
  text +=
      fmt::format("Since the host started, {} ago.\n",
                  to_go_duration(std::chrono::duration_cast<std::chrono::seconds>(found.window)));
  for (const std::string& problem : found.problems)
    text += printable(problem) + "\n";
  return text;
}

std::string cost_csv(FoundCost found) {
  sort_costs(found.rows);
  std::string text =
      "namespace,module,cpu_microseconds,memory_byte_seconds,cache_byte_seconds,disk_byte_seconds,"
      "turns,calls,read_bytes,written_bytes\n";
  for (const CostRow& row : found.rows) {
    const Cost& cost = row.cost;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_field(row.namespace_),
                        csv_field(row.module),
                        std::chrono::duration_cast<std::chrono::microseconds>(cost.cpu).count(),
                        cost.memory_byte_seconds, cost.cache_byte_seconds, cost.disk_byte_seconds,
                        cost.turns, cost.requests, cost.read_bytes, cost.written_bytes);
  }
  return text;
}

std::string cost_json(const FoundCost& found) {
  return json::dump(seeing::json_of(found)) + "\n";
}

}  // namespace hangar::commands
