#include "cli/completion.h"

#include "base/invalid.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/setting_flags.h"
#include "cli/standard_streams.h"
#include "commands/known_names.h"
#include "host/config.h"
#include "host/log.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::cli {

namespace {

using commands::KnownName;
using commands::NameKind;

// The words of an option that takes one of a few words: CLI11 has them in the type,
// "FORMAT:{json,text}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos || close < open) return choices;
  std::string_view list = std::string_view(type).substr(open + 1, close - open - 1);
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    choices.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return choices;
}

Paths paths_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.contains("FILE")) return Paths::Files;
  return type.contains("DIRECTORY") ? Paths::Directories : Paths::None;
}

// The kind of names of the cluster that an option or positional of a command takes.
std::optional<NameKind> names_of(const CLI::Option& option, std::string_view command) {
  if (option.get_type_name() == "NAMESPACE") return NameKind::Namespaces;
  if (!option.get_positional()) return std::nullopt;
  const std::string name = option.get_name(true);
  if (name == "RELEASE") return NameKind::Releases;
  if (name == "REVISION" || name == "COMPARED-WITH") return NameKind::Revisions;
  if (name != "NAME") return std::nullopt;
  if (command == "logs" || command == "timeline" || command == "rights") {
    return NameKind::Operators;
  }
  if (command.starts_with("workflow ")) return NameKind::Workflows;
  return std::nullopt;
}

bool is_switch(const CLI::Option& option) {
  return option.get_items_expected_min() == 0;
}

// The longest name with its dashes: "--namespace", or "-o".
std::string flag_name(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
  return option.get_snames().empty() ? std::string() : "-" + option.get_snames().front();
}

struct Flag {
  const CLI::Option* option = nullptr;
  std::string written;               // The name with its dashes.
  std::optional<std::string> value;  // The text after `=`.
};

// The option is null if the command has no such flag. `-namespace` is yoke's form of `--namespace`.
Flag flag_in(const CLI::App& command, std::string_view word) {
  const std::size_t equals = word.find('=');
  Flag flag{.option = nullptr, .written = std::string(word.substr(0, equals)), .value = {}};
  if (equals != std::string_view::npos) flag.value = word.substr(equals + 1);
  flag.option = command.get_option_no_throw(flag.written);
  const bool may_be_long = flag.written.size() > 2 && !flag.written.starts_with("--");
  if (flag.option == nullptr && may_be_long) {
    flag.option = command.get_option_no_throw("-" + flag.written);
  }
  return flag;
}

class Line {
 public:
  explicit Line(const CLI::App& app) : command_(&app) {}

  // Reads a complete word.
  void read(const std::string& word) {
    if (open_ != nullptr) {
      found_.flags[flag_name(*std::exchange(open_, nullptr))] = word;
    } else if (!only_positionals_ && word == "--") {
      only_positionals_ = true;
    } else if (!only_positionals_ && word.starts_with('-') && word.size() > 1) {
      const Flag flag = flag_in(*command_, word);
      if (flag.option == nullptr) return;
      if (flag.value) {
        found_.flags[flag_name(*flag.option)] = *flag.value;
      } else if (!is_switch(*flag.option)) {
        open_ = flag.option;
      }
    } else if (const CLI::App* const sub = subcommand(word)) {
      command_ = sub;
      if (!found_.command.empty()) found_.command += ' ';
      found_.command += sub->get_name();
    } else {
      found_.positionals.push_back(word);
    }
  }

