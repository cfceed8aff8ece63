#include "workflows/drawing.h"

#include "workflows/ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace hangar::workflows {

namespace {

struct Transition {
  std::string label;                 // "EVENT", "after 5000 ms", "[guard] EVENT".
  std::vector<std::string> targets;  // Paths, or ids of what is not in the definition.
};

struct Node {
  std::string name;
  std::string path;  // "parent.child"; empty for the root.
  std::string type;  // "atomic", "compound", "parallel", "final", "history".
  std::string initial;
  bool is_active = false;
  std::vector<std::string> actions;
  std::vector<Transition> transitions;
  std::vector<Node> children;
};

// Control characters would speak to the terminal.
std::string printable(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    result += code < 0x20 || code == 0x7f ? '?' : letter;
  }
  return result;
}

void collect_paths(const json::Value& definition, const std::string& path,
                   std::map<std::string, std::string>& path_of_id) {
  path_of_id.emplace(json::string_at(definition, {"id"}), path);
  const json::Object* const states = json::object_at(definition, {"states"});
  if (states == nullptr) return;
  for (const auto& state : *states) {
    const std::string name = printable(state.key());
    collect_paths(state.value(), path.empty() ? name : path + "." + name, path_of_id);
  }
}

class Reader {
 public:
  Reader(const json::Value& definition, std::string_view value) : active_(active_states(value)) {
    collect_paths(definition, "", path_of_id_);
  }

  [[nodiscard]] Node read(const json::Value& definition, std::string name, std::string path) const {
    Node node{.name = std::move(name),
              .path = std::move(path),
              .type = std::string(json::string_at(definition, {"type"})),
              .initial = printable(json::string_at(definition, {"initial"}))};
    node.is_active = std::ranges::find(active_, node.path) != active_.end();
    if (const json::Array* const actions = json::array_at(definition, {"meta", "actions"})) {
      for (const json::Value& action : *actions)
        node.actions.push_back(printable(type_of(action)));
    }
    read_transitions(definition, node);
    if (const json::Object* const states = json::object_at(definition, {"states"})) {
      for (const auto& state : *states) {
        std::string child = printable(state.key());
        std::string below = node.path.empty() ? child : node.path + "." + child;
        node.children.push_back(read(state.value(), std::move(child), std::move(below)));
      }
    }
    return node;
  }

 private:
  void read_transitions(const json::Value& definition, Node& node) const {
    if (const json::Object* const on = json::object_at(definition, {"on"})) {
      for (const auto& event : *on)
        add_transitions(event.value(), printable(event.key()), node);
    }
    if (const json::Object* const after = json::object_at(definition, {"after"})) {
      for (const auto& delay : *after) {
        const bool is_number = std::ranges::all_of(
            delay.key(), [](unsigned char letter) { return std::isdigit(letter) != 0; });
        add_transitions(delay.value(),
                        fmt::format("after {}{}", printable(delay.key()), is_number ? " ms" : ""),
                        node);
      }
    }
    if (const json::Value* const always = json::find(definition, {"always"})) {
      add_transitions(*always, "always", node);
    }
  }

  void add_transitions(const json::Value& transitions, const std::string& label, Node& node) const {
    if (!transitions.is_array()) return;
    for (const json::Value& one : transitions.get_array()) {
      Transition transition{.label = label, .targets = {}};
      const std::string_view guard = json::string_at(one, {"guard"});
      if (!guard.empty()) transition.label += fmt::format(" [{}]", printable(guard));
      if (const json::Array* const targets = json::array_at(one, {"target"})) {
        for (const json::Value& target : *targets) {
          if (target.is_string())
            transition.targets.push_back(target_of(target.get_string(), node));
        }
      }
      node.transitions.push_back(std::move(transition));
    }
  }

  // "#machine.a.b", or the name of a sibling.
  [[nodiscard]] std::string target_of(std::string_view target, const Node& from) const {
    if (target.starts_with('#')) {
      const auto found = path_of_id_.find(std::string(target.substr(1)));
      return found == path_of_id_.end() ? printable(target) : found->second;
    }
    const std::size_t dot = from.path.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : from.path.substr(0, dot + 1);
    return parent + printable(target);
  }

  std::vector<std::string> active_;
  std::map<std::string, std::string> path_of_id_;
};

