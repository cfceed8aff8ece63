#include "sigstore/log_entry.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/number.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "sigstore/internal/certificate.h"
#include "sigstore/trust_root.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::sigstore {

namespace {

constexpr std::size_t kHashBytes = 32;
// A tree has at most 2^64 leaves.
constexpr std::size_t kHashesMax = 64;
constexpr std::size_t kCheckpointBytesMax = std::size_t{16} * 1024;
constexpr std::size_t kCheckpointLinesMax = 32;
// The first bytes of a signature line name the key.
constexpr std::size_t kKeyHintBytes = 4;
// Bound of an index or a time of a log.
constexpr std::int64_t kNumberMax = std::int64_t{1} << 53;
// The clock's type ends in 2262.
constexpr std::int64_t kSecondsMax = 9'000'000'000;

std::unexpected<Error> damaged(std::string_view what) {
  return invalid(fmt::format("the entry of the transparency log has no valid {}", what));
}

std::unexpected<Error> denied_entry(std::string why) {
  return fail(ErrorKind::Denied, "its entry of the transparency log " + std::move(why));
}

// Numbers of 64 bits are texts in bundles.
std::optional<std::int64_t> number_at(const json::Value& value, json::Path path) {
  const json::Value* const member = json::find(value, path);
  if (member == nullptr) return std::nullopt;
  std::int64_t number = -1;
  if (member->is_string()) {
    number = parse_number<std::int64_t>(member->get_string()).value_or(-1);
  } else {
    number = json::int_at(value, path, -1);
  }
  if (number < 0 || number > kNumberMax) return std::nullopt;
  return number;
}

std::optional<std::string> hash_of(std::string_view text) {
  std::optional<std::string> bytes = base64_decode(text);
  if (!bytes || bytes->size() != kHashBytes) return std::nullopt;
  return bytes;
}

std::optional<std::string> bytes_of_hex(std::string_view hex) {
  if (!is_sha256_hex(hex)) return std::nullopt;
  std::string bytes;
  for (std::size_t at = 0; at < hex.size(); at += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + at, hex.data() + at + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string hex_of(std::string_view bytes) {
  return to_hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string hash(std::string_view bytes) {
  const Sha256Bytes digest = sha256(bytes);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hash_of_node(std::string_view left, std::string_view right) {
  return hash(fmt::format("\x01{}{}", left, right));
}

Result<InclusionProof> proof_in(const json::Value& value) {
  const std::optional<std::int64_t> index = number_at(value, {"logIndex"});
  const std::optional<std::int64_t> size = number_at(value, {"treeSize"});
  const json::Array* const hashes = json::array_at(value, {"hashes"});
  InclusionProof proof{
      .hashes = {}, .checkpoint = std::string(json::string_at(value, {"checkpoint", "envelope"}))};
  // Protocol Buffers leave out zeros and empty lists.
  if (json::find(value, {"logIndex"}) != nullptr && !index) return damaged("index in its proof");
  if (!size || *size == 0) return damaged("size of the tree in its proof");
  if (hashes != nullptr && hashes->size() > kHashesMax) return damaged("number of hashes");
  if (proof.checkpoint.empty() || proof.checkpoint.size() > kCheckpointBytesMax) {
    return damaged("checkpoint");
  }
  proof.index = static_cast<std::uint64_t>(index.value_or(0));
  proof.tree_size = static_cast<std::uint64_t>(*size);
  if (hashes == nullptr) return proof;
  for (const json::Value& one : *hashes) {
    std::optional<std::string> bytes = one.is_string() ? hash_of(one.get_string()) : std::nullopt;
    if (!bytes) return damaged("hashes in its proof");
    proof.hashes.push_back(*std::move(bytes));
  }
  return proof;
}

Result<LogEntry> bundled_entry(const json::Value& value) {
  LogEntry entry;
  std::optional<std::string> id = hash_of(json::string_at(value, {"logId", "keyId"}));
  std::optional<std::string> body = base64_decode(json::string_at(value, {"canonicalizedBody"}));
  std::optional<std::string> promise =
      base64_decode(json::string_at(value, {"inclusionPromise", "signedEntryTimestamp"}));
  if (!id) return damaged("logId");
  if (!body || body->empty()) return damaged("canonicalizedBody");
  if (!promise) return damaged("inclusionPromise");
  for (const auto& [name, number] :
       {std::pair("logIndex", &entry.index), std::pair("integratedTime", &entry.integrated_time)}) {
    if (json::find(value, {name}) == nullptr) continue;
    const std::optional<std::int64_t> read = number_at(value, {name});
    if (!read) return damaged(name);
    *number = *read;
  }
  entry.log_id = *std::move(id);
  entry.body = *std::move(body);
  entry.promise = *std::move(promise);
  if (const json::Value* const proof = json::find(value, {"inclusionProof"})) {
    entry.proof = HANGAR_TRY(proof_in(*proof));
  }
  return entry;
}

// The bytes that the log signs as its promise: JSON in its canonical form (RFC 8785).
std::string promised_bytes(const LogEntry& entry) {
  return fmt::format(R"({{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{}}})",
                     base64_encode(entry.body), entry.integrated_time, hex_of(entry.log_id),
                     entry.index);
}

struct Checkpoint {
  std::string_view signed_text;
  std::uint64_t tree_size = 0;
  std::string root;
  std::vector<std::string> signatures;
};

// A signed note: the log's name, the size of the tree and its root in a line each, other lines, an
// empty line, and signatures.
std::optional<Checkpoint> read_checkpoint(std::string_view text) {
  constexpr std::string_view kSignature = "\u2014 ";
  const std::size_t end = text.find("\n\n");
  if (end == std::string_view::npos) return std::nullopt;
  Checkpoint checkpoint{.signed_text = text.substr(0, end + 1), .root = {}, .signatures = {}};
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t line_end = std::min(rest.find('\n'), rest.size());
    if (lines.size() == kCheckpointLinesMax) return std::nullopt;
    lines.push_back(rest.substr(0, line_end));
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
  }
  constexpr std::size_t kLinesMin = 3;
  if (lines.size() < kLinesMin) return std::nullopt;
  const auto tree_size = parse_number<decltype(checkpoint.tree_size)>(lines[1]);
  std::optional<std::string> root = hash_of(lines[2]);
  if (!tree_size || !root) return std::nullopt;
  checkpoint.tree_size = *tree_size;
  checkpoint.root = *std::move(root);
  // The root has to be in the signed part.
  if (lines[0].empty() || lines[1].empty() || lines[2].empty()) return std::nullopt;
  for (const std::string_view line : std::span(lines).subspan(kLinesMin)) {
    if (!line.starts_with(kSignature)) continue;
    const std::size_t space = line.rfind(' ');
    std::optional<std::string> bytes = base64_decode(line.substr(space + 1));
    if (!bytes || bytes->size() <= kKeyHintBytes) continue;
    checkpoint.signatures.push_back(bytes->substr(kKeyHintBytes));
  }
  return checkpoint;
}

Result<> verify_proof_of(const LogEntry& entry, const Log& log) {
  const std::optional<Checkpoint> checkpoint = read_checkpoint(entry.proof->checkpoint);
  const bool is_signed =
      checkpoint && std::ranges::any_of(checkpoint->signatures, [&](const std::string& signature) {
        return log.key.has_signed_bytes(checkpoint->signed_text, signature);
      });
  if (!is_signed) return denied_entry("has a checkpoint that the log has not signed");
  if (checkpoint->tree_size != entry.proof->tree_size ||
      root_of(*entry.proof, entry.body) != checkpoint->root) {
    return denied_entry("is not in the log: its inclusion proof does not lead to the checkpoint");
  }
  return {};
}

// The certificate of a body, which is in PEM.
std::string certificate_in(std::string_view base64) {
  const std::optional<std::string> pem = base64_decode(base64);
  if (!pem) return {};
  const internal::CertificatePtr certificate = internal::read_pem(*pem);
  return certificate ? internal::der_of_certificate(certificate.get()) : std::string();
}

// The contents of an entry: the signed digest, the signature and the certificate.
struct Said {
  std::string digest;  // Raw, of SHA-256.
  bool is_of_payload = false;
  std::string signature;
  std::string certificate;
};

std::string decoded(std::string_view base64) {
  return base64_decode(base64).value_or(std::string());
}

Result<Said> said_by(const json::Value& body) {
  const std::string_view kind = json::string_at(body, {"kind"});
  const std::string_view version = json::string_at(body, {"apiVersion"});
  const json::Value* const spec = json::find(body, {"spec"});
  const json::Value nothing;
  const auto first_signature = [&](const json::Value& of) -> const json::Value& {
    const json::Array* const all = json::array_at(of, {"signatures"});
    return all == nullptr || all->size() != 1 ? nothing : all->front();
  };
  const auto from_hex = [](const json::Value& of) {
    if (json::string_at(of, {"algorithm"}) != "sha256") return std::string();
    return bytes_of_hex(json::string_at(of, {"value"})).value_or(std::string());
  };
  const auto from_base64 = [](const json::Value& of) {
    if (json::string_at(of, {"algorithm"}) != "SHA2_256") return std::string();
    return decoded(json::string_at(of, {"digest"}));
  };
  const auto at = [&nothing](const json::Value& of, json::Path path) -> const json::Value& {
    const json::Value* const found = json::find(of, path);
    return found == nullptr ? nothing : *found;
  };
  if (spec != nullptr && kind == "hashedrekord" && version == "0.0.1") {
    return Said{.digest = from_hex(at(*spec, {"data", "hash"})),
                .signature = decoded(json::string_at(*spec, {"signature", "content"})),
                .certificate =
                    certificate_in(json::string_at(*spec, {"signature", "publicKey", "content"}))};
  }
  if (spec != nullptr && kind == "dsse" && version == "0.0.1") {
    const json::Value& one = first_signature(*spec);
    return Said{.digest = from_hex(at(*spec, {"payloadHash"})),
                .is_of_payload = true,
                .signature = decoded(json::string_at(one, {"signature"})),
                .certificate = certificate_in(json::string_at(one, {"verifier"}))};
  }
  // The second version of the log.
  if (spec != nullptr && kind == "hashedrekord" && version == "0.0.2") {
    const json::Value& record = at(*spec, {"hashedRekordV002"});
    return Said{.digest = from_base64(at(record, {"data"})),
                .signature = decoded(json::string_at(record, {"signature", "content"})),
                .certificate = decoded(json::string_at(
                    record, {"signature", "verifier", "x509Certificate", "rawBytes"}))};
  }
  if (spec != nullptr && kind == "dsse" && version == "0.0.2") {
    const json::Value& record = at(*spec, {"dsseV002"});
    const json::Value& one = first_signature(record);
    return Said{
        .digest = from_base64(at(record, {"payloadHash"})),
        .is_of_payload = true,
        .signature = decoded(json::string_at(one, {"content"})),
        .certificate = decoded(json::string_at(one, {"verifier", "x509Certificate", "rawBytes"}))};
  }
  return invalid(
      "its entry of the transparency log is of another kind than hashedrekord or dsse 0.0.1 or "
      "0.0.2");
}

}  // namespace

Result<LogEntry> read_annotated_entry(std::string_view text) {
  const Result<json::Value> parsed = json::parse(text);
  if (!parsed) return damaged("JSON");
  std::optional<std::string> id = bytes_of_hex(json::string_at(*parsed, {"Payload", "logID"}));
  std::optional<std::string> body = base64_decode(json::string_at(*parsed, {"Payload", "body"}));
  std::optional<std::string> promise =
      base64_decode(json::string_at(*parsed, {"SignedEntryTimestamp"}));
  const std::optional<std::int64_t> index = number_at(*parsed, {"Payload", "logIndex"});
  const std::optional<std::int64_t> time = number_at(*parsed, {"Payload", "integratedTime"});
  if (!id) return damaged("logID");
  if (!body || body->empty()) return damaged("body");
  if (!promise || promise->empty()) return damaged("SignedEntryTimestamp");
  if (!index) return damaged("logIndex");
  if (!time) return damaged("integratedTime");
  return LogEntry{.log_id = *std::move(id),
                  .index = *index,
                  .integrated_time = *time,
                  .body = *std::move(body),
                  .promise = *std::move(promise),
                  .proof = std::nullopt};
}

Result<std::vector<LogEntry>> read_bundled_entries(const json::Value& material) {
  const json::Array* const list = json::array_at(material, {"tlogEntries"});
  if (list == nullptr) return std::vector<LogEntry>();
  if (list->size() > kLogEntriesMax) {
    return invalid(
        fmt::format("the bundle has more than {} entries of transparency logs", kLogEntriesMax));
  }
  std::vector<LogEntry> entries;
  for (const json::Value& one : *list)
    entries.push_back(HANGAR_TRY(bundled_entry(one)));
  return entries;
}

Result<std::optional<WallTime>> verify_entry(const LogEntry& entry, const Log& log) {
  if (entry.promise.empty() && !entry.proof) {
    return denied_entry("is not proven: it has no promise of the log and no inclusion proof");
  }
  if (entry.proof) HANGAR_TRY(verify_proof_of(entry, log));
  if (entry.promise.empty()) return std::optional<WallTime>();
  if (!log.key.has_signed_bytes(promised_bytes(entry), entry.promise)) {
    return denied_entry("has a promise (SignedEntryTimestamp) that the log has not signed");
  }
  if (entry.integrated_time > kSecondsMax) return damaged("integratedTime");
  const WallTime time{std::chrono::seconds(entry.integrated_time)};
  if (!log.valid.contains(time)) {
    return denied_entry(
        fmt::format("is of {}, when the trust root did not have its log", to_rfc3339(time)));
  }
  return std::optional(time);
}

Result<> check_entry(const LogEntry& entry, const LoggedSignature& signature) {
  const Result<json::Value> body = json::parse(entry.body);
  if (!body) return damaged("body");
  const Said said = HANGAR_TRY(said_by(*body));
  const std::string_view hashed = said.is_of_payload ? signature.payload : signature.bytes;
  // Each of them identifies the signature; together they leave an attacker no choice.
  const bool is_it = said.digest == hash(hashed) && said.signature == signature.signature &&
                     said.certificate == signature.certificate;
  if (!is_it) return denied_entry("is of another signature");
  return {};
}

std::optional<std::string> root_of(const InclusionProof& proof, std::string_view leaf) {
  if (proof.index >= proof.tree_size) return std::nullopt;
  std::uint64_t at = proof.index;
  std::uint64_t last = proof.tree_size - 1;
  std::string root = hash(std::string(1, '\0') + std::string(leaf));
  for (const std::string& sibling : proof.hashes) {
    if (last == 0) return std::nullopt;
    if (at % 2 == 1 || at == last) {
      root = hash_of_node(sibling, root);
      // Climbs to the level where this subtree has a sibling to its left.
      while (at % 2 == 0 && at != 0) {
        at /= 2;
        last /= 2;
      }
    } else {
      root = hash_of_node(root, sibling);
    }
    at /= 2;
    last /= 2;
  }
  if (last != 0) return std::nullopt;
  return root;
}

}  // namespace hangar::sigstore
