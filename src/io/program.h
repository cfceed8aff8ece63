// Programs that this process runs for its user (go, esbuild, kubectl), or that a kubeconfig file
// names. Calls block; a program has the rights and the environment of this process. The host runs
// only programs of kubeconfig files, with run_bounded(), on a thread that may block.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/descriptor.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hangar::io {

// The file of the running program. Call it before that file may have been replaced. Unavailable.
[[nodiscard]] Result<std::filesystem::path> own_program();

// The first executable file of that name on PATH. NotFound.
[[nodiscard]] Result<std::filesystem::path> find_program(std::string_view name);

[[nodiscard]] bool is_program(const std::filesystem::path& path);

// The environment of this process as "NAME=value", with the variables of `extra` added; they
// replace those of the same name.
[[nodiscard]] std::vector<std::string> environment_with(const std::vector<std::string>& extra);

struct Program {
  std::filesystem::path path;  // A name without a slash is looked up on PATH.
  std::vector<std::string> arguments = {};
  std::filesystem::path directory = {};  // Its working directory; empty: that of this process.
  // "NAME=value", added to the environment of this process; replaces variables of the same name.
  std::vector<std::string> environment = {};
};

// Runs the program until it exits and returns its exit code; both its output streams go to stderr.
// NotFound; Unavailable when it cannot be started or a signal kills it.
[[nodiscard]] Result<int> run_program(const Program& program);

struct ProgramOutput {
  int exit_code = 0;
  std::string text;  // Its stdout.
};
// The same, but its stdout is returned. LimitExceeded when it prints more than `bytes_max`.
[[nodiscard]] Result<ProgramOutput> read_program(const Program& program, std::uint64_t bytes_max);

// The same for a program that may hang or leave children behind: it has /dev/null as standard input
// and default signals, and returns its stdout. It has finished when it has exited and all its
// children have closed both streams; otherwise it is killed together with its children. NotFound;
// Unavailable, with the end of its stderr, when it cannot be started, has not finished within
// `deadline`, prints more than `bytes_max` on one stream or exits with a code other than
// 0; Cancelled.
struct ProgramBounds {
  Duration deadline;
  std::uint64_t bytes_max = 0;
};
[[nodiscard]] Result<std::string> run_bounded(const Program& program, const ProgramBounds& bounds,
                                              const std::stop_token& stop);

// Starts a program that this process does not wait for, such as a browser: in its own session, with
// no signal blocked, with /dev/null as its input and output. Errors as for run_program.
[[nodiscard]] Result<> start_detached(const Program& program);

// A program that serves this process while it runs, and is stopped with it, however this
// process exits.
class Companion {
 public:
  // Errors as for run_program.
  [[nodiscard]] static Result<std::unique_ptr<Companion>> start(const Program& program);
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  ~Companion();

  // Waits for the first line on either stream that starts with `beginning`, and returns the rest of
  // that line. Unavailable, with the last line that was printed, when the program exits before that
  // or `time_max` has passed.
  [[nodiscard]] Result<std::string> wait_for_line(std::string_view beginning, Duration time_max);

 private:
  struct Printed;
  Companion(std::string name, int child, Descriptor output);

  const std::string name_;
  const int child_;
  // Shared with the thread that reads the output: a full pipe would block the program.
  const std::shared_ptr<Printed> printed_;
  std::jthread reader_;
};

}  // namespace hangar::io
