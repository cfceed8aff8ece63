// The location of a module: the text of an Airway's wasmUrls.flight, parsed once and checked.
//
//   https://host/path/flight.wasm.gz        http://... too
//   oci://registry/repository:tag@sha256:…  tag, digest or both; neither means the tag "latest"
//   configmap://namespace/name/key          without a key: the only one, or numbered parts
//   file:///path/flight.wasm                or a plain path
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar::modules {

struct HttpSource {
  std::string url;       // Without user, password and fragment.
  std::string user;      // Decoded; empty when the URL has none.
  std::string password;  // Decoded. Secret: never part of a message.
};

struct OciSource {
  std::string registry;    // "registry.example:5000", lower case.
  std::string repository;  // "team/flights/backend".
  std::string tag;         // "latest" when neither tag nor digest is given; else may be empty.
  std::string digest;      // "sha256:<64 hex>" of the manifest; empty when not pinned.
};

struct ConfigMapSource {
  std::string namespace_name;
  std::string name;
  std::string key;  // Empty: the only key, or numbered parts.
};

struct FileSource {
  std::string path;
};

class Reference {
 public:
  using Source = std::variant<HttpSource, OciSource, ConfigMapSource, FileSource>;

  // InvalidInput says what is wrong and, where the intention is clear, the right form.
  [[nodiscard]] static Result<Reference> parse(std::string_view text);

  [[nodiscard]] const Source& source() const { return source_; }

  // For messages and logs: the reference without user, password and query, because signed URLs
  // carry their secret in the query.
  [[nodiscard]] const std::string& display() const { return display_; }

  // The parsed form of the reference, with its query but without user, password and fragment; for
  // comparison with an administrator's allow list. Not for messages.
  [[nodiscard]] std::string meaning() const;

  // The part of meaning() that the tags, digests and queries of one source share: the repository,
  // in the form that the registry knows it by; the URL without its query.
  [[nodiscard]] std::string place() const;

  // Equal for equal references and for no others; contains nothing of their secrets.
  [[nodiscard]] const std::string& key() const { return key_; }

  [[nodiscard]] bool is_config_map() const {
    return std::holds_alternative<ConfigMapSource>(source_);
  }

  // True when this text can never mean other bytes: an OCI digest.
  [[nodiscard]] bool is_pinned() const;

 private:
  Reference(Source source, std::string display, std::string key)
      : source_(std::move(source)), display_(std::move(display)), key_(std::move(key)) {}

  Source source_;
  std::string display_;
  std::string key_;
};

// The sha256 (of the uncompressed module) that this reference promises: `explicit_sha256` when it
// is not empty, else that of a tag "sha256_<hex>", else of a file name "sha256_<hex>.wasm" or
// "name_sha256_<hex>.wasm.gz". Lower case. It need not be a digest; then no module has it.
[[nodiscard]] std::optional<std::string> expected_sha256(const Reference& reference,
                                                         std::string_view explicit_sha256);

// InvalidInput in yoke's words, with the digest that was found.
[[nodiscard]] Result<> verify_sha256(std::string_view expected, std::string_view actual);

// The error of a fetched module without "module URL: ": for messages that name the module
// otherwise.
[[nodiscard]] Error without_reference(const Error& error, const Reference& reference);

}  // namespace hangar::modules
