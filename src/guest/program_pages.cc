#include "guest/program_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

namespace hangar::guest {

void unmap_program() {
  const auto unmap = [](dl_phdr_info* object, std::size_t /*size*/, void* /*data*/) {
    const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (const ElfW(Phdr) & part : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
      // Relocated data is in writable parts, also where it was made read-only later.
      if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
      const std::uintptr_t begin = (object->dlpi_addr + part.p_vaddr) & ~(page_bytes - 1);
      const std::uintptr_t end = object->dlpi_addr + part.p_vaddr + part.p_memsz;
      // Fails for the kernel's own object, whose pages do not count.
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells addresses as numbers.
      std::ignore = ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return 0;
  };
  ::dl_iterate_phdr(unmap, nullptr);
}

}  // namespace hangar::guest
