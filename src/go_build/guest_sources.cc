#include "go_build/guest_sources.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::go_build {

namespace {

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

// The oldest version that package guest supports: a version above the program's own would make the
// go command look for another toolchain.
std::string guest_go_mod() {
  return fmt::format("module {}\n\ngo 1.24\n", kGuestModule);
}

std::string in_package_manager(std::string_view manager_options) {
  std::string text(manager_options);
  text = replace_all(std::move(text), "package hangar\n", "package manager\n");
  text = replace_all(std::move(text), "\t\"sigs.k8s.io/controller-runtime/pkg/manager\"\n", "");
  return replace_all(std::move(text), "manager.Options", "Options");
}

// The import has a name that the program's own package is unlikely to use; a name used twice would
// be an error.
std::string main_source() {
  return fmt::format(
      "package main\n\nimport hangarGuest \"{}\"\n\nfunc init() {{ hangarGuest.Main = main }}\n",
      kGuestPackage);
}

}  // namespace hangar::go_build
