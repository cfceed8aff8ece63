// WASI preview 1 for commands, as far as guests of the published contracts use it.
//
// A guest sees a stdin of given bytes, a stdout and a stderr that are kept for the host, arguments,
// environment, real clocks and randomness. There are no files and no sockets: descriptors 0 to 2
// are all there is, so that a guest has no way to the machine. Every function of preview 1 exists,
// so that a module which merely imports one can be instantiated; what is not offered answers
// ENOTSUP, ENOSYS or EBADF. A pointer outside of the guest's memory answers EFAULT.
#pragma once

#include "base/limits.h"
#include "wasm/host_call.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm::wasi {

// The name under which guests import all of it.
inline constexpr char kModule[] = "wasi_snapshot_preview1";

// What one run of a command is given, and what it leaves.
class Command : public HostState {
 public:
  // Given. No null bytes in them: the guest reads them as C strings.
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value".
  std::string stdin_bytes;
  // More than this on stdout ends the run with LimitExceeded; stderr is cut instead, with a note.
  std::uint64_t stdout_bytes_max = limits::kFlightOutputBytesMax;
  std::uint64_t stderr_bytes_max = limits::kFlightErrorBytesMax;

  // Left behind.
  std::string stdout_bytes;
  std::string stderr_bytes;
  std::uint64_t stderr_dropped_bytes = 0;
  std::optional<std::uint32_t> exit_code;  // Nothing when it did not call proc_exit.

  // stderr with the note.
  [[nodiscard]] std::string stderr_text() const;

  // What a descriptor number of the guest stands for; Closed for every other number.
  enum class Descriptor : std::uint8_t { Closed, Stdin, Stdout, Stderr };
  [[nodiscard]] Descriptor descriptor(std::uint32_t number) const {
    return number < descriptors_.size() ? descriptors_[number] : Descriptor::Closed;
  }
  void close(std::uint32_t number) { descriptors_[number] = Descriptor::Closed; }
  [[nodiscard]] std::size_t stdin_left() const { return stdin_bytes.size() - stdin_read_; }
  [[nodiscard]] std::string_view take_stdin(std::size_t size);

 private:
  std::vector<Descriptor> descriptors_ = {Descriptor::Stdin, Descriptor::Stdout,
                                          Descriptor::Stderr};
  std::size_t stdin_read_ = 0;
};

// Registers all functions; the state of runs must be a Command.
void add_preview1(HostFunctions& functions);

}  // namespace hangar::wasm::wasi
