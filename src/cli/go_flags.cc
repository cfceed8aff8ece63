#include "cli/go_flags.h"

#include "base/invalid.h"
#include "base/result.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::cli {

namespace {

// Flags that may come before the command.
struct CommonFlag {
  std::string_view name;
  bool takes_value = true;
};
constexpr std::array<CommonFlag, 3> kCommonFlags = {
    {{"kubeconfig"}, {"kube-context"}, {"debug", false}}};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The name of a flag with one dash or two: "namespace" of "-namespace=x". Empty if the argument is
// not a flag with a name longer than a letter.
std::string_view name_of_flag(std::string_view argument) {
  if (!argument.starts_with('-')) return {};
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  const std::string_view name = argument.substr(0, argument.find('='));
  return name.size() > 1 && is_letter(name.front()) ? name : std::string_view();
}

// Number of leading arguments that are common flags and their values.
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
  // Moves the command before the common flags: CLI11 has them as options of the commands.
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
    // The value, which may begin with a dash.
    const bool has_value = option->get_items_expected_min() == 0 || argument.contains('=');
    if (!has_value && at + 1 < arguments.size()) read.push_back(arguments[++at]);
  }
  return read;
}

namespace {

// One flag, split as Go's package does.
struct GoFlag {
  std::string name;
  std::optional<std::string> value;  // The text after `=`.
};

// std::nullopt: not a flag, so the flags end here.
std::optional<GoFlag> flag_in(std::string_view argument) {
  if (argument.size() < 2 || !argument.starts_with('-') || argument == "--") return std::nullopt;
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  const std::size_t equals = argument.find('=');
  GoFlag flag{.name = std::string(argument.substr(0, equals)), .value = std::nullopt};
  if (equals != std::string_view::npos) flag.value = argument.substr(equals + 1);
  return flag;
}

std::string dashed(std::string_view name) {
  return fmt::format("{}{}", name.size() > 1 ? "--" : "-", name);
}

bool is_for_help(const GoFlag& flag) {
  return flag.name == "h" || flag.name == "help";
}

bool takes_no_value(const CLI::Option& option) {
  return option.get_items_expected_min() == 0;
}

std::size_t names_max(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); })
      .size();
}

// The flags of one command, in the order of their first occurrence.
class GoFlagsRead {
 public:
  explicit GoFlagsRead(const CLI::App& command) : command_(command) {}

  // Takes a flag, and its value from `rest` if necessary.
  [[nodiscard]] Result<> take(const GoFlag& flag, std::span<const std::string>& rest) {
    const CLI::Option* const option = command_.get_option_no_throw(dashed(flag.name));
    if (option == nullptr) return invalid("flag provided but not defined: -" + flag.name);
    if (takes_no_value(*option)) {
      put(*option, flag.name, flag.value.value_or("true"));
      return {};
    }
    if (!flag.value && rest.empty()) return invalid("flag needs an argument: -" + flag.name);
    put(*option, flag.name, flag.value ? *flag.value : rest.front());
    if (!flag.value) rest = rest.subspan(1);
    return {};
  }

  [[nodiscard]] std::vector<std::string> arguments() const {
    std::vector<std::string> all;
    for (const Given& given : given_) {
      if (!given.is_switch) {
        all.push_back(dashed(given.name));
        all.push_back(given.value);
      } else if (given.name.size() > 1) {
        all.push_back(fmt::format("{}={}", dashed(given.name), given.value));
      } else if (given.value != "false") {  // A flag of one letter takes no value.
        all.push_back(dashed(given.name));
      }
    }
    return all;
  }

 private:
  struct Given {
    std::string name;
    std::string value;
    bool is_switch = false;
  };
  void put(const CLI::Option& option, const std::string& name, std::string value) {
    const bool is_list = option.get_items_expected_max() > 1;
    const auto before = std::ranges::find(given_, name, &Given::name);
    if (!is_list && before != given_.end()) {
      before->value = std::move(value);
    } else {
      given_.push_back(
          {.name = name, .value = std::move(value), .is_switch = takes_no_value(option)});
    }
  }

