// The editing of one configuration file, as a function of its text. What we add is one part between
// two marker lines; every byte outside of it belongs to others. Taking the part out again gives
// back the bytes there were before, also when others have edited theirs meanwhile.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

// One name that a RuntimeClass may have as its handler, and the program behind it.
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

// The name of that plugin since version 3.
inline constexpr std::string_view kCriVersion3 = "io.containerd.cri.v1.runtime";

// The name of the plugin that runs containers in a configuration of this version; 0: the file has
// none. `existing` are the plugins that the file configures already. InvalidInput for versions that
// no containerd has yet.
[[nodiscard]] Result<std::string> plugin_of(std::int64_t config_version,
                                            const std::vector<std::string>& existing);

// Whether the file has runtimes already. containerd 1.x has runc by itself only as long as its
// configuration names no runtime at all; with the first other one it has to be named, too.
enum class Runc : std::uint8_t { IsThere, HasToBeNamed };

// What the part says. The cgroup driver is runc's: a node has one.
[[nodiscard]] std::string render_handlers(std::string_view plugin,
                                          const std::vector<Handler>& handlers, bool systemd_cgroup,
                                          Runc runc = Runc::IsThere);

// How a file begins that is made because there was none. take_part() knows these again.
inline constexpr std::string_view kVersion2 = "version = 2\n";
inline constexpr std::string_view kVersion3 = "version = 3\n";
inline constexpr std::string_view kBaseTemplate = "{{ template \"base\" . }}\n";

enum class Dialect : std::uint8_t {
  Toml,
  // k3s and rke2 make their configuration out of it. Checked as TOML only where it is that as well.
  GoTemplate,
};

// The text with our part in it, where it was before or at the end. `before`: the whole file,
// nothing if there is none; then the new file begins with `prologue`.
//
// Guarantees: take_part() of the result gives `before` byte by byte. As TOML the result says what
// `before` said, and what `body` says, and nothing else.
// Errors: InvalidInput with ConfigInvalid for a text that is no TOML or has one marker without the
// other; with ConfigConflict if the body cannot stand beside what others wrote.
[[nodiscard]] Result<std::string> put_part(std::optional<std::string_view> before,
                                           std::string_view prologue, std::string_view body,
                                           Dialect dialect);

// The text without our part: nothing if the file is to be removed, because put_part() made it and
// no one else wrote into it; the same text if there is no part.
//
// Errors: as put_part(); ConfigConflict if text of others would change its meaning.
[[nodiscard]] Result<std::optional<std::string>> take_part(std::string_view text, Dialect dialect);

// The same text, for reading: what others say, in a file that put_part() made its prologue too.
[[nodiscard]] Result<std::string> text_of_others(std::string_view text, Dialect dialect);

// What stands in our part, if there is one. InvalidInput for one marker without the other.
[[nodiscard]] Result<std::optional<std::string>> read_part(std::string_view text);

}  // namespace hangar::node_install
