#include "schematics/signature.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/result.h"
#include "json/value.h"
#include "schematics/keys.h"
#include "schematics/sections.h"
#include "wasm/custom_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::schematics {

namespace {

constexpr std::string_view kName = "signature";

std::string own_section() {
  return fmt::format("{}{}", kPrefix, kName);
}

struct Payload {
  std::string fingerprint;
  std::string signature;
};

Result<Payload> read_payload(std::string_view contents) {
  if (contents.size() > kSignatureBytesMax) {
    return invalid(fmt::format("larger than {} bytes", kSignatureBytesMax));
  }
  const json::Value value = HANGAR_TRY(json::parse(contents));
  std::optional<std::string> signature = base64_decode(json::string_at(value, {"Signature"}));
  if (!signature) return invalid("its signature is not base64");
  return Payload{.fingerprint = std::string(json::string_at(value, {"Fingerprint"})),
                 .signature = *std::move(signature)};
}

}  // namespace

Result<std::string> sign_module(std::span<const std::byte> module, const PrivateKey& key,
                                Signed is_signed) {
  const std::vector<wasm::PlacedSection> sections =
      HANGAR_TRY(wasm::custom_sections_of(module, kPrefix));
  const bool has_signature = std::ranges::any_of(sections, [](const wasm::PlacedSection& section) {
    return section.name == own_section() && !section.contents.empty();
  });
  if (has_signature && is_signed == Signed::Refuse) return invalid("module is already signed");
  // The signature covers what remains, so all sections of that name are removed, not only
  // the first.
  const std::string plain = HANGAR_TRY(without_schematic(module, kName));
  const std::string signature = HANGAR_TRY(key.sign(sha256(plain)));
  return with_schematic(
      std::as_bytes(std::span(plain)),
      {.name = std::string(kName),
       .contents = fmt::format(R"({{"Fingerprint":"{}","Signature":"{}"}})",
                               key.public_key().fingerprint(), base64_encode(signature))});
}

Result<> verify_module(std::span<const std::byte> module, const PublicKeys& keys) {
  const std::vector<wasm::PlacedSection> sections =
      HANGAR_TRY(wasm::custom_sections_of(module, own_section()));
  const auto found = std::ranges::find(sections, own_section(), &wasm::PlacedSection::name);
  if (found == sections.end() || found->contents.empty()) {
    return fail(ErrorKind::Denied, "module is unsigned");
  }
  const Result<Payload> payload = read_payload(found->contents);
  if (!payload) return std::unexpected(Error(payload.error()).in("invalid signature payload"));
  const PublicKey* const key = keys.find(payload->fingerprint);
  if (key == nullptr) {
    return fail(ErrorKind::Denied, "module's key fingerprint does not match provided key(s)");
  }
  const std::string_view text(reinterpret_cast<const char*>(module.data()), module.size());
  Sha256 hash;
  hash.add(text.substr(0, found->begin));
  hash.add(text.substr(found->end));
  if (!key->has_signed(hash.finish(), payload->signature)) {
    return fail(ErrorKind::Denied, "invalid signature");
  }
  return {};
}

}  // namespace hangar::schematics
