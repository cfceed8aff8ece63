// WASI preview 1, as far as guests of the published contracts use it.
//
// A guest sees arguments, environment, a stdin of given bytes, a stdout and a stderr whose bytes go
// to the host, real clocks and randomness; and, where it is given some, files that it may read
// below the one directory "/". There are no others, no writing and no sockets, so that a guest has
// no way to the machine. Every function of preview 1 exists, so that a module which merely imports
// one can be instantiated; what is not offered answers ENOTSUP, ENOSYS, EROFS or EBADF. A pointer
// outside of the guest's memory answers EFAULT.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "base/slots.h"
#include "base/time.h"
#include "wasm/host_call.h"
#include "wasm/limits.h"
#include "wasm/wasi/c_strings.h"
#include "wasm/wasi/files.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm::wasi {

// The name under which guests import all of it.
inline constexpr char kModule[] = "wasi_snapshot_preview1";

enum class OutputStream : std::uint8_t { Stdout, Stderr };

// What a descriptor number of a guest stands for.
struct Descriptor {
  // Idle: readable when its guest has nothing to do. Only a poll_oneoff that would block finds it
  // so, and is told to its process (Process::on_idle).
  enum class Kind : std::uint8_t { Closed, Stdin, Stdout, Stderr, File, Directory, Idle };
  Kind kind = Kind::Closed;
  FileTree::Index node = FileTree::kRoot;  // Of files and directories.
  std::uint64_t offset = 0;                // Of files: where the next read begins.
  bool is_presented = false;               // The directory that it had from the start.

  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};
using Descriptors = std::vector<Descriptor, slots::Allocator<Descriptor>>;  // By number.

// All that a process is while its guest does not run.
struct ProcessState {
  CStrings arguments;
  CStrings environment;                   // "NAME=value".
  std::shared_ptr<const FileTree> files;  // Without them it is presented no directory at all.
  Descriptors descriptors = {};           // Empty: those that a process begins with.
};

// What one guest is given, and how far it is with it. Where its input comes from, and its output
// goes, is its owner's affair.
class Process : public HostState {
 public:
  explicit Process(ProcessState state);

  // For another process, which goes on where this one is: it is over.
  [[nodiscard]] ProcessState take_state();

  CStrings arguments;
  CStrings environment;

  // Left behind.
  std::optional<std::uint32_t> exit_code;  // Nothing when it did not call proc_exit.

  // Takes what the guest printed. An error ends the run.
  [[nodiscard]] virtual Result<> print(OutputStream stream, std::string_view bytes) = 0;
  // What it has not read of its stdin yet, and at most `size` bytes of that, which last as long as
  // the process.
  [[nodiscard]] virtual std::size_t stdin_left() const { return 0; }
  [[nodiscard]] virtual std::string_view take_stdin(std::size_t /*size*/) { return {}; }

  // A poll_oneoff that would have blocked until `due` (the largest Instant: for ever) was answered
  // at once, because it asked for the idle descriptor. On the worker that runs the guest.
  virtual void on_idle(Instant /*due*/) {}
  // The number of the idle descriptor, which is opened if it is not open; nothing when
  // kGuestDescriptorsMax are.
  [[nodiscard]] std::optional<std::uint32_t> idle_descriptor();

  // Kind Closed for every number that it has not open. The reference lasts until open().
  [[nodiscard]] Descriptor& descriptor(std::uint32_t number);
  // The lowest free number; nothing when kGuestDescriptorsMax are open.
  [[nodiscard]] std::optional<std::uint32_t> open(Descriptor descriptor);
  // Of a descriptor that is a file or a directory.
  [[nodiscard]] const FileTree& files() const { return *files_; }
  [[nodiscard]] const FileTree::Node& node(const Descriptor& descriptor) const {
    return files_->node(descriptor.node);
  }

 private:
  std::shared_ptr<const FileTree> files_;
  Descriptors descriptors_;
  Descriptor closed_;
};

// A process of one run, whose output is kept until its end: stdout for the host, stderr for people.
class Command : public Process {
 public:
  Command() : Process(ProcessState{}) {}

  std::string stdin_bytes;

  // More than this on stdout ends the run with LimitExceeded; stderr is cut instead, with a note.
  std::uint64_t stdout_bytes_max = limits::kFlightOutputBytesMax;
  std::uint64_t stderr_bytes_max = limits::kFlightErrorBytesMax;

  // Left behind.
  std::string stdout_bytes;
  std::string stderr_bytes;
  std::uint64_t stderr_dropped_bytes = 0;

  // stderr with the note.
  [[nodiscard]] std::string stderr_text() const;

  [[nodiscard]] Result<> print(OutputStream stream, std::string_view bytes) override;
  [[nodiscard]] std::size_t stdin_left() const override { return stdin_bytes.size() - stdin_read_; }
  [[nodiscard]] std::string_view take_stdin(std::size_t size) override;

 private:
  std::size_t stdin_read_ = 0;
};

// Registers all functions; the state of runs must be a Process.
void add_preview1(HostFunctions& functions);

}  // namespace hangar::wasm::wasi
