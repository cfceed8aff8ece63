#include "wasm/snapshot/layer_file.h"

#include "base/assert.h"
#include "base/result.h"
#include "io/descriptor.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshot_store.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

namespace hangar::wasm {

LayerFile::~LayerFile() {
  // Its last descriptor frees the space otherwise.
  if (file_.descriptor() >= 0) std::ignore = file_.truncate(0);
  store_.give_back_layer_file(*this);
}

io::Descriptor LayerFile::leave() && {
  return io::Descriptor(std::move(file_).release());
}

Result<> LayerFile::write_pages(std::uint32_t first, std::span<const std::byte> pages) const {
  HANGAR_ASSERT(pages.size() % kPageBytes == 0 && first <= pages_ &&
                    pages.size() / kPageBytes <= pages_ - first,
                "pages lie within their file");
  use();
  return file_.write(std::uint64_t{first} * kPageBytes, pages);
}

Result<io::Descriptor> LayerFile::open_for_reading() const {
  use();
  io::Descriptor descriptor = io::open_again_for_reading(file_.descriptor());
  if (!descriptor.is_open()) {
    return fail(ErrorKind::Unavailable,
                fmt::format("reopen a layer: {}", std::generic_category().message(errno)));
  }
  return descriptor;
}

}  // namespace hangar::wasm
