// `hangar demo`: a demonstration of hangar on a cluster. It is a script, deploy/demo/show.sh, which
// installations have with its manifests and modules in share/hangar/demo.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace hangar::commands {

enum class DemoWork : std::uint8_t { Show, Clean };

struct DemoOptions {
  std::filesystem::path directory = {};  // Of the script; empty: share/hangar/demo of this program.
  std::filesystem::path kubeconfig = {};  // Empty: as kubectl finds it.
  std::string context = {};               // Empty: the current one.
  DemoWork work = DemoWork::Show;
  bool is_confirmed = false;  // Does not ask before it uses a cluster that is not on this machine.
};

// Replaces this process by the script's. Returns only if that fails.
[[nodiscard]] Error run_demo(const DemoOptions& options);

}  // namespace hangar::commands
