#include "node_install/config_edit.h"

#include "base/result.h"
#include "node_install/outcome.h"
#include "node_install/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::node_install {

namespace {

constexpr std::string_view kCriVersion1 = "cri";
constexpr std::string_view kCriVersion2 = "io.containerd.grpc.v1.cri";
constexpr std::int64_t kConfigVersionMax = 4;

// A line that starts like this is a marker. The rest of the line has words for people, and notes
// that the removal of the part needs.
constexpr std::string_view kBegin = "# hangar-node: begin";
constexpr std::string_view kEnd = "# hangar-node: end";
constexpr std::string_view kAdvice = " (do not edit; `hangar-node uninstall` takes it out again)";
constexpr std::string_view kCreated = " [created this file]";
constexpr std::string_view kAddedNewline = " [ended the line before]";

struct Part {
  std::size_t begin = 0;       // Start of the line of the first marker.
  std::size_t body_begin = 0;  // After that line.
  std::size_t body_end = 0;    // The line of the second marker.
  std::size_t end = 0;         // After that line.
  std::string_view notes;      // The rest of the first marker's line.
};

std::unexpected<Error> damaged(std::string_view what) {
  return refuse(ErrorKind::InvalidInput, reason::kConfigInvalid,
                fmt::format("{}: remove hangar-node's section, with its markers, by hand", what));
}

Result<std::optional<Part>> find_part(std::string_view text) {
  std::optional<Part> part;
  bool is_closed = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    const std::size_t next = newline == std::string_view::npos ? text.size() : newline + 1;
    const std::string_view line = text.substr(at, next - at);
    if (line.starts_with(kBegin)) {
      if (part) return damaged("there are two begin markers");
      part = Part{.begin = at, .body_begin = next, .notes = line.substr(kBegin.size())};
    } else if (line.starts_with(kEnd)) {
      if (!part || is_closed) return damaged("there is an end marker without a begin marker");
      part->body_end = at;
      part->end = next;
      is_closed = true;
    }
    at = next;
  }
  if (part && !is_closed) return damaged("there is a begin marker without an end marker");
  return part;
}

std::string without(std::string_view text, const Part& part) {
  std::string_view head = text.substr(0, part.begin);
  const std::string_view tail = text.substr(part.end);
  // Only at the end of the file: lines that others have added since need the newline before them.
  if (tail.empty() && part.notes.contains(kAddedNewline)) {
    if (head.ends_with('\n')) head.remove_suffix(1);
    // An editor that changed all line endings changed this one too; any other \r was there before.
    if (part.notes.ends_with("\r\n") && head.ends_with('\r')) head.remove_suffix(1);
  }
  return std::string(head) + std::string(tail);
}

Result<std::optional<Toml>> read_as(Dialect dialect, std::string_view text) {
  Result<Toml> parsed = Toml::parse(text);
  if (parsed) return std::optional(*std::move(parsed));
  if (dialect == Dialect::GoTemplate) return std::optional<Toml>();
  return std::unexpected(std::move(parsed).error());
}

// Whether `sum` has the values of `left` and those of `right`, and no others.
bool is_sum(const Toml& sum, const Toml& left, const Toml& right) {
  if (sum.leaves().size() != left.leaves().size() + right.leaves().size()) return false;
  for (const Toml* part : {&left, &right}) {
    for (const auto& [path, value] : part->leaves()) {
      const auto found = sum.leaves().find(path);
      if (found == sum.leaves().end() || found->second != value) return false;
    }
  }
  return true;
}

std::string quoted_for(std::string_view plugin) {
  if (plugin == kCriVersion1) return std::string(plugin);
  return fmt::format("\"{}\"", plugin);
}

}  // namespace

Result<std::string> plugin_of(std::int64_t config_version,
                              const std::vector<std::string>& existing) {
  if (config_version < 0 || config_version > kConfigVersionMax) {
    return refuse(ErrorKind::InvalidInput, reason::kConfigInvalid,
                  fmt::format("version = {} is unknown to this hangar-node (it knows up to {})",
                              config_version, kConfigVersionMax));
  }
  if (config_version >= 3) return std::string(kCriVersion3);
  if (config_version == 2) return std::string(kCriVersion2);
  // Without a version both containerd 1.x and 2.x accept only short names.
  for (const std::string_view longer : {kCriVersion2, kCriVersion3})
    if (std::ranges::find(existing, longer) != existing.end()) return std::string(longer);
  return std::string(kCriVersion1);
}

