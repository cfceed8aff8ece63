#include "admission/certificate.h"

#include "base/destroyed_by.h"
#include "base/result.h"
#include "base/time.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::admission {

namespace {

using Bio = std::unique_ptr<BIO, DestroyedBy<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, DestroyedBy<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, DestroyedBy<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, DestroyedBy<X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, DestroyedBy<BN_free>>;

// Certificates are valid from this much earlier on, so that a machine whose clock is slightly
// behind trusts a new one.
constexpr std::chrono::hours kClockSkew{1};
constexpr int kSerialBits = 127;
constexpr long kVersion3 = 2;

std::unexpected<Error> failed(std::string_view doing) {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return fail(ErrorKind::InvalidInput,
              fmt::format("{}: {}", doing, reason == nullptr ? "not possible" : reason));
}

Bio reading(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

Result<std::vector<Certificate>> certificates_in(std::string_view pem) {
  std::vector<Certificate> all;
  const Bio bio = reading(pem);
  while (Certificate one{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)})
    all.push_back(std::move(one));
  ERR_clear_error();
  if (all.empty()) return fail(ErrorKind::InvalidInput, "there is no certificate in PEM");
  return all;
}

Result<Key> key_in(std::string_view pem) {
  const Bio bio = reading(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (!key) return failed("read a private key");
  return key;
}

Result<std::string> pem_of(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return failed("write a certificate");
  return text_of(bio.get());
}

Result<std::string> pem_of(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed("write a private key");
  }
  return text_of(bio.get());
}

bool is_address(const std::string& name) {
  const std::unique_ptr<ASN1_OCTET_STRING, DestroyedBy<ASN1_OCTET_STRING_free>> address(
      a2i_IPADDRESS(name.c_str()));
  ERR_clear_error();
  return address != nullptr;
}

bool add(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_serial(X509* certificate) {
  const Number serial(BN_new());
  return BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_times(X509* certificate, WallTime from, WallTime until) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate),
                       std::chrono::system_clock::to_time_t(from)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate),
                       std::chrono::system_clock::to_time_t(until)) != nullptr;
}

bool set_name(X509* certificate, const std::string& name) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL's bytes are unsigned.
  const auto* const bytes = reinterpret_cast<const unsigned char*>(name.data());
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, bytes,
                                    static_cast<int>(name.size()), -1, 0) == 1;
}

Result<WallTime> time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return failed("read a certificate's time");
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

Result<Certificate> first_in(std::string_view pem) {
  std::vector<Certificate> all = HANGAR_TRY(certificates_in(pem));
  return std::move(all.front());
}

}  // namespace

