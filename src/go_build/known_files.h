// The files of other modules that `hangar build go` changes, and the versions of them that
// it knows.
//
// A version is identified by the digest of the file and not by its number: a fork with the same
// file is known, and a version with a changed file is not. The build never guesses.
#pragma once

#include "base/result.h"
#include "go_build/text_edit.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hangar::go_build {

inline constexpr std::string_view kControllerRuntime = "sigs.k8s.io/controller-runtime";
// The directory in which a copy of controller-runtime gets an additional file.
inline constexpr std::string_view kManagerDirectory = "pkg/manager";

struct KnownVersion {
  std::string_view releases;  // "0.35 to 0.37".
  std::string_view sha256;
  Edit edit;
};

// How the build treats an unknown version.
enum class Unknown : std::uint8_t {
  Refused,    // The program would not work as a guest.
  LeftAlone,  // It may compile unchanged. If not, the compiler reports it.
};

struct ChangedFile {
  std::string_view module;
  std::string_view directory;  // The package's directory in the module; empty: the module's own.
  std::string_view name;
  std::string_view why;  // The effect of the unchanged line in a guest.
  std::span<const KnownVersion> versions;
  Unknown unknown = Unknown::Refused;

  // Import path of the package.
  [[nodiscard]] std::string import_path() const;
};

[[nodiscard]] std::span<const ChangedFile> changed_files();

// A line that was replaced.
struct Change {
  std::string file;  // "k8s.io/client-go v0.37.0 util/workqueue/queue.go", for people.
  std::size_t line_number = 0;
  std::string why;
  std::string before;
  std::string after;
  std::string text;  // The whole changed file.
};

// `version` is the version of the module that the build uses, for messages. InvalidInput when the
// text is not one of the known versions; the message names these, and the alternatives.
[[nodiscard]] Result<Change> change(const ChangedFile& file, std::string_view version,
                                    std::string_view text);

// "client-go 0.32 to 0.37, controller-runtime 0.20 to 0.25".
[[nodiscard]] std::string_view known_releases();

// Files of Go's own library, relative to its src; identified by the line and not by a digest.
struct StandardFile {
  std::string_view path;
  std::string_view why;
  Edit edit;
  std::string_view appended;  // At the end of the file.
};
[[nodiscard]] std::span<const StandardFile> standard_files();

// InvalidInput, which names the toolchain `version`, when the file lacks the line.
[[nodiscard]] Result<Change> change(const StandardFile& file, std::string_view version,
                                    std::string_view text);

}  // namespace hangar::go_build