std::string render_handlers(std::string_view plugin, const std::vector<Handler>& handlers,
                            bool systemd_cgroup, Runc runc) {
  std::string body;
  if (runc == Runc::HasToBeNamed) {
    body += fmt::format(
        "[plugins.{}.containerd.runtimes.runc]\n  runtime_type = \"io.containerd.runc.v2\"\n",
        quoted_for(plugin));
  }
  for (const Handler& handler : handlers) {
    const std::string table =
        fmt::format("plugins.{}.containerd.runtimes.{}", quoted_for(plugin), handler.name);
    const bool is_oci = handler.kind == Handler::Kind::Oci;
    body += fmt::format("[{}]\n  runtime_type = \"{}\"\n", table,
                        is_oci ? "io.containerd.runc.v2" : handler.program);
    // The annotations by which crun tells a Wasm container from others.
    if (is_oci) {
      body +=
          "  pod_annotations = [\"run.oci.handler\", \"module.wasm.image/*\", \"*.wasm.*\"]\n"
          "  container_annotations = [\"run.oci.handler\", \"module.wasm.image/*\", "
          "\"*.wasm.*\"]\n";
    }
    if (!is_oci && !systemd_cgroup) continue;
    body += fmt::format("  [{}.options]\n", table);
    if (is_oci) body += fmt::format("    BinaryName = \"{}\"\n", handler.program);
    if (systemd_cgroup) body += "    SystemdCgroup = true\n";
  }
  return body;
}

Result<std::string> put_part(std::optional<std::string_view> before, std::string_view prologue,
                             std::string_view body, Dialect dialect) {
  const std::string_view text = before.value_or(prologue);
  const std::optional<Part> part = HANGAR_TRY(find_part(text));
  std::string result;
  if (part) {
    result = std::string(text.substr(0, part->body_begin)) + std::string(body) +
             std::string(text.substr(part->body_end));
  } else {
    const bool ends_line = text.empty() || text.ends_with('\n');
    result = fmt::format("{}{}{}{}{}{}\n{}{}\n", text, ends_line ? "" : "\n", kBegin, kAdvice,
                         before ? "" : kCreated, ends_line ? "" : kAddedNewline, body, kEnd);
  }

  const std::string rest = part ? without(text, *part) : std::string(text);
  const std::optional<Toml> others = HANGAR_TRY(read_as(dialect, rest));
  const Toml ours = HANGAR_TRY(Toml::parse(body));
  if (!others) return result;
  const Result<Toml> sum = Toml::parse(result);
  if (!sum || !is_sum(*sum, *others, ours)) {
    return refuse(ErrorKind::InvalidInput, reason::kConfigConflict,
                  fmt::format("the runtime handlers conflict with the existing configuration{}",
                              sum ? "" : ": " + sum.error().message()));
  }
  return result;
}

Result<std::string> text_of_others(std::string_view text, Dialect dialect) {
  const std::optional<Part> part = HANGAR_TRY(find_part(text));
  if (!part) return std::string(text);
  std::string rest = without(text, *part);
  const std::optional<Toml> whole = HANGAR_TRY(read_as(dialect, text));
  if (whole) {
    const std::string_view body = text.substr(part->body_begin, part->body_end - part->body_begin);
    const Result<Toml> ours = Toml::parse(body);
    const Result<Toml> others = Toml::parse(rest);
    // The newline that put_part() added can turn a template into TOML that was not TOML before.
    const bool is_checked = others || dialect == Dialect::Toml;
    if (is_checked && (!ours || !others || !is_sum(*whole, *others, *ours))) {
      return refuse(
          ErrorKind::InvalidInput, reason::kConfigConflict,
          "lines of others are inside a table that hangar-node added: move them to another table");
    }
  }
  return rest;
}

Result<std::optional<std::string>> take_part(std::string_view text, Dialect dialect) {
  const std::optional<Part> part = HANGAR_TRY(find_part(text));
  std::string rest = HANGAR_TRY(text_of_others(text, dialect));
  const bool is_prologue = rest == kVersion2 || rest == kVersion3 || rest == kBaseTemplate;
  if (part && part->notes.contains(kCreated) && is_prologue) return std::optional<std::string>();
  return std::optional(std::move(rest));
}

Result<std::optional<std::string>> read_part(std::string_view text) {
  const std::optional<Part> part = HANGAR_TRY(find_part(text));
  if (!part) return std::optional<std::string>();
  return std::optional(
      std::string(text.substr(part->body_begin, part->body_end - part->body_begin)));
}

}  // namespace hangar::node_install
