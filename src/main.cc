#include "base/limits.h"
#include "cli/commands.h"

#include <malloc.h>
#include <sys/resource.h>

namespace {

// Each connection, watch and module that can sleep holds a file. The soft limit of 1024 is there
// for programs that use select().
void allow_many_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main(int argc, char** argv) {
  // Buffers of a module's size go back to the system when they are freed. Left to itself, glibc
  // decides after the first of them to keep the following: up to 64 MiB in each thread's heap.
  ::mallopt(M_MMAP_THRESHOLD, hangar::limits::kMiB);
  ::mallopt(M_TRIM_THRESHOLD, 2 * hangar::limits::kMiB);
  // One heap for all threads: guests allocate in memories of their own, and what one thread has
  // freed serves the others.
  ::mallopt(M_ARENA_MAX, 1);
  allow_many_files();
  return hangar::cli::run(argc, argv);
}
