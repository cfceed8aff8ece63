#include "schematics/signature.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/result.h"
#include "json/go_text.h"
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

// One line for each field, none of which has line breaks.
std::string text_of(const CodeStatement& statement) {
  return fmt::format(
      "hangar native code\nmodule sha256:{}\nengine {}\nprocessor {}\ncode sha256:{}\n",
      statement.module_sha256, statement.engine, statement.processor, statement.code_sha256);
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

Result<std::string> sign_code(const CodeStatement& statement, const PrivateKey& key) {
  const std::string signature = HANGAR_TRY(key.sign(sha256(text_of(statement))));
  return json::dump_as_go(json::Object{{"Module", "sha256:" + statement.module_sha256},
                                       {"Engine", statement.engine},
                                       {"Processor", statement.processor},
                                       {"Code", "sha256:" + statement.code_sha256},
                                       {"Fingerprint", key.public_key().fingerprint()},
                                       {"Signature", base64_encode(signature)}});
}

Result<std::string> verify_code(std::string_view file, const CodeStatement& statement,
                                const PublicKeys& keys) {
  const Result<Payload> payload = read_payload(file);
  if (!payload) return std::unexpected(Error(payload.error()).in("invalid signature"));
  const PublicKey* const key = keys.find(payload->fingerprint);
  if (key == nullptr) return fail(ErrorKind::Denied, "signed by none of the builder keys");
  if (!key->has_signed(sha256(text_of(statement)), payload->signature)) {
    return fail(ErrorKind::Denied, "the signature is for other code, or another module");
  }
  return key->fingerprint();
}

}  // namespace hangar::schematics
