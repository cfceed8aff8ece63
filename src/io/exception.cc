#include "io/exception.h"

#include "base/result.h"
#include "io/task.h"

#include <exception>
#include <new>
#include <string>

namespace hangar::io {

Error error_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    // Short enough for the small-string buffer: needs no memory.
    return {ErrorKind::Unavailable, "out of memory"};
  } catch (const std::exception& exception) {
    return {ErrorKind::Unavailable, std::string("unexpected exception: ") + exception.what()};
  } catch (...) {
    return {ErrorKind::Unavailable, "unexpected exception"};
  }
}

}  // namespace hangar::io
