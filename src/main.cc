#include "base/limits.h"
#include "cli/commands.h"

#include <malloc.h>

int main(int argc, char** argv) {
  // Buffers of a module's size go back to the system when they are freed. Left to itself, glibc
  // decides after the first of them to keep the following: up to 64 MiB in each thread's heap.
  ::mallopt(M_MMAP_THRESHOLD, hangar::limits::kMiB);
  ::mallopt(M_TRIM_THRESHOLD, 2 * hangar::limits::kMiB);
  return hangar::cli::run(argc, argv);
}
