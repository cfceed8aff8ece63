#include "base/limits.h"
#include "cli/commands.h"
#include "io/program.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// Each connection, watch and module that can sleep needs a descriptor. The soft limit of 1024 only
// protects programs that use select().
void allow_many_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

bool is_long_running(int argc, char** argv) {
  using hangar::cli::ProgramName;
  const ProgramName name = argc > 0 ? hangar::cli::program_name(argv[0]) : ProgramName::Hangar;
  if (name == ProgramName::Atc) return true;
  if (argc < 2 || name == ProgramName::Yoke) return false;
  const std::string_view command = argv[1];
  return command == "host" || command == "run";
}

// glibc keeps up to seven freed pieces of each small size for each thread, wherever in the heap
// they lie: on a host whose operators sleep, hundreds of pages stay in memory for one such piece
// each. glibc can be told not to only by an environment variable that it reads before main(), so
// the program re-executes itself with that variable. It goes on as it is if that fails, or if it
// has capabilities that its caller lacks: there the variable is removed at each start.
// NOLINTBEGIN(concurrency-mt-unsafe): before any thread starts.
void keep_no_freed_pieces(char** argv) {
  constexpr const char* kVariable = "GLIBC_TUNABLES";
  constexpr std::string_view kSetting = "glibc.malloc.tcache_count";
  const char* const present = std::getenv(kVariable);
  const std::string others = present == nullptr ? "" : present;
  // Without AT_BASE the user ran the loader with this program as its argument: a re-exec would run
  // the loader alone.
  if (others.find(kSetting) != std::string::npos || ::getauxval(AT_SECURE) != 0 ||
      ::getauxval(AT_BASE) == 0) {
    return;
  }
  // In front, because glibc before 2.39 cuts what /proc/PID/environ shows of it at the first colon.
  const std::string tunables = fmt::format("{}=0{}{}", kSetting, others.empty() ? "" : ":", others);
  if (::setenv(kVariable, tunables.c_str(), 1) != 0) return;
  if (const auto program = hangar::io::own_program()) ::execv(program->c_str(), argv);
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

int main(int argc, char** argv) {
  if (is_long_running(argc, argv)) keep_no_freed_pieces(argv);
  // NOLINTBEGIN(concurrency-mt-unsafe): before any thread starts.
  // Buffers of a module's size return to the system when they are freed. By default glibc would
  // keep the next ones after the first: up to 64 MiB in each thread's heap.
  ::mallopt(M_MMAP_THRESHOLD, hangar::limits::kMiB);
  ::mallopt(M_TRIM_THRESHOLD, 2 * hangar::limits::kMiB);
  // One heap for all threads: guests allocate in memories of their own, and a piece that one thread
  // freed serves the others.
  ::mallopt(M_ARENA_MAX, 1);
  // NOLINTEND(concurrency-mt-unsafe)
  allow_many_files();
  const int code = hangar::cli::run(argc, argv);
  // Output that is still in the buffer is written here, where its loss can be told.
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!is_written && errno != EPIPE) {  // EPIPE: its reader has seen enough.
    std::fprintf(stderr, "hangar: standard output cannot be written: %s\n",
                 std::generic_category().message(errno).c_str());
    return code == 0 ? EXIT_FAILURE : code;
  }
  return code;
}
