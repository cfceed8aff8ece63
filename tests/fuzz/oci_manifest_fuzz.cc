// A registry's possible answers: a manifest, and a WWW-Authenticate header.

#include "base/assert.h"
#include "base/result.h"
#include "modules/internal/registry_auth.h"
#include "modules/limits.h"
#include "modules/oci_manifest.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace {

constexpr std::size_t kDigestBytes = 7 + 64;  // "sha256:" and its digits.

void check(std::string_view digest) {
  HANGAR_ASSERT(digest.size() == kDigestBytes &&
                    digest.find_first_not_of("sha256:0123456789abcdef") == std::string_view::npos,
                "a digest is safe in a path");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);

  if (const auto content = hangar::modules::read_manifest(bytes)) {
    if (const auto* const layer = std::get_if<hangar::modules::ModuleLayer>(&*content)) {
      check(layer->blob.digest);
      HANGAR_ASSERT(layer->blob.size_bytes <= hangar::limits::kFetchedBytesMax, "bounded");
    } else {
      check(std::get<hangar::modules::ModuleManifest>(*content).manifest.digest);
    }
  }

  const auto challenge =
      hangar::modules::find_challenge({{"WWW-Authenticate", std::string(bytes)}});
  if (challenge) {
    const auto request = hangar::modules::token_request(*challenge, {}, "team/f",
                                                        hangar::modules::PlainText::Allowed);
    HANGAR_ASSERT(!request || request->url.find_first_of(" \r\n") == std::string::npos,
                  "a URL is safe in a request line");
  }
  return 0;
}