Node read_root(const json::Value& definition, std::string_view value) {
  std::string name = printable(json::string_at(definition, {"id"}));
  if (name.empty()) name = "machine";
  return Reader(definition, value).read(definition, std::move(name), "");
}

void draw_node(const Node& node, const std::string& indent, std::string& text) {
  for (const Transition& transition : node.transitions) {
    fmt::format_to(std::back_inserter(text), "{}{}{} -> {}\n", indent,
                   node.children.empty() ? "    " : "│   ", transition.label,
                   transition.targets.empty()
                       ? "(stays)"
                       : fmt::format("{}", fmt::join(transition.targets, ", ")));
  }
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const Node& child = node.children[i];
    const bool is_last = i + 1 == node.children.size();
    std::string notes;
    if (child.type != "atomic" && child.type != "compound" && !child.type.empty()) {
      notes += fmt::format(" ({})", printable(child.type));
    }
    if (child.name == node.initial) notes += " (initial)";
    if (!child.actions.empty())
      notes += fmt::format(" asks for {}", fmt::join(child.actions, ", "));
    fmt::format_to(std::back_inserter(text), "{}{} {}{}{}\n", indent, is_last ? "└─" : "├─",
                   child.is_active ? "● " : "", child.name, notes);
    draw_node(child, indent + (is_last ? "   " : "│  "), text);
  }
}

// Mermaid's ids are words: states are numbered, their names are labels.
class Mermaid {
 public:
  explicit Mermaid(const Node& root) {
    number(root);
    text_ = "stateDiagram-v2\n";
    draw_states(root, "  ");
    draw_arrows(root);
    text_ += "  classDef active fill:#2f6fed,color:#fff\n";
    for (const std::string& id : active_)
      text_ += fmt::format("  class {} active\n", id);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void number(const Node& node) {
    if (!node.path.empty()) ids_.emplace(node.path, fmt::format("s{}", ids_.size() + 1));
    for (const Node& child : node.children)
      number(child);
  }

  // Within a label, what would end it is spelt out.
  static std::string label(std::string_view text) {
    std::string result;
    for (const char letter : text) {
      if (letter == '"' || letter == ':' || letter == ';' || letter == '#' || letter == '<' ||
          letter == '>' || letter == '{' || letter == '}') {
        result += fmt::format("#{};", static_cast<int>(letter));
      } else {
        result += letter;
      }
    }
    return result;
  }

  void draw_states(const Node& node, const std::string& indent) {
    for (const Node& child : node.children) {
      const std::string& id = ids_.at(child.path);
      text_ += fmt::format("{}state \"{}\" as {}\n", indent, label(child.name), id);
      if (!child.children.empty()) {
        text_ += fmt::format("{}state {} {{\n", indent, id);
        draw_states(child, indent + "  ");
        text_ += indent + "}\n";
      }
      // Active states are marked where they are smallest.
      const bool has_active_child =
          std::ranges::any_of(child.children, [](const Node& one) { return one.is_active; });
      if (child.is_active && !has_active_child) active_.push_back(id);
      if (node.type == "parallel" && &child != &node.children.back()) text_ += indent + "--\n";
      if (child.name == node.initial) text_ += fmt::format("{}[*] --> {}\n", indent, id);
      if (child.type == "final") text_ += fmt::format("{}{} --> [*]\n", indent, id);
    }
  }

  void draw_arrows(const Node& node) {
    for (const Transition& transition : node.transitions) {
      for (const std::string& target : transition.targets) {
        const auto from = ids_.find(node.path);
        const auto to = ids_.find(target);
        if (from == ids_.end() || to == ids_.end()) continue;
        text_ +=
            fmt::format("  {} --> {} : {}\n", from->second, to->second, label(transition.label));
      }
    }
    for (const Node& child : node.children)
      draw_arrows(child);
  }

  std::map<std::string, std::string> ids_;  // By path.
  std::vector<std::string> active_;
  std::string text_;
};

}  // namespace

std::string draw_tree(const json::Value& definition, std::string_view value) {
  const Node root = read_root(definition, value);
  std::string text = root.name + "\n";
  draw_node(root, "", text);
  return text;
}

std::string draw_mermaid(const json::Value& definition, std::string_view value) {
  return Mermaid(read_root(definition, value)).take();
}

}  // namespace hangar::workflows
