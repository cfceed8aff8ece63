// The Go files that `hangar build go` adds to a program: parts of sdk/go/hangar, which are embedded
// here so that no source tree is needed (cmake/GuestSources.cmake).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hangar::go_build {

inline constexpr std::string_view kGuestModule = "hangar.dev/sdk/go/hangar";
inline constexpr std::string_view kGuestPackage = "hangar.dev/sdk/go/hangar/guest";

struct GuestSource {
  std::string_view name;
  std::string_view text;
};

// The files of package guest.
[[nodiscard]] std::span<const GuestSource> guest_sources();

// The go.mod of a module that contains only that package.
[[nodiscard]] std::string guest_go_mod();

// sdk/go/hangar/manager_options.go.
[[nodiscard]] std::string_view manager_options_source();

// The same text as a file of controller-runtime's package manager.
[[nodiscard]] std::string in_package_manager(std::string_view manager_options);

// A file for the program's main package that turns the program into a guest.
[[nodiscard]] std::string main_source();

}  // namespace hangar::go_build