  const CLI::App& command_;
  std::vector<Given> given_;
};

// Takes the flags before the command. Every command of yoke's program accepts them; here some do
// not.
Result<std::vector<std::string>> take_common(std::span<const std::string>& rest, GoLine& line) {
  std::vector<std::string> taken;
  while (!rest.empty()) {
    const std::optional<GoFlag> flag = flag_in(rest.front());
    if (!flag) break;
    rest = rest.subspan(1);
    if (is_for_help(*flag)) {
      line.asks_for_help = true;
      return taken;
    }
    const auto* const known = std::ranges::find(kCommonFlags, flag->name, &CommonFlag::name);
    if (known == kCommonFlags.end()) {
      return invalid("flag provided but not defined: -" + flag->name);
    }
    if (known->takes_value && !flag->value && rest.empty()) {
      return invalid("flag needs an argument: -" + flag->name);
    }
    const bool is_apart = known->takes_value && !flag->value;
    const std::string value = is_apart ? rest.front() : flag->value.value_or("true");
    if (is_apart) rest = rest.subspan(1);
    taken.push_back(fmt::format("-{}={}", flag->name, value));
  }
  return taken;
}

// Takes the flags up to the first word that is none, and a `--` at their end. True: one of them
// asks for help.
Result<bool> take_own(std::span<const std::string>& rest, GoFlagsRead& flags) {
  while (!rest.empty()) {
    const std::optional<GoFlag> flag = flag_in(rest.front());
    if (flag || rest.front() == "--") rest = rest.subspan(1);
    if (!flag) break;
    if (is_for_help(*flag)) return true;
    HANGAR_TRY(flags.take(*flag, rest));
  }
  return false;
}

}  // namespace

Result<GoLine> read_go_line(std::span<const std::string> arguments,
                            std::span<const CLI::App* const> commands,
                            const CLI::App& with_arguments) {
  GoLine line;
  std::span<const std::string> rest = arguments;
  const std::vector<std::string> common = HANGAR_TRY(take_common(rest, line));
  if (line.asks_for_help || rest.empty()) return line;
  line.name = rest.front();
  rest = rest.subspan(1);
  const auto found = std::ranges::find_if(
      commands, [&](const CLI::App* one) { return one->check_name(line.name); });
  if (found == commands.end()) return line;
  line.command = *found;
  if (line.command == &with_arguments) {
    const auto dashes = std::ranges::find(rest, "--");
    if (dashes != rest.end()) line.behind_dashes.assign(std::next(dashes), rest.end());
    rest = rest.first(static_cast<std::size_t>(dashes - rest.begin()));
  }

  GoFlagsRead flags(*line.command);
  for (const std::string& one : common) {
    const std::optional<GoFlag> flag = flag_in(one);
    std::span<const std::string> none;
    const bool is_its = line.command->get_option_no_throw(dashed(flag->name)) != nullptr;
    if (is_its) HANGAR_TRY(flags.take(*flag, none));
  }
  line.asks_for_help = HANGAR_TRY(take_own(rest, flags));
  if (line.asks_for_help) return line;
  const std::size_t names = std::min(rest.size(), names_max(*line.command));
  line.arguments = flags.arguments();
  line.arguments.insert(line.arguments.begin(), line.command->get_name());
  // CLI11 would take names that begin with a dash for flags.
  if (names > 0) line.arguments.emplace_back("--");
  const std::span<const std::string> kept = rest.first(names);
  line.arguments.insert(line.arguments.end(), kept.begin(), kept.end());
  line.left_out.assign(rest.begin() + static_cast<std::ptrdiff_t>(names), rest.end());
  return line;
}

Result<GoLine> read_go_line(std::span<const std::string> arguments, const CLI::App& program) {
  GoLine line{.command = &program};
  GoFlagsRead flags(program);
  line.asks_for_help = HANGAR_TRY(take_own(arguments, flags));
  line.arguments = flags.arguments();
  line.left_out.assign(arguments.begin(), arguments.end());
  return line;
}

}  // namespace hangar::cli
