#include "sigstore/trust_root.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "schematics/keys.h"
#include "sigstore/internal/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::sigstore {

namespace {

constexpr std::string_view kTrustedRoot = "application/vnd.dev.sigstore.trustedroot";
constexpr std::size_t kLogIdBytes = 32;

Result<std::string> bytes_at(const json::Value& value, json::Path path, std::string_view where) {
  std::optional<std::string> bytes = base64_decode(json::string_at(value, path));
  if (!bytes || bytes->empty()) return invalid(fmt::format("{}: must be base64", where));
  return *std::move(bytes);
}

Result<Period> period_in(const json::Value* value, const std::string& where) {
  Period period;
  if (value == nullptr) return period;
  for (const auto& [name, time] :
       {std::pair("start", &period.start), std::pair("end", &period.end)}) {
    const json::Value* const member = json::find(*value, {name});
    if (member == nullptr || member->is_null()) continue;
    const Result<WallTime> read = parse_rfc3339(json::string_at(*value, {name}));
    if (!read) return invalid(fmt::format("{}.{}: must be a time as in RFC 3339", where, name));
    *time = *read;
  }
  return period;
}

// The list with that name; empty if it is missing.
Result<const json::Array*> list_in(const json::Value& document, std::string_view name) {
  static const json::Array none;
  const json::Value* const value = json::find(document, {name});
  if (value == nullptr || value->is_null()) return &none;
  const json::Array* const list = value->if_array();
  if (list == nullptr || list->size() > kTrustedMax) {
    return invalid(fmt::format("{}: must be a list of at most {}", name, kTrustedMax));
  }
  return list;
}

Result<std::vector<Log>> logs_in(const json::Value& document, std::string_view name) {
  const json::Array* const list = HANGAR_TRY(list_in(document, name));
  if (list->empty()) {
    return invalid(fmt::format(
        "{}: has no log; a TrustedRoot of Sigstore has certificateAuthorities, tlogs and ctlogs",
        name));
  }
  std::vector<Log> logs;
  for (std::size_t at = 0; at < list->size(); ++at) {
    const json::Value& one = (*list)[at];
    const std::string where = fmt::format("{}[{}]", name, at);
    std::string id = HANGAR_TRY(bytes_at(one, {"logId", "keyId"}, where + ".logId.keyId"));
    if (id.size() != kLogIdBytes) {
      return invalid(fmt::format("{}.logId.keyId: must have {} bytes", where, kLogIdBytes));
    }
    const std::string der =
        HANGAR_TRY(bytes_at(one, {"publicKey", "rawBytes"}, where + ".publicKey.rawBytes"));
    Result<schematics::PublicKey> key = schematics::PublicKey::from_der(der);
    if (!key) return std::unexpected(std::move(key).error().in(where + ".publicKey.rawBytes"));
    const Period valid = HANGAR_TRY(
        period_in(json::find(one, {"publicKey", "validFor"}), where + ".publicKey.validFor"));
    logs.push_back({.id = std::move(id), .key = *std::move(key), .valid = valid});
  }
  return logs;
}

Result<std::vector<Authority>> authorities_in(const json::Value& document, std::string_view name) {
  const json::Array* const list = HANGAR_TRY(list_in(document, name));
  std::vector<Authority> authorities;
  for (std::size_t at = 0; at < list->size(); ++at) {
    const json::Value& one = (*list)[at];
    const std::string where = fmt::format("{}[{}]", name, at);
    const json::Array* const chain = json::array_at(one, {"certChain", "certificates"});
    if (chain == nullptr || chain->empty() || chain->size() > kChainMax) {
      return invalid(
          fmt::format("{}.certChain.certificates: must be a list of 1 to {}", where, kChainMax));
    }
    Authority authority{
        .chain = {},
        .valid = HANGAR_TRY(period_in(json::find(one, {"validFor"}), where + ".validFor"))};
    for (std::size_t in_chain = 0; in_chain < chain->size(); ++in_chain) {
      const std::string what =
          fmt::format("{}.certChain.certificates[{}].rawBytes", where, in_chain);
      std::string der = HANGAR_TRY(bytes_at((*chain)[in_chain], {"rawBytes"}, what));
      if (!internal::read_der(der)) return invalid(what + ": is not a certificate");
      authority.chain.push_back(std::move(der));
    }
    authorities.push_back(std::move(authority));
  }
  return authorities;
}

}  // namespace

const Log* find_log(const std::vector<Log>& logs, std::string_view id) {
  const auto found = std::ranges::find(logs, id, &Log::id);
  return found == logs.end() ? nullptr : &*found;
}

Result<TrustRoot> read_trust_root(const json::Value& document) {
  if (!json::string_at(document, {"mediaType"}).starts_with(kTrustedRoot)) {
    return invalid(
        fmt::format("mediaType: must be {}...: expected a TrustedRoot of Sigstore", kTrustedRoot));
  }
  TrustRoot root;
  root.certificate_authorities = HANGAR_TRY(authorities_in(document, "certificateAuthorities"));
  if (root.certificate_authorities.empty()) {
    return invalid("certificateAuthorities: has no authority");
  }
  root.logs = HANGAR_TRY(logs_in(document, "tlogs"));
  root.certificate_logs = HANGAR_TRY(logs_in(document, "ctlogs"));
  root.timestamp_authorities = HANGAR_TRY(authorities_in(document, "timestampAuthorities"));
  root.id = sha256_hex(json::dump(document));
  return root;
}

}  // namespace hangar::sigstore
