// HMAC needs EVP, so it has its own file: hangar-node is linked without it.
#include "base/assert.h"
#include "base/digest.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string_view>

namespace hangar {

Sha256Bytes hmac_sha256(std::string_view key, std::initializer_list<std::string_view> pieces) {
  struct Free {
    void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
  };
  const std::unique_ptr<EVP_MAC, Free> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  const std::unique_ptr<EVP_MAC_CTX, Free> context(EVP_MAC_CTX_new(mac.get()));
  char digest_name[] = "SHA256";
  const std::array<OSSL_PARAM, 2> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest_name, 0),
      OSSL_PARAM_construct_end()};
  const auto of = [](std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  bool ok = EVP_MAC_init(context.get(), of(key), key.size(), parameters.data()) == 1;
  for (const std::string_view piece : pieces)
    ok = ok && EVP_MAC_update(context.get(), of(piece), piece.size()) == 1;
  Sha256Bytes out{};
  std::size_t size = 0;
  ok = ok && EVP_MAC_final(context.get(), out.data(), &size, out.size()) == 1;
  HANGAR_ASSERT(ok && size == out.size(), "an HMAC of a buffer only fails without memory");
  return out;
}

}  // namespace hangar
