#include "workflows/machine_output.h"

#include "output/printout.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::workflows {

void MachineOutput::keep(const kube::ObjectKey& workflow, std::string_view text, Instant now) {
  std::string kept;
  std::uint64_t dropped_bytes = 0;
  std::optional<std::string> refused;
  for (const output::Printout::Line& line : output::lines_of("stdout", text)) {
    const std::size_t bytes = line.text.size() + 1;
    // After the first line without room no later one is kept.
    if (!refused) refused = allowances_.refuse(workflow.namespace_, bytes, now);
    if (refused) {
      dropped_bytes += bytes;
      continue;
    }
    kept += line.text;
    kept += '\n';
  }
  if (!kept.empty()) {
    log_.info("a machine printed",
              {{"namespace", workflow.namespace_}, {"name", workflow.name}, {"output", kept}});
  }
  if (refused) {
    const auto [found, is_new] = dropped_.try_emplace(workflow.namespace_);
    found->second.bytes.drop(dropped_bytes);
    found->second.bound = *std::move(refused);
  }
  const auto found = dropped_.find(workflow.namespace_);
  if (found == dropped_.end()) return;
  // At most once a second: otherwise the lines that tell it would be the flood.
  if (const std::optional<std::uint64_t> bytes = found->second.bytes.tell_dropped(now)) {
    log_.info(
        "output of machines was dropped",
        {{"namespace", workflow.namespace_}, {"bytes", *bytes}, {"reason", found->second.bound}});
  }
  if (found->second.bytes.is_as_new(now)) dropped_.erase(found);
}

}  // namespace hangar::workflows
