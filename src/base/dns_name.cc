#include "base/dns_name.h"

#include <string_view>

namespace hangar {

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > kDnsNameBytesMax) return false;
  char before = '.';
  for (const char character : text) {
    const bool is_mark = character == '-' || character == '.';
    const bool is_letter_or_digit =
        (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
    if (!is_mark && !is_letter_or_digit) return false;
    if (character == '.' && (before == '.' || before == '-')) return false;
    if (character == '-' && before == '.') return false;
    before = character;
  }
  return before != '.' && before != '-';
}

}  // namespace hangar