Result<KeyPair> make_authority(WallTime now) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509* const made = certificate.get();
  // The name is unique: if two authorities have the same name, a client may try only the wrong one.
  const std::string name = fmt::format("hangar webhooks {}", to_rfc3339_micro(now));
  const bool is_made =
      key && made != nullptr && X509_set_version(made, kVersion3) == 1 && set_serial(made) &&
      set_times(made, now - kClockSkew, now + kAuthorityLife) && set_name(made, name) &&
      X509_set_issuer_name(made, X509_get_subject_name(made)) == 1 &&
      X509_set_pubkey(made, key.get()) == 1 &&
      add(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      add(made, made, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      add(made, made, NID_subject_key_identifier, "hash") &&
      X509_sign(made, key.get(), EVP_sha256()) != 0;
  if (!is_made) return failed("make a certificate authority");
  KeyPair pair;
  pair.certificate_pem = HANGAR_TRY(pem_of(made));
  pair.key_pem = HANGAR_TRY(pem_of(key.get()));
  return pair;
}

Result<KeyPair> issue(const KeyPair& authority, const std::vector<std::string>& names,
                      WallTime now) {
  if (names.empty()) return fail(ErrorKind::InvalidInput, "a certificate needs a name");
  const Certificate issuer = HANGAR_TRY(first_in(authority.certificate_pem));
  const Key issuer_key = HANGAR_TRY(key_in(authority.key_pem));
  std::string alternatives;
  for (const std::string& name : names) {
    if (name.find_first_of(",;=") != std::string::npos) {
      return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not the name of a server", name));
    }
    if (!alternatives.empty()) alternatives += ',';
    alternatives += (is_address(name) ? "IP:" : "DNS:") + name;
  }
  const WallTime issuer_end = HANGAR_TRY(time_of(X509_get0_notAfter(issuer.get())));
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509* const made = certificate.get();
  const bool is_made =
      key && made != nullptr && X509_set_version(made, kVersion3) == 1 && set_serial(made) &&
      set_times(made, now - kClockSkew, std::min<WallTime>(now + kServerLife, issuer_end)) &&
      set_name(made, "hangar") &&
      X509_set_issuer_name(made, X509_get_subject_name(issuer.get())) == 1 &&
      X509_set_pubkey(made, key.get()) == 1 &&
      add(made, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      add(made, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
      add(made, issuer.get(), NID_ext_key_usage, "serverAuth") &&
      add(made, issuer.get(), NID_authority_key_identifier, "keyid") &&
      add(made, issuer.get(), NID_subject_alt_name, alternatives) &&
      X509_sign(made, issuer_key.get(), EVP_sha256()) != 0;
  if (!is_made) return failed("issue the server's certificate");
  KeyPair pair;
  pair.certificate_pem = HANGAR_TRY(pem_of(made));
  pair.key_pem = HANGAR_TRY(pem_of(key.get()));
  return pair;
}

Result<CertificateFacts> read_certificate(std::string_view pem) {
  const Certificate certificate = HANGAR_TRY(first_in(pem));
  CertificateFacts facts;
  facts.not_before = HANGAR_TRY(time_of(X509_get0_notBefore(certificate.get())));
  facts.not_after = HANGAR_TRY(time_of(X509_get0_notAfter(certificate.get())));
  return facts;
}

bool is_for(std::string_view pem, const std::vector<std::string>& names,
            std::string_view authorities_pem) {
  const Result<Certificate> certificate = first_in(pem);
  const Result<std::vector<Certificate>> authorities = certificates_in(authorities_pem);
  if (!certificate || !authorities) return false;
  const bool has_names = std::ranges::all_of(names, [&](const std::string& name) {
    if (is_address(name)) return X509_check_ip_asc(certificate->get(), name.c_str(), 0) == 1;
    return X509_check_host(certificate->get(), name.data(), name.size(), 0, nullptr) == 1;
  });
  const bool is_signed = std::ranges::any_of(*authorities, [&](const Certificate& authority) {
    return X509_verify(certificate->get(), X509_get0_pubkey(authority.get())) == 1;
  });
  ERR_clear_error();
  return has_names && is_signed;
}

bool has_key(std::string_view pem, std::string_view key_pem) {
  const Result<Certificate> certificate = first_in(pem);
  const Result<Key> key = key_in(key_pem);
  const bool is_its =
      certificate && key && X509_check_private_key(certificate->get(), key->get()) == 1;
  ERR_clear_error();
  return is_its;
}

Renewal renewal_of(const Issued& issued, const std::vector<std::string>& names, WallTime now) {
  const Result<CertificateFacts> authority = read_certificate(issued.authorities_pem);
  const Result<CertificateFacts> server = read_certificate(issued.server.certificate_pem);
  const bool is_usable = authority && server && authority->not_before <= now &&
                         now < authority->not_after &&
                         has_key(issued.authorities_pem, issued.authority_key_pem) &&
                         has_key(issued.server.certificate_pem, issued.server.key_pem);
  if (!is_usable) return Renewal::All;
  if (!is_for(issued.server.certificate_pem, names, issued.authorities_pem) ||
      server->not_after <= now) {
    return Renewal::Server;  // The old one is unusable, so it makes no sense to wait for trust.
  }
  if (authority->not_after - now < kServerLife + kRenewBefore) return Renewal::Authority;
  // not_before is kClockSkew before the authority was made.
  const bool is_trusted = authority->not_before + kClockSkew + kTrustedFirst <= now;
  if (server->not_after - now < kRenewBefore && is_trusted) return Renewal::Server;
  return Renewal::None;
}

Result<Issued> renew(const Issued& issued, Renewal renewal, const std::vector<std::string>& names,
                     WallTime now) {
  Issued next = issued;
  if (renewal == Renewal::All || renewal == Renewal::Authority) {
    KeyPair authority = HANGAR_TRY(make_authority(now));
    std::string old;
    if (renewal == Renewal::Authority) {
      // Keeps only the last one: it has signed the certificate in use; its predecessor has not.
      const Certificate last = HANGAR_TRY(first_in(issued.authorities_pem));
      old = HANGAR_TRY(pem_of(last.get()));
    }
    next.authorities_pem = authority.certificate_pem + old;
    next.authority_key_pem = std::move(authority.key_pem);
  }
  if (renewal == Renewal::All || renewal == Renewal::Server) {
    next.server = HANGAR_TRY(issue(
        {.certificate_pem = next.authorities_pem, .key_pem = next.authority_key_pem}, names, now));
  }
  return next;
}

}  // namespace hangar::admission
