// Modules in ConfigMaps: for small modules, and for clusters without a registry. This folder does
// not know Kubernetes; a folder that does implements ConfigMapReader.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "modules/requester.h"

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::modules {

// The content as in the API object.
struct ConfigMapContent {
  std::map<std::string, std::string> data;         // Text.
  std::map<std::string, std::string> binary_data;  // Base64, as the API server sends it.
  // Changes whenever the content does: "<uid>/<resourceVersion>".
  std::string revision;
};

class ConfigMapReader {
 public:
  virtual ~ConfigMapReader() = default;
  // Errors: NotFound, Denied, Unavailable, Cancelled. Loop thread.
  [[nodiscard]] virtual io::Task<Result<ConfigMapContent>> read(ConfigMapAccess access,
                                                                std::string name,
                                                                std::stop_token stop) = 0;
};

// What a source may contain.
enum class Content : std::uint8_t { Module, ModuleOrScript };

// The key of the plugin for a machine's module (wasm/plugin.h); it is in the module's ConfigMap or
// in its own.
inline constexpr std::string_view kPluginKey = "plugin.wasm";

// The module in `content`: the value of `key`; if `key` is empty, that of the only key, or of all
// keys concatenated if they are numbered parts ("flight.0", "flight.1", ...: the same text and a
// number, counted from 0 or 1 without a gap). `key` may also stand for `key`.gz, or for numbered
// parts of either. A value in binaryData is the bytes; one in data is base64 of them. With
// ModuleOrScript a value in data may also be the script itself; of several keys those of a plugin
// are ignored, and the only key that is named like a module or script (.wasm, .js, .mjs, with or
// without .gz) is taken. Errors: NotFound for a missing key, InvalidInput.
[[nodiscard]] Result<std::string> module_bytes(const ConfigMapContent& content,
                                               std::string_view key,
                                               Content wanted = Content::Module);

// The reverse: `bytes` gzipped, as the one key `name`.gz. Blocking. LimitExceeded when the result
// is larger than the API server accepts in one ConfigMap, however many keys it has.
[[nodiscard]] Result<ConfigMapContent> in_config_map(std::string_view name, std::string_view bytes);

}  // namespace hangar::modules
