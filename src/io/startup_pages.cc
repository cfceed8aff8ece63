#include "io/startup_pages.h"

#include "base/time.h"
#include "io/loop.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::io {

namespace {

// Long enough to list all objects, if the host need not wait for the Lease.
constexpr Duration kDelay = std::chrono::seconds(5);

// madvise(2): MADV_DONTNEED on pages of a private file mapping loses nothing if they were never
// written. Segments that are writable, or were until relocation ended (PT_GNU_RELRO lies in one of
// them), have pages that the file cannot restore.
int unmap_read_only_segments(dl_phdr_info* object, std::size_t /*size*/, void* /*context*/) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int index = 0; index < object->dlpi_phnum; ++index) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[index];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t end =
        (object->dlpi_addr + segment.p_vaddr + segment.p_memsz) & ~(page - 1);
    // Only advice: if the kernel refuses it, the pages stay.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells addresses as numbers.
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

StartupPages::StartupPages(Loop& loop)
    : timer_(loop.after(kDelay, [] { ::dl_iterate_phdr(unmap_read_only_segments, nullptr); })) {}

}  // namespace hangar::io
