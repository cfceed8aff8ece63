#include "base/result.h"

#include <string_view>

namespace hangar {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidInput:
      return "InvalidInput";
    case ErrorKind::NotFound:
      return "NotFound";
    case ErrorKind::Conflict:
      return "Conflict";
    case ErrorKind::Expired:
      return "Expired";
    case ErrorKind::Denied:
      return "Denied";
    case ErrorKind::Unavailable:
      return "Unavailable";
    case ErrorKind::Cancelled:
      return "Cancelled";
    case ErrorKind::GuestFault:
      return "GuestFault";
    case ErrorKind::LimitExceeded:
      return "LimitExceeded";
    case ErrorKind::Corrupt:
      return "Corrupt";
  }
  return "Unknown";
}

}  // namespace hangar
