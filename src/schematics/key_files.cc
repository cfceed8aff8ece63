#include "schematics/key_files.h"

#include "base/invalid.h"
#include "base/result.h"
#include "io/file.h"
#include "json/value.h"
#include "schematics/keys.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::schematics {

namespace {

// A mounted Secret has its files one directory down. The bound also stops a loop through a link to
// a parent directory.
constexpr int kDepthMax = 8;

// Keys in yoke's `keys.json`.
constexpr std::size_t kKeysInFileMax = 64;

Result<PublicKeys> parse_array(std::string_view text) {
  const json::Value document = HANGAR_TRY(json::parse(text));
  const json::Array& pems = document.as_array();
  if (pems.size() > kKeysInFileMax) {
    return fail(ErrorKind::LimitExceeded, fmt::format("more than {} keys", kKeysInFileMax));
  }
  PublicKeys keys;
  for (std::size_t at = 0; at < pems.size(); ++at) {
    const std::string doing = fmt::format("failed to parse key at position {}", at);
    if (!pems[at].is_string()) return invalid(doing + ": must be a string");
    Result<PublicKey> key = PublicKey::parse(pems[at].get_string());
    if (!key) return std::unexpected(std::move(key).error().in(doing));
    HANGAR_TRY(keys.add(*std::move(key)));
  }
  return keys;
}

Result<PublicKeys> load_file(const std::filesystem::path& path) {
  Result<std::string> text = io::read_file(path, kKeysInFileMax * kKeyTextBytesMax);
  if (!text) return std::unexpected(std::move(text).error().in("failed to read file"));
  if (text->starts_with('[')) {
    Result<PublicKeys> keys = parse_array(*text);
    if (!keys) return std::unexpected(std::move(keys).error().in(path.string()));
    return keys;
  }
  Result<PublicKey> key = PublicKey::parse(*text);
  if (!key) {
    return std::unexpected(std::move(key).error().in(
        fmt::format("failed to parse public key from pem: {}", path.string())));
  }
  PublicKeys keys;
  HANGAR_TRY(keys.add(*std::move(key)));
  return keys;
}

Result<PublicKeys> load(const std::filesystem::path& path, int depth) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return fail(ErrorKind::NotFound,
                fmt::format("failed to stat: stat {}: {}", path.string(), error.message()));
  }
  if (!std::filesystem::is_directory(status)) return load_file(path);
  if (depth == kDepthMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("{}: more than {} directories deep", path.string(), kDepthMax));
  }
  PublicKeys keys;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    const bool is_directory = at->symlink_status().type() == std::filesystem::file_type::directory;
    if (!is_directory && at->path().extension() != ".pem") continue;
    const PublicKeys more = HANGAR_TRY(load(at->path(), depth + 1));
    HANGAR_TRY(keys.add(more));
  }
  if (error) {
    return fail(ErrorKind::Unavailable,
                fmt::format("failed to read directory: {}: {}", path.string(), error.message()));
  }
  return keys;
}

}  // namespace

Result<PublicKeys> load_public_keys(const std::filesystem::path& path) {
  return load(path, 0);
}

Result<PrivateKey> load_private_key(const std::filesystem::path& path) {
  Result<std::string> pem = io::read_file(path, kKeyTextBytesMax);
  if (!pem) return std::unexpected(std::move(pem).error().in("failed to read private key"));
  Result<PrivateKey> key = PrivateKey::parse(*pem);
  if (!key) return std::unexpected(std::move(key).error().in("failed to parse private key"));
  return key;
}

}  // namespace hangar::schematics
