#include "sigstore/internal/timestamp.h"

#include "base/invalid.h"
#include "base/result.h"
#include "base/time.h"
#include "sigstore/internal/certificate.h"
#include "sigstore/internal/openssl.h"
#include "sigstore/trust_root.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/obj_mac.h>
#include <openssl/objects.h>
#include <openssl/ts.h>
#include <openssl/types.h>
#include <openssl/x509.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <string_view>
#include <vector>

namespace hangar::sigstore::internal {

namespace {

std::optional<WallTime> time_in(TS_TST_INFO* info) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(TS_TST_INFO_get_time(info), &parts) != 1) return std::nullopt;
  // The clock's type ends in 2262.
  constexpr int kYearMax = 2200;
  constexpr int kFirstYear = 1900;
  if (parts.tm_year + kFirstYear > kYearMax) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

// Checks the token's digest of the signature. With a weak digest, an attacker who finds two
// signatures with one digest could move the time.
bool has_strong_digest(TS_TST_INFO* info) {
  const X509_ALGOR* const algorithm = TS_MSG_IMPRINT_get_algo(TS_TST_INFO_get_msg_imprint(info));
  const ASN1_OBJECT* name = nullptr;
  X509_ALGOR_get0(&name, nullptr, nullptr, algorithm);
  const int id = OBJ_obj2nid(name);
  return id == NID_sha256 || id == NID_sha384 || id == NID_sha512;
}

bool is_by_authority(TS_RESP* response, std::string_view signature, const Authority& authority,
                     WallTime time) {
  const TimestampContextPtr context(TS_VERIFY_CTX_new());
  StorePtr store = store_of(authority, time);
  CertificatesPtr certificates = certificates_of(authority);
  BioPtr data(BIO_new_mem_buf(signature.data(), static_cast<int>(signature.size())));
  if (!context || !store || !certificates || !data) return false;
  // The context takes ownership.
  TS_VERIFY_CTX_set_store(context.get(), store.release());
  TS_VERIFY_CTX_set_certs(context.get(), certificates.release());
  TS_VERIFY_CTX_set_data(context.get(), data.release());
  TS_VERIFY_CTX_set_flags(context.get(), TS_VFY_VERSION | TS_VFY_SIGNATURE | TS_VFY_DATA);
  return TS_RESP_verify_response(context.get(), response) == 1;
}

}  // namespace

Result<WallTime> verify_timestamp(std::string_view response, std::string_view signature,
                                  const std::vector<Authority>& authorities) {
  const ErrorsForgotten forgotten;
  const unsigned char* at = bytes_of(response);
  const TimestampPtr parsed(d2i_TS_RESP(nullptr, &at, static_cast<long>(response.size())));
  TS_TST_INFO* const info = parsed ? TS_RESP_get_tst_info(parsed.get()) : nullptr;
  const std::optional<WallTime> time = info == nullptr ? std::nullopt : time_in(info);
  if (!time || !has_strong_digest(info)) {
    return invalid("its timestamp is not a response of a timestamp authority (RFC 3161)");
  }
  for (const Authority& authority : authorities) {
    if (authority.valid.contains(*time) &&
        is_by_authority(parsed.get(), signature, authority, *time)) {
      return *time;
    }
  }
  return fail(ErrorKind::Denied, fmt::format("its timestamp, of {}, is by none of the trust root's "
                                             "timestampAuthorities, or of another signature",
                                             to_rfc3339(*time)));
}

}  // namespace hangar::sigstore::internal
