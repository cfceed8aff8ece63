#include "modules/packed_module.h"

#include "modules/internal/gzip.h"

#include <string>

namespace hangar::modules {

std::string packed_module(std::string bytes) {
  if (is_gzip(bytes)) return bytes;
  return gzip(bytes);
}

}  // namespace hangar::modules