  // Completes the word under the cursor.
  [[nodiscard]] Completion complete(const std::string& word) {
    if (open_ != nullptr) {
      add_values(*open_, word, {});
      return std::move(found_);
    }
    if (!only_positionals_ && word.starts_with('-')) {
      const Flag flag = flag_in(*command_, word);
      if (flag.value) {
        if (flag.option != nullptr) add_values(*flag.option, *flag.value, flag.written + "=");
      } else {
        add_flags(word);
      }
      return std::move(found_);
    }
    if (found_.positionals.empty()) add_subcommands(word);
    const std::vector<const CLI::Option*> positionals =
        command_->get_options([](const CLI::Option* option) { return option->get_positional(); });
    if (!positionals.empty()) {
      // The last positional may take several words.
      const std::size_t at = found_.positionals.size();
      if (at < positionals.size()) {
        add_values(*positionals[at], word, {});
      } else if (positionals.back()->get_items_expected_max() > 1) {
        add_values(*positionals.back(), word, {});
      }
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] const CLI::App* subcommand(const std::string& word) const {
    if (!found_.positionals.empty()) return nullptr;
    for (const CLI::App* const one : command_->get_subcommands({})) {
      if (one->check_name(word)) return one;
    }
    return nullptr;
  }

  void add(const std::string& candidate, std::string_view begins, std::string_view description) {
    if (!candidate.starts_with(begins)) return;
    found_.candidates.push_back({.name = candidate, .description = std::string(description)});
  }

  void add_subcommands(const std::string& word) {
    for (const CLI::App* const one : command_->get_subcommands({}))
      add(one->get_name(), word, one->get_description());
  }

  void add_flags(const std::string& word) {
    // With as many dashes as the user has typed: one or two.
    const bool is_go = word.size() > 1 && !word.starts_with("--");
    for (const CLI::Option* const option : command_->get_options()) {
      if (option->get_positional()) continue;
      std::string name = flag_name(*option);
      const bool is_long = name.starts_with("--");
      if (is_go && is_long) name.erase(0, 1);
      add(name, word, option->get_description());
    }
  }

  void add_values(const CLI::Option& option, const std::string& word, const std::string& before) {
    found_.paths = paths_of(option);
    for (const std::string& choice : choices_of(option))
      add(before + choice, before + word, "");
    found_.names = names_of(option, found_.command);
    found_.before_names = before;
  }

  const CLI::App* command_;
  const CLI::Option* open_ = nullptr;  // A flag whose value comes next.
  bool only_positionals_ = false;
  Completion found_;
};

std::string word_for(Paths paths) {
  switch (paths) {
    case Paths::Files:
      return "files";
    case Paths::Directories:
      return "directories";
    case Paths::None:
      break;
  }
  return "none";
}

std::string first_of(const Completion& completion, std::initializer_list<const char*> flags) {
  for (const char* const flag : flags) {
    const auto found = completion.flags.find(flag);
    if (found != completion.flags.end()) return found->second;
  }
  return {};
}

// Names from the cluster; none if the cluster does not answer.
std::vector<KnownName> names_for(const Completion& completion) {
  host::Config config;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts.
  const auto lookup = [](const char* name) { return std::getenv(name); };
  if (!host::apply_environment(config, lookup)) return {};
  config.log_level = LogLevel::Error;
  if (std::string given = first_of(completion, {"--kubeconfig"}); !given.empty()) {
    config.kubeconfig = std::move(given);
  }
  // In yoke's commands `--context` is a number of lines.
  const bool is_yokes = completion.flags.contains("--kube-context") ||
                        *completion.names == NameKind::Releases ||
                        *completion.names == NameKind::Revisions;
  if (std::string given =
          is_yokes ? first_of(completion, {"--kube-context"}) : first_of(completion, {"--context"});
      !given.empty()) {
    config.context = std::move(given);
  }
  commands::NamesQuestion question{
      .kind = *completion.names,
      .namespace_ = first_of(completion, {"--namespace", "-n"}),
      .is_in_every_namespace = completion.command == "blackbox",
      .release = completion.positionals.empty() ? std::string() : completion.positionals.front()};
  if (completion.command == "unlatch" && question.namespace_.empty()) {
    question.namespace_ = "default";
  }
  const std::unique_ptr<LogSink> sink = host::make_log_sink(config);
  Result<std::vector<KnownName>> names =
      commands::known_names(config, question, Log(*sink, "completion"));
  return names ? *std::move(names) : std::vector<KnownName>();
}

constexpr std::string_view kBash =
    R"sh(# bash completion of @PROGRAM@. To load it: source <(@PROGRAM@ completion bash)
_@PROGRAM@_complete() {
  local program=${COMP_WORDS[0]/#\~/$HOME} current=${COMP_WORDS[COMP_CWORD]} word whole before paths candidate joins=
  local -a words=()
  local at
  # Readline takes words apart at = and :, which belong to flags and URLs.
  for ((at = 1; at <= COMP_CWORD; at++)); do
    word=${COMP_WORDS[at]}
    if [[ ${#words[@]} -gt 0 && ($word == [=:] || -n $joins) ]]; then
      words[${#words[@]} - 1]+=$word
    else
      words+=("$word")
    fi
    [[ $word == [=:] ]] && joins=yes || joins=
  done
  whole=${words[${#words[@]} - 1]}
  [[ $current == [=:] ]] && current=
  before=${whole%"$current"}
  COMPREPLY=()
  {
    IFS= read -r paths
    while IFS=$'\t' read -r candidate _; do
      [[ $candidate == "$whole"* ]] && COMPREPLY+=("${candidate#"$before"}")
    done
  } < <("$program" __complete "${words[@]}" 2>/dev/null)
  case $paths in
    files) compopt -o filenames 2>/dev/null; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current") ;;
    directories) compopt -o filenames 2>/dev/null; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$current") ;;
  esac
}
complete -F _@PROGRAM@_complete @PROGRAM@
)sh";

constexpr std::string_view kZsh = R"sh(#compdef @PROGRAM@
# zsh completion of @PROGRAM@. To load it: source <(@PROGRAM@ completion zsh)
_@PROGRAM@() {
  local -a lines candidates
  local line paths
  lines=("${(@f)$(${(Q)words[1]} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  paths=$lines[1]
  for line in $lines[2,-1]; do
    candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  (( $#candidates )) && _describe -V '@PROGRAM@' candidates
  case $paths in
    files|directories)
      [[ $PREFIX == -*=* ]] && compset -P '*='
      [[ $paths == files ]] && _files || _files -/ ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _@PROGRAM@ "$@"
else
  compdef _@PROGRAM@ @PROGRAM@
fi
)sh";

constexpr std::string_view kFish =
    R"sh(# fish completion of @PROGRAM@. To load it: @PROGRAM@ completion fish | source
function __@PROGRAM@_complete
    set -l tokens (commandline -opc)
    set -l current (commandline -ct)
    test (count $current) -eq 0; and set current ''
    set -l lines (command $tokens[1] __complete $tokens[2..-1] $current 2>/dev/null)
    printf '%s\n' $lines[2..-1]
    switch "$lines[1]"
        case files
            __fish_complete_path $current
        case directories
            __fish_complete_directories $current
    end
end
complete -c @PROGRAM@ -f -a '(__@PROGRAM@_complete)'
)sh";

}  // namespace

Completion complete(const CLI::App& app, std::span<const std::string> words) {
  Line line(app);
  if (words.empty()) return line.complete("");
  for (const std::string& word : words.first(words.size() - 1))
    line.read(word);
  return line.complete(words.back());
}

std::string complete_command(const CLI::App& app, std::span<const std::string> words) {
  Completion completion = complete(app, words);
  if (completion.names) {
    const std::string word = words.empty() ? std::string() : words.back();
    for (KnownName& one : names_for(completion)) {
      one.name.insert(0, completion.before_names);
      if (one.name.starts_with(word)) completion.candidates.push_back(std::move(one));
    }
  }
  std::string answer = word_for(completion.paths) + "\n";
  for (const KnownName& one : completion.candidates)
    answer += fmt::format("{}\t{}\n", one.name, printable(one.description));
  return answer;
}

CompletionCommand::CompletionCommand(CLI::App& app, std::string_view program)
    : program_(program),
      command_(add_command(app, "completion",
                           "print a script for shell completion, which also completes names of "
                           "releases and operators in the cluster")) {
  command_.add_option("SHELL", *shell_, "bash, zsh or fish: source <(hangar completion bash)")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
}

int CompletionCommand::run() const {
  const Result<std::string> script = completion_script(*shell_, program_);
  if (!script) return report(script.error(), kWrongUsage);
  print(*script);
  return kDone;
}

Result<std::string> completion_script(std::string_view shell, std::string_view program) {
  std::string script;
  if (shell == "bash") script = kBash;
  if (shell == "zsh") script = kZsh;
  if (shell == "fish") script = kFish;
  if (script.empty()) return invalid(fmt::format("\"{}\" is not bash, zsh or fish", shell));
  constexpr std::string_view kProgram = "@PROGRAM@";
  for (std::size_t at = script.find(kProgram); at != std::string::npos;
       at = script.find(kProgram, at + program.size())) {
    script.replace(at, kProgram.size(), program);
  }
  return script;
}

}  // namespace hangar::cli
