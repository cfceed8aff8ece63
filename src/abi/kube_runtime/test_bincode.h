// For tests and fuzzers: the guest's side of messages.h.
#pragma once

#include "abi/kube_runtime/messages.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::kube_runtime {

inline void append_number(std::string& bytes, std::uint64_t value, std::size_t size = 8) {
  for (std::size_t index = 0; index < size; ++index)
    bytes += static_cast<char>(value >> (8 * index) & 0xff);
}

inline void append_text(std::string& bytes, std::string_view text) {
  append_number(bytes, text.size());
  bytes += text;
}

inline std::string encode_request(const HttpRequest& request) {
  std::map<std::string, std::vector<std::string>> values_by_name;
  for (const auto& [name, value] : request.headers)
    values_by_name[name].push_back(value);
  std::string bytes;
  append_text(bytes, request.method);
  append_text(bytes, request.uri);
  append_number(bytes, values_by_name.size());
  for (const auto& [name, values] : values_by_name) {
    append_text(bytes, name);
    append_number(bytes, values.size());
    for (const std::string& value : values)
      append_text(bytes, value);
  }
  append_text(bytes, request.body);
  return bytes;
}

struct ResponseMeta {
  int status = 0;
  Headers headers;
};

// std::nullopt unless all of `bytes` is such a structure.
inline std::optional<ResponseMeta> decode_response_meta(std::string_view bytes) {
  const auto number = [&bytes](std::size_t size) -> std::optional<std::uint64_t> {
    if (bytes.size() < size) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), size);
    bytes.remove_prefix(size);
    return value;
  };
  const auto text = [&bytes, &number]() -> std::optional<std::string> {
    const auto size = number(8);
    if (!size || *size > bytes.size()) return std::nullopt;
    std::string value(bytes.substr(0, *size));
    bytes.remove_prefix(*size);
    return value;
  };
  ResponseMeta meta;
  const auto status = number(2);
  const auto names = number(8);
  if (!status || !names) return std::nullopt;
  meta.status = static_cast<int>(*status);
  for (std::uint64_t index = 0; index < *names; ++index) {
    const auto name = text();
    const auto values = number(8);
    if (!name || !values) return std::nullopt;
    for (std::uint64_t each = 0; each < *values; ++each) {
      const auto value = text();
      if (!value) return std::nullopt;
      meta.headers.emplace_back(*name, *value);
    }
  }
  if (!bytes.empty()) return std::nullopt;
  return meta;
}

}  // namespace hangar::abi::kube_runtime
