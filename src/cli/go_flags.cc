#include "cli/go_flags.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::cli {

namespace {

// Those that may stand before the command, and whether they take a value.
struct CommonFlag {
  std::string_view name;
  bool takes_value = true;
};
constexpr std::array<CommonFlag, 3> kCommonFlags = {
    {{"kubeconfig"}, {"kube-context"}, {"debug", false}}};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The name of a flag with one dash or two: "namespace" of "-namespace=x". Empty: it is none that
// has more than a letter.
std::string_view name_of_flag(std::string_view argument) {
  if (!argument.starts_with('-')) return {};
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  const std::string_view name = argument.substr(0, argument.find('='));
  return name.size() > 1 && is_letter(name.front()) ? name : std::string_view();
}

// How many of the first arguments are common flags with their values.
std::size_t common_flags_at_begin(const std::vector<std::string>& arguments) {
  std::size_t at = 0;
  while (at < arguments.size()) {
    const auto found =
        std::ranges::find(kCommonFlags, name_of_flag(arguments[at]), &CommonFlag::name);
    if (found == kCommonFlags.end()) break;
    at += found->takes_value && !arguments[at].contains('=') ? 2 : 1;
  }
  return std::min(at, arguments.size());
}

}  // namespace

std::vector<std::string> read_go_flags(std::vector<std::string> arguments,
                                       std::span<const CLI::App* const> commands) {
  const std::size_t common = common_flags_at_begin(arguments);
  if (common == arguments.size()) return arguments;
  const auto command = std::ranges::find_if(
      commands, [&](const CLI::App* one) { return one->check_name(arguments[common]); });
  if (command == commands.end()) return arguments;
  std::ranges::rotate(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(common),
                      arguments.begin() + static_cast<std::ptrdiff_t>(common) + 1);

  std::vector<std::string> read = {arguments.front()};
  for (std::size_t at = 1; at < arguments.size(); ++at) {
    const std::string& argument = arguments[at];
    if (argument == "--") {
      std::ranges::copy(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end(),
                        std::back_inserter(read));
      break;
    }
    const std::string long_name = "--" + std::string(name_of_flag(argument));
    const CLI::Option* const option = (*command)->get_option_no_throw(long_name);
    if (long_name == "--" || option == nullptr) {
      read.push_back(argument);
      continue;
    }
    read.push_back((argument.starts_with("--") ? "" : "-") + argument);
    // Its value, which may begin with a dash.
    const bool has_value = option->get_items_expected_min() == 0 || argument.contains('=');
    if (!has_value && at + 1 < arguments.size()) read.push_back(arguments[++at]);
  }
  return read;
}

}  // namespace hangar::cli
