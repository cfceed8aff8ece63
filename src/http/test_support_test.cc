#include "http/test_support.h"

#include "base/destroyed_by.h"
#include "http/client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::http::testing {

namespace {

using Bio = std::unique_ptr<BIO, DestroyedBy<BIO_free>>;
using Pkey = std::unique_ptr<EVP_PKEY, DestroyedBy<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, DestroyedBy<X509_free>>;

template <class Write>
std::string to_pem(Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(write(bio.get()), 1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  ASSERT_NE(extension, nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

void add_to_subject(X509* certificate, const std::string& field, const std::string& text) {
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), field.c_str(), MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0);
}

// Makes a certificate that is not signed yet.
Certificate make_certificate(EVP_PKEY* key, const std::string& name) {
  static std::atomic<long> serial = 1;
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  constexpr long kDay = 24L * 60 * 60;
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kDay);
  X509_set_pubkey(certificate.get(), key);
  add_to_subject(certificate.get(), "CN", name);
  return certificate;
}

}  // namespace

struct Authority::Key {
  Pkey key;
  Certificate certificate;
};

Authority::Authority() : key_(std::make_unique<Key>()) {
  key_->key.reset(EVP_EC_gen("P-256"));
  key_->certificate = make_certificate(key_->key.get(), "test authority");
  X509* certificate = key_->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
  X509_sign(certificate, key_->key.get(), EVP_sha256());
}
Authority::~Authority() = default;

std::string Authority::certificate_pem() const {
  return to_pem([this](BIO* bio) { return PEM_write_bio_X509(bio, key_->certificate.get()); });
}

Identity Authority::sign(const std::string& name, const Fields& more) const {
  const Pkey key(EVP_EC_gen("P-256"));
  const Certificate certificate = make_certificate(key.get(), name);
  for (const auto& [field, text] : more)
    add_to_subject(certificate.get(), field, text);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(key_->certificate.get()));
  const bool is_address = name.find_first_not_of("0123456789.") == std::string::npos;
  add_extension(certificate.get(), key_->certificate.get(), NID_subject_alt_name,
                (is_address ? "IP:" : "DNS:") + name);
  X509_sign(certificate.get(), key_->key.get(), EVP_sha256());
  return {.certificate_pem =
              to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); }),
          .key_pem = to_pem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

std::string ScriptedServer::Peer::read_head() {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    char byte = 0;
    if (::recv(socket_, &byte, 1, 0) != 1) return {};
    head += byte;
  }
  return head;
}

std::string ScriptedServer::Peer::read(std::size_t count) {
  std::string bytes(count, '\0');
  const ssize_t arrived = ::recv(socket_, bytes.data(), count, MSG_WAITALL);
  if (!std::cmp_equal(arrived, count)) return {};
  return bytes;
}

bool ScriptedServer::Peer::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void ScriptedServer::Peer::wait_for_end() {
  char byte = 0;
  while (::recv(socket_, &byte, 1, 0) > 0) {
  }
}

ScriptedServer::ScriptedServer(std::function<void(Peer&)> script) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(listener_, SOMAXCONN), 0);
  acceptor_ = std::jthread([this] { accept_until_stopped(); });
}

ScriptedServer::~ScriptedServer() {
  ::shutdown(listener_, SHUT_RDWR);  // Makes accept(2) return.
  acceptor_.join();
  peers_.clear();
  ::close(listener_);
}

std::string ScriptedServer::url(std::string_view path) const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return fmt::format("http://127.0.0.1:{}{}", ntohs(address.sin_port), path);
}

void ScriptedServer::accept_until_stopped() {
  while (true) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    peers_.emplace_back([this, socket] {
      Peer peer(socket);
      script_(peer);
      ::close(socket);
    });
  }
}

namespace {

struct DnsQuestion {
  std::string name;
  unsigned type = 0;
  std::size_t end = 0;  // Of the question, within the message.
};

// Reads a question of c-ares, which is well-formed.
DnsQuestion read_question(const std::vector<std::uint8_t>& message) {
  constexpr std::size_t kHeaderBytes = 12;
  DnsQuestion question;
  std::size_t at = kHeaderBytes;
  while (const std::size_t length = message.at(at++)) {
    if (!question.name.empty()) question.name += '.';
    question.name.append(message.begin() + static_cast<std::ptrdiff_t>(at),
                         message.begin() + static_cast<std::ptrdiff_t>(at + length));
    at += length;
  }
  question.type = message.at(at) * 256U + message.at(at + 1);
  question.end = at + 4;
  return question;
}

std::vector<std::uint8_t> dns_answer(std::vector<std::uint8_t> message, const DnsQuestion& question,
                                     const NameServer::Reply& reply) {
  constexpr unsigned kIpv6 = 28;
  const int family = question.type == kIpv6 ? AF_INET6 : AF_INET;
  const std::uint8_t length = question.type == kIpv6 ? 16 : 4;
  message.resize(question.end);
  message.at(2) = 0x84;  // An authoritative answer.
  message.at(3) = static_cast<std::uint8_t>(0x80 | reply.code);
  std::uint8_t count = 0;
  for (const std::string& address : reply.addresses) {
    std::array<std::uint8_t, 16> bytes{};
    if (::inet_pton(family, address.c_str(), bytes.data()) != 1) continue;
    ++count;
    const auto octet = [&reply](int shift) {
      return static_cast<std::uint8_t>(reply.ttl_seconds >> shift);
    };
    message.insert(message.end(), {0xc0, 12, 0, static_cast<std::uint8_t>(question.type), 0, 1,
                                   octet(24), octet(16), octet(8), octet(0), 0, length});
    message.insert(message.end(), bytes.begin(), bytes.begin() + length);
  }
  message.at(7) = count;
  message.at(9) = 0;   // No authority,
  message.at(11) = 0;  // and nothing additional.
  return message;
}

}  // namespace

NameServer::NameServer(Script script) : script_(std::move(script)) {
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  thread_ = std::jthread([this] { answer_until_stopped(); });
}

NameServer::~NameServer() {
  ::shutdown(socket_, SHUT_RDWR);  // Makes recvfrom(2) return, although there is no connection.
  thread_.join();
  ::close(socket_);
}

std::string NameServer::address() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
}

void NameServer::answer_until_stopped() {
  while (true) {
    std::vector<std::uint8_t> message(512);
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t count = ::recvfrom(socket_, message.data(), message.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &size);
    if (count <= 0) return;
    message.resize(static_cast<std::size_t>(count));
    const DnsQuestion question = read_question(message);
    const std::optional<Reply> reply = script_(question.name);
    if (!reply) continue;
    message = dns_answer(std::move(message), question, *reply);
    ::sendto(socket_, message.data(), message.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }
}

std::shared_ptr<const Transport> direct(Transport transport) {
  transport.direct = true;
  return std::make_shared<const Transport>(std::move(transport));
}

}  // namespace hangar::http::testing
