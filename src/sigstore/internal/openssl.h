// Owners of OpenSSL's objects.
#pragma once

#include "base/destroyed_by.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ct.h>
#include <openssl/err.h>
#include <openssl/ts.h>
#include <openssl/types.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::sigstore::internal {

using BioPtr = std::unique_ptr<BIO, DestroyedBy<BIO_free>>;
using CertificatePtr = std::unique_ptr<X509, DestroyedBy<X509_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, DestroyedBy<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, DestroyedBy<GENERAL_NAMES_free>>;
using ObjectPtr = std::unique_ptr<ASN1_OBJECT, DestroyedBy<ASN1_OBJECT_free>>;
using SctsPtr = std::unique_ptr<STACK_OF(SCT), DestroyedBy<SCT_LIST_free>>;
using StorePtr = std::unique_ptr<X509_STORE, DestroyedBy<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, DestroyedBy<X509_STORE_CTX_free>>;
using TextPtr = std::unique_ptr<ASN1_UTF8STRING, DestroyedBy<ASN1_UTF8STRING_free>>;
using TimestampPtr = std::unique_ptr<TS_RESP, DestroyedBy<TS_RESP_free>>;
using TimestampContextPtr = std::unique_ptr<TS_VERIFY_CTX, DestroyedBy<TS_VERIFY_CTX_free>>;

struct CertificatesFreed {
  void operator()(STACK_OF(X509) * certificates) const {
    sk_X509_pop_free(certificates, X509_free);
  }
};
using CertificatesPtr = std::unique_ptr<STACK_OF(X509), CertificatesFreed>;

// Clears the thread's error queue: a leftover error would look like a failure of the next call,
// such as one of a TLS connection.
struct ErrorsForgotten {
  ErrorsForgotten() = default;
  ErrorsForgotten(const ErrorsForgotten&) = delete;
  ErrorsForgotten& operator=(const ErrorsForgotten&) = delete;
  ~ErrorsForgotten() { ERR_clear_error(); }
};

inline const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// The DER of an object, by its i2d function.
template <auto encode, class Object>
std::string der_of(Object* object) {
  unsigned char* bytes = nullptr;
  const int size = encode(object, &bytes);
  if (size <= 0) return {};
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

inline std::string_view text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

}  // namespace hangar::sigstore::internal
