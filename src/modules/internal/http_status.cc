#include "modules/internal/http_status.h"

#include "base/result.h"

#include <fmt/core.h>

#include <string>

namespace hangar::modules {

ErrorKind kind_of_status(int status) {
  switch (status) {
    case 401:
    case 403:
      return ErrorKind::Denied;
    case 404:
    case 410:
      return ErrorKind::NotFound;
    case 408:
    case 429:
      return ErrorKind::Unavailable;
    default:
      return status >= 500 ? ErrorKind::Unavailable : ErrorKind::InvalidInput;
  }
}

std::string describe_status(int status) {
  switch (status) {
    case 401:
      return "401 unauthorized";
    case 403:
      return "403 forbidden";
    case 404:
      return "404 not found";
    case 410:
      return "410 gone";
    case 429:
      return "429 too many requests";
    case 500:
      return "500 internal server error";
    case 502:
      return "502 bad gateway";
    case 503:
      return "503 service unavailable";
    case 504:
      return "504 gateway timeout";
    default:
      return fmt::format("unexpected status {}", status);
  }
}

}  // namespace hangar::modules
