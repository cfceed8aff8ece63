#include "modules/packed_module.h"

#include "modules/internal/gzip.h"

#include <string>

namespace hangar::modules {

std::string packed_module(std::string bytes) {
  return is_gzip(bytes) ? bytes : gzip(bytes);
}

}  // namespace hangar::modules
