// The output of `hangar top --cost`. Other users choose the names, so everything but printable
// ASCII is escaped.
#pragma once

#include "seeing/cost.h"

#include <string>

namespace hangar::commands {

// The most expensive namespace first, its modules below each other; the host itself and the sum
// last.
[[nodiscard]] std::string cost_text(seeing::FoundCost found);

// Whole numbers in the units that the header line names. Contains every row, but no sum.
[[nodiscard]] std::string cost_csv(seeing::FoundCost found);

[[nodiscard]] std::string cost_json(const seeing::FoundCost& found);

}  // namespace hangar::commands
