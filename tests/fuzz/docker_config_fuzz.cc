// A docker config.json from anywhere: it is read or refused, an error does not reveal its content,
// and no registry gets credentials that are not for it.
#include "base/assert.h"
#include "base/result.h"
#include "modules/docker_config.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace {

bool contains_ignoring_case(std::string_view text, std::string_view word) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return !std::ranges::search(text, word, {}, lower, lower).empty();
}

// The input contains the place where it stands.
constexpr std::string_view kSecret = "correct horse battery staple";

bool tells_the_secret(std::string message) {
  // The error names the entry.
  const std::size_t begin = message.find("auths[\"");
  const std::size_t end = message.rfind("\"].auth");
  if (begin < end && end != std::string::npos) message.erase(begin, end - begin);
  return message.contains(kSecret);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes;
  for (const std::uint8_t byte : std::span(data, size)) {
    if (byte == 1) {
      bytes += kSecret;
    } else {
      bytes += static_cast<char>(byte);
    }
  }
  const auto config = hangar::modules::DockerConfig::parse(bytes);
  if (!config) {
    HANGAR_ASSERT(!tells_the_secret(config.error().message()), "an error that tells a secret");
    return 0;
  }
  for (const char* registry : {"registry.example:5000", "docker.io", "[::1]:5000", "localhost"}) {
    for (const char* repository : {"team/backend", "backend", "team"}) {
      const auto found = config->find(registry, repository);
      if (!found) {
        HANGAR_ASSERT(found.error().kind() == hangar::ErrorKind::Denied, "the only error");
        continue;
      }
      // A name may be written with escapes, and Docker Hub has several names.
      const bool is_named = bytes.contains('\\') || std::string_view(registry) == "docker.io" ||
                            contains_ignoring_case(bytes, registry);
      HANGAR_ASSERT(is_named || found->is_anonymous(), "somebody else's credentials");
    }
  }
  return 0;
}
