// Edits one configuration file, as a function of its text. hangar-node adds one part between two
// marker lines; every byte outside of it belongs to others. Removing the part restores the other
// bytes exactly, even if others have edited theirs meanwhile.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

// A name that a RuntimeClass may use as its handler, and the program behind it.
struct Handler {
  enum class Kind : std::uint8_t {
    Shim,  // Speaks containerd's shim protocol.
    Oci,   // A command line like runc's (crun); containerd's own shim for runc starts it.
  };
  std::string name;
  Kind kind = Kind::Shim;
  std::string program;  // Absolute, as containerd sees it.

  friend bool operator==(const Handler&, const Handler&) = default;
};

// The name of the CRI plugin since version 3.
inline constexpr std::string_view kCriVersion3 = "io.containerd.cri.v1.runtime";

// The name of the plugin that runs containers in a configuration of this version; 0: the file has
// no version. `existing`: the plugins that the file configures already. InvalidInput for versions
// that no containerd supports yet.
[[nodiscard]] Result<std::string> plugin_of(std::int64_t config_version,
                                            const std::vector<std::string>& existing);

// Whether the file already configures runtimes. containerd 1.x adds runc by itself only as long as
// its configuration names no runtime; with the first other runtime it has to name runc, too.
enum class Runc : std::uint8_t { IsThere, HasToBeNamed };

// The content of the part. It takes over runc's cgroup driver: a node has only one.
[[nodiscard]] std::string render_handlers(std::string_view plugin,
                                          const std::vector<Handler>& handlers, bool systemd_cgroup,
                                          Runc runc = Runc::IsThere);

// The first line of a file that did not exist before. take_part() recognises these.
inline constexpr std::string_view kVersion2 = "version = 2\n";
inline constexpr std::string_view kVersion3 = "version = 3\n";
inline constexpr std::string_view kBaseTemplate = "{{ template \"base\" . }}\n";

enum class Dialect : std::uint8_t {
  Toml,
  // k3s and rke2 render their configuration from it. Checked as TOML only where it is valid TOML.
  GoTemplate,
};

// The text with our part in it, at its old place or at the end. `before`: the whole file;
// std::nullopt if it does not exist: then the new file begins with `prologue`.
//
// Guarantees: take_part() of the result returns `before` byte by byte. As TOML the result has the
// values of `before` and of `body`, and no others.
// Errors: InvalidInput with ConfigInvalid for a text that is not TOML or has one marker without the
// other; with ConfigConflict if the body conflicts with what others wrote.
[[nodiscard]] Result<std::string> put_part(std::optional<std::string_view> before,
                                           std::string_view prologue, std::string_view body,
                                           Dialect dialect);

// The text without our part; the same text if there is no part. std::nullopt if the file has to be
// removed, because put_part() created it and others have not written into it.
//
// Errors: as put_part(); ConfigConflict if the removal would change the meaning of others' text.
[[nodiscard]] Result<std::optional<std::string>> take_part(std::string_view text, Dialect dialect);

// The same, for reading: the text of others, also in a file whose prologue put_part() wrote.
[[nodiscard]] Result<std::string> text_of_others(std::string_view text, Dialect dialect);

// The content of our part, if there is one. InvalidInput for one marker without the other.
[[nodiscard]] Result<std::optional<std::string>> read_part(std::string_view text);

}  // namespace hangar::node_install
