// A file that claims to be a module, about to be signed and verified.

#include "base/assert.h"
#include "base/result.h"
#include "schematics/keys.h"
#include "schematics/sections.h"
#include "schematics/signature.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace {

constexpr std::string_view kKey = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIFEaLLt3rjdUS+JpMhR9eeaD54UVUw9SAzDs0ZQDWCTC
-----END PRIVATE KEY-----)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hangar::schematics;  // NOLINT(google-build-using-namespace): one function.
  static const auto key = PrivateKey::parse(kKey);
  static const PublicKeys keys = [] {
    PublicKeys made;
    (void)made.add(key->public_key());
    return made;
  }();
  const auto module = std::as_bytes(std::span(data, size));
  const auto found = schematics_of(module);
  const auto verified = verify_module(module, keys);
  HANGAR_ASSERT(found || !verified, "what is verified can be read");

  const auto made = sign_module(module, *key, Signed::Replace);
  HANGAR_ASSERT(made.has_value() == found.has_value(), "what can be read can be signed");
  if (!made) return 0;
  const auto bytes = std::as_bytes(std::span(*made));
  HANGAR_ASSERT(verify_module(bytes, keys).has_value(), "what is signed verifies");
  HANGAR_ASSERT(!sign_module(bytes, *key, Signed::Refuse), "and is not signed twice");
  const auto plain = without_schematic(bytes, "signature");
  HANGAR_ASSERT(plain && !verify_module(std::as_bytes(std::span(*plain)), keys),
                "without its signature it is unsigned");
  return 0;
}
