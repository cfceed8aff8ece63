#include "modules/internal/wasm_bytes.h"

#include "base/digest.h"
#include "base/result.h"
#include "base/text.h"
#include "modules/config_map.h"
#include "modules/internal/gzip.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kMagic = "\0asm"sv;
constexpr std::string_view kCoreModule = "\0asm\x01\0\0\0"sv;
constexpr std::string_view kText = "text";

bool is_text(std::string_view bytes) {
  return std::ranges::none_of(bytes, [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte < ' ' && byte != '\n' && byte != '\r' && byte != '\t';
  });
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && equals_ignoring_case(text.substr(0, lower.size()), lower);
}

}  // namespace

Result<Unpacked> unpack(std::string bytes, std::uint64_t bytes_max, Content content) {
  // Twice, because servers compress files that are already compressed (Content-Encoding of a .gz).
  constexpr int kLayersMax = 2;
  std::string gzipped;
  for (int layer = 0; layer < kLayersMax && is_gzip(bytes); ++layer) {
    gzipped = std::move(bytes);
    bytes = HANGAR_TRY(gunzip(gzipped, bytes_max));
  }
  if (bytes.size() > bytes_max) {
    return fail(ErrorKind::LimitExceeded, fmt::format("is larger than {} bytes", bytes_max));
  }
  const bool may_be_script = content == Content::ModuleOrScript;
  if (!bytes.starts_with(kCoreModule) && !(may_be_script && describe(bytes) == kText)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("is not a WebAssembly module{} but {}{} ({} bytes)",
                            may_be_script ? " or JavaScript" : "",
                            gzipped.empty() ? "" : "gzip of ", describe(bytes), bytes.size()));
  }
  Unpacked unpacked{.wasm = std::move(bytes), .sha256 = {}, .gzipped = std::move(gzipped)};
  unpacked.sha256 = sha256_hex(unpacked.wasm);
  return unpacked;
}

std::string_view describe(std::string_view bytes) {
  if (bytes.empty()) return "nothing";
  if (bytes.starts_with(kMagic)) {
    constexpr std::size_t kVersionEnd = 8;
    // The upper half of the version distinguishes a component ("layer 1") from a module.
    if (bytes.size() >= kVersionEnd && bytes[6] == 1) return "a WebAssembly component";
    if (bytes.size() >= kVersionEnd) return "WebAssembly of an unknown version";
    return "the first bytes of a module";
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kKinds = {
      {{"\x1f\x8b"sv, "gzip"},
       {"\x28\xb5\x2f\xfd"sv, "zstd"},
       {"PK\x03\x04"sv, "a zip archive"},
       {"BZh"sv, "bzip2"},
       {"\xfd"
        "7zXZ\0"sv,
        "xz"},
       {"\x7f"
        "ELF"sv,
        "an ELF program"}}};
  for (const auto& [magic, name] : kKinds) {
    if (bytes.starts_with(magic)) return name;
  }
  constexpr std::size_t kTarMagicAt = 257;
  if (bytes.size() > kTarMagicAt && bytes.substr(kTarMagicAt).starts_with("ustar")) {
    return "a tar archive";
  }
  constexpr std::size_t kLookedAt = 1024;
  std::string_view head = bytes.substr(0, kLookedAt);
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  if (!is_text(head)) return "other binary data";
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "white space";
  head.remove_prefix(first);
  if (starts_with_ignoring_case(head, "<!doctype html") ||
      starts_with_ignoring_case(head, "<html")) {
    return "an HTML page";
  }
  if (head.starts_with("<?xml")) return "XML";
  if (head.starts_with("(module")) return "WebAssembly text: assemble it with wat2wasm";
  if (head.starts_with('{') || head.starts_with('[')) return "JSON";
  if (head.starts_with("version https://git-lfs")) return "a Git LFS pointer";
  return kText;
}

}  // namespace hangar::modules
