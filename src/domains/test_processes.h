// For tests of guest processes: lists the existing processes, as the kernel shows them, and what is
// reserved for guests.
#pragma once

#include "base/number.h"
#include "budget/accounts.h"
#include "domains/guest_processes.h"
#include "io/loop.h"

#include <sys/types.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace hangar::domains {

// State and parent of a process, from its stat; a zero state when it has exited.
struct ProcessState {
  char state = 0;
  pid_t parent = -1;
};
inline ProcessState state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t end = text.rfind(") ");  // The name may contain anything.
  if (end == std::string::npos) return {};
  ProcessState found{.state = text[end + 2]};
  std::from_chars(text.data() + end + 4, text.data() + text.size(), found.parent);
  return found;
}

inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = parse_number<pid_t>(entry.path().filename().string());
    if (!pid) continue;
    const ProcessState state = state_of(*pid);
    if (state.parent == parent && state.state != 'Z') children.push_back(*pid);
  }
  return children;
}

// What is reserved besides the own memory of processes, which is counted when it was measured.
inline std::uint64_t guests_bytes(const budget::Accounts& accounts) {
  std::uint64_t bytes = 0;
  for (const budget::Accounts::Holding& holding : accounts.holdings()) {
    bytes +=
        holding.bytes - accounts.held_bytes(GuestProcesses::consumer_of_own_memory(holding.tenant));
  }
  return bytes;
}

// Lets tasks end that waited for their turn at messages of processes that the test has destroyed.
inline void end_waiting_tasks(io::Loop& loop) {
  bool is_over = false;
  loop.post([&is_over] { is_over = true; });
  loop.run_until([&is_over] { return is_over; });
}

}  // namespace hangar::domains
