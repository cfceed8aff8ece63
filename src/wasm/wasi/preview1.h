// WASI preview 1, as far as guests of the published contracts use it.
//
// A guest sees arguments, environment, given bytes on stdin, a stdout and a stderr whose bytes go
// to the host, real clocks and randomness; and, if it was given some, files that it may read below
// the single directory "/". There are no other files, no writing and no sockets, so that a guest
// has no access to the machine. Every function of preview 1 exists, so that a module that merely
// imports one can be instantiated; functions that are not offered return ENOTSUP, ENOSYS, EROFS or
// EBADF. A pointer outside of the guest's memory gives EFAULT.
#pragma once

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

// The name of the module from which guests import all functions.
inline constexpr char kModule[] = "wasi_snapshot_preview1";

enum class OutputStream : std::uint8_t { Stdout, Stderr };

// What a guest's descriptor number stands for.
struct Descriptor {
  // Idle: becomes readable when the guest has nothing to do. Only a poll_oneoff that would
  // otherwise block reports this, and notifies the process (Process::on_idle).
  enum class Kind : std::uint8_t { Closed, Stdin, Stdout, Stderr, File, Directory, Idle };
  Kind kind = Kind::Closed;
  FileTree::Index node = FileTree::kRoot;  // Of files and directories.
  std::uint64_t offset = 0;                // Only of files: where the next read begins.
  bool is_presented = false;               // The directory that the process has from the start.

  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};
using Descriptors = std::vector<Descriptor, slots::Allocator<Descriptor>>;  // By number.

// The entire state of a process while its guest does not run.
struct ProcessState {
  CStrings arguments;
  CStrings environment;                   // "NAME=value".
  std::shared_ptr<const FileTree> files;  // Null: the process has no directory at all.
  Descriptors descriptors = {};           // Empty: those with which every process starts.
};

// The environment of one guest, and its progress through it. The derived class provides input and
// receives output.
class Process : public HostState {
 public:
  explicit Process(ProcessState state);

  // Moves the state to another process, which continues from here; this process is finished.
  [[nodiscard]] ProcessState take_state();

  CStrings arguments;
  CStrings environment;

  // Set when the guest has finished.
  std::optional<std::uint32_t> exit_code;  // std::nullopt when it did not call proc_exit.

  // Receives the guest's output. An error ends the run.
  [[nodiscard]] virtual Result<> print(OutputStream stream, std::string_view bytes) = 0;
  // stdin_left(): how many bytes of stdin the guest has not read yet. take_stdin(): at most `size`
  // of those bytes, valid as long as the process.
  [[nodiscard]] virtual std::size_t stdin_left() const { return 0; }
  [[nodiscard]] virtual std::string_view take_stdin(std::size_t /*size*/) { return {}; }

  // A poll_oneoff that would have blocked until `due` (the largest Instant: for ever) returned
  // at once, because the guest subscribed to the idle descriptor. Called on the worker that runs
  // the guest.
  virtual void on_idle(Instant /*due*/) {}
  // The number of the idle descriptor, which is opened if necessary; std::nullopt when
  // kGuestDescriptorsMax are open.
  [[nodiscard]] std::optional<std::uint32_t> idle_descriptor();

  // Returns kind Closed for every number that is not open. The reference is valid until open().
  [[nodiscard]] Descriptor& descriptor(std::uint32_t number);
  // Opens it at the lowest free number; std::nullopt when kGuestDescriptorsMax are open.
  [[nodiscard]] std::optional<std::uint32_t> open(Descriptor descriptor);
  // For a descriptor that is a file or a directory.
  [[nodiscard]] const FileTree& files() const { return *files_; }
  [[nodiscard]] const FileTree::Node& node(const Descriptor& descriptor) const {
    return files_->node(descriptor.node);
  }

 private:
  std::shared_ptr<const FileTree> files_;
  Descriptors descriptors_;
  Descriptor closed_;
};

// A process of one run. Keeps its output until the end: stdout for the host, stderr for people.
class Command : public Process {
 public:
  Command() : Process(ProcessState{}) {}

  std::string stdin_bytes;

  // More output on stdout ends the run with LimitExceeded; stderr is cut, with a note.
  std::uint64_t stdout_bytes_max = limits::kFlightOutputBytesMax;
  std::uint64_t stderr_bytes_max = limits::kFlightErrorBytesMax;

  // Set when the guest has finished.
  std::string stdout_bytes;
  std::string stderr_bytes;
  std::uint64_t stderr_dropped_bytes = 0;

  // stderr, with the note if it was cut.
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
