#include "abi/statemachine/diagram.h"

#include "base/result.h"
#include "base/utf8.h"
#include "json/value.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::statemachine {

namespace {

// The bound of one name.
constexpr std::size_t kNameBytesMax = 80;

// Removes characters that end a line, move a cursor, or have a meaning in Mermaid.
std::string plain(std::string_view text) {
  std::string result;
  text = text.substr(0, valid_utf8_prefix(text.substr(0, kNameBytesMax)));
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_special = byte < ' ' || byte == 0x7F || letter == '"' || letter == ';' ||
                            letter == '#' || letter == '{' || letter == '}' || letter == '<' ||
                            letter == '>';
    // Control characters beyond ASCII.
    if (byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0) {
      ++at;
      continue;
    }
    result += is_special ? ' ' : letter;
  }
  return result;
}

// In Mermaid a colon separates a label from what it belongs to.
std::string label(std::string_view text) {
  std::string result = plain(text);
  for (char& letter : result)
    if (letter == ':') letter = ' ';
  return result;
}

struct Transition {
  std::string event;   // For people: "after 60000 ms", "always".
  std::string target;  // The id of a node, without '#'; empty when the transition stays.
  std::string guard;
};

struct Node {
  std::string key;
  std::string id;
  std::string type;
  std::string initial;
  std::string history;
  std::string parent;  // The id of the parent.
  bool is_active = false;
  std::vector<std::string> actions;
  std::vector<std::string> invoked;  // Ids of invoked machines.
  std::vector<Transition> transitions;
  std::vector<Node> children;
};

void read_transitions(const json::Value& list, const std::string& event, Node& node) {
  const json::Array* const transitions = list.if_array();
  if (transitions == nullptr) return;
  for (const json::Value& transition : *transitions) {
    Transition read{.event = event, .guard = plain(json::string_at(transition, {"guard"}))};
    const json::Array* const targets = json::array_at(transition, {"target"});
    if (targets == nullptr || targets->empty()) {
      node.transitions.push_back(std::move(read));
      continue;
    }
    for (const json::Value& target : *targets) {
      if (!target.is_string()) continue;
      const std::string_view id = target.get_string();
      read.target = id.substr(id.starts_with('#') ? 1 : 0);
      node.transitions.push_back(read);
    }
  }
}

// The part of the value that belongs to the child `key`, if the child is active.
struct ActiveChild {
  bool is_active = false;
  const json::Value* value = nullptr;  // Null: no value below it.
};
ActiveChild active_child(const json::Value* value, std::string_view key) {
  if (value == nullptr) return {};
  if (value->is_string()) return {.is_active = value->get_string() == key};
  const json::Value* const below =
      value->is_object() ? value->get_object().if_contains(key) : nullptr;
  return {.is_active = below != nullptr, .value = below};
}

Node read_node(const json::Value& definition, std::string key, const std::string& parent,
               ActiveChild active) {
  Node node{.key = plain(key),
            .id = std::string(json::string_at(definition, {"id"})),
            .type = std::string(json::string_at(definition, {"type"})),
            .initial = std::string(json::string_at(definition, {"initial"})),
            .history = std::string(json::string_at(definition, {"history"})),
            .parent = parent,
            .is_active = active.is_active};
  if (const json::Array* const actions = json::array_at(definition, {"meta", "actions"})) {
    for (const json::Value& action : *actions)
      node.actions.push_back(plain(json::string_at(action, {"type"})));
  }
  if (const json::Array* const invoked = json::array_at(definition, {"invoke"})) {
    for (const json::Value& machine : *invoked)
      node.invoked.push_back(plain(json::string_at(machine, {"id"})));
  }
  if (const json::Object* const on = json::object_at(definition, {"on"})) {
    for (const auto& entry : *on)
      read_transitions(entry.value(), plain(entry.key()), node);
  }
  if (const json::Object* const after = json::object_at(definition, {"after"})) {
    for (const auto& entry : *after) {
      const bool is_number =
          std::string_view(entry.key()).find_first_not_of("0123456789") == std::string_view::npos;
      read_transitions(entry.value(),
                       fmt::format("after {}{}", plain(entry.key()), is_number ? " ms" : ""), node);
    }
  }
  if (const json::Value* const always = json::find(definition, {"always"})) {
    read_transitions(*always, "always", node);
  }
  if (const json::Object* const states = json::object_at(definition, {"states"})) {
    for (const auto& entry : *states) {
      node.children.push_back(read_node(entry.value(), std::string(entry.key()), node.id,
                                        active_child(active.value, entry.key())));
    }
  }
  return node;
}

Result<Node> read_machine(std::string_view definition, std::string_view value) {
  const json::Value parsed = HANGAR_TRY(json::parse(definition));
  if (!parsed.is_object()) return fail(ErrorKind::InvalidInput, "the definition is not an object");
  json::Value at;
  if (!value.empty()) at = HANGAR_TRY(json::parse(value));
  return read_node(parsed, std::string(json::string_at(parsed, {"id"})), "",
                   {.is_active = !value.empty(), .value = value.empty() ? nullptr : &at});
}

class Mermaid {
 public:
  std::string draw(const Node& root) {
    name(root);
    text_ = "stateDiagram-v2\n";
    inside(root, 1);
    if (!active_.empty()) {
      text_ += "  classDef active font-weight:bold,stroke-width:3px\n";
      for (const std::string& id : active_)
        text_ += fmt::format("  class {} active\n", id);
    }
    return std::move(text_);
  }

 private:
  // Gives each node, by id, a short name that clashes with no other.
  void name(const Node& node) {
    std::string short_name = node.key;
    for (char& letter : short_name) {
      const bool is_fine = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                           (letter >= '0' && letter <= '9') || letter == '_';
      if (!is_fine) letter = '_';
    }
    // Clashes with states of the same key, and with words of the notation.
    while (!taken_.emplace(short_name, true).second || short_name == "state" ||
           short_name == "end" || short_name == "class" || short_name == "note")
      short_name += '_';
    names_[node.id] = {.short_name = std::move(short_name), .parent = node.parent};
    for (const Node& child : node.children)
      name(child);
  }

  void line(std::size_t depth, const std::string& text) {
    text_ += std::string(2 * depth, ' ') + text + "\n";
  }

  void inside(const Node& node, std::size_t depth) {
    bool is_first = true;
    for (const Node& child : node.children) {
      if (node.type == "parallel" && !std::exchange(is_first, false)) line(depth, "--");
      declare(child, depth);
      if (node.type != "parallel") continue;
      arrows(child, depth, node.id);
    }
    if (node.type == "parallel") return;
    for (const Node& child : node.children) {
      if (child.key == node.initial)
        line(depth, fmt::format("[*] --> {}", names_[child.id].short_name));
    }
    for (const Node& child : node.children)
      arrows(child, depth, node.id);
    if (depth == 1) arrows_between(node);
  }

  void declare(const Node& node, std::size_t depth) {
    const std::string& id = names_[node.id].short_name;
    std::string shown = label(node.key);
    for (const std::string& action : node.actions)
      shown += "\\n" + label(action);
    for (const std::string& machine : node.invoked)
      shown += "\\ninvokes " + label(machine);
    line(depth, fmt::format("state \"{}\" as {}{}", shown, id, node.children.empty() ? "" : " {"));
    if (!node.children.empty()) {
      inside(node, depth + 1);
      line(depth, "}");
    }
    if (node.is_active) active_.push_back(id);
  }

  // Draws the transitions within one level, where Mermaid expects them.
  void arrows(const Node& node, std::size_t depth, const std::string& level) {
    for (const Transition& transition : node.transitions) {
      const auto target = names_.find(transition.target);
      if (target != names_.end() && target->second.parent == level) {
        arrow(depth, names_[node.id].short_name, target->second.short_name, transition);
      }
    }
    if (node.type == "final") line(depth, fmt::format("{} --> [*]", names_[node.id].short_name));
  }

  // Draws the transitions between levels, for the whole machine.
  void arrows_between(const Node& node) {
    for (const Transition& transition : node.transitions) {
      const auto target = names_.find(transition.target);
      if (target == names_.end() || target->second.parent == node.parent) continue;
      if (node.parent.empty()) continue;  // A transition of the machine itself: from every state.
      arrow(1, names_[node.id].short_name, target->second.short_name, transition);
    }
    for (const Node& child : node.children)
      arrows_between(child);
  }

  void arrow(std::size_t depth, const std::string& from, const std::string& to,
             const Transition& transition) {
    const std::string guard =
        transition.guard.empty() ? "" : fmt::format(" [{}]", label(transition.guard));
    line(depth, fmt::format("{} --> {} : {}{}", from, to, label(transition.event), guard));
  }

  struct Name {
    std::string short_name;
    std::string parent;
  };
  std::map<std::string, Name> names_;
  std::map<std::string, bool> taken_;
  std::vector<std::string> active_;
  std::string text_;
};

void draw_node(const Node& node, std::size_t depth, std::string_view note, std::string& text) {
  const std::string indent(4 * depth, ' ');
  std::string about(note);
  const auto add = [&about](std::string_view more) {
    about += fmt::format("{}{}", about.empty() ? "" : ", ", more);
  };
  if (node.type == "final" || node.type == "parallel") add(node.type);
  if (!node.history.empty()) add(node.history + " history");
  if (!node.actions.empty()) add(fmt::format("asks for {}", fmt::join(node.actions, ", ")));
  if (!node.invoked.empty()) add(fmt::format("invokes {}", fmt::join(node.invoked, ", ")));
  text += fmt::format("{}{} {}{}\n", indent, node.is_active ? '>' : ' ', node.key,
                      about.empty() ? "" : fmt::format("  ({})", about));
  const std::string prefix = node.id.substr(0, node.id.find('.') + 1);
  for (const Transition& transition : node.transitions) {
    // Ids begin with the id of the machine.
    std::string_view target = transition.target;
    if (!prefix.empty() && target.starts_with(prefix)) target.remove_prefix(prefix.size());
    text += fmt::format("{}      {} -> {}{}\n", indent, transition.event,
                        target.empty() ? "stays" : plain(target),
                        transition.guard.empty() ? "" : fmt::format(" if {}", transition.guard));
  }
  for (const Node& child : node.children)
    draw_node(child, depth + 1, child.key == node.initial ? "initial" : "", text);
}

}  // namespace

Result<std::string> draw_mermaid(std::string_view definition, std::string_view value) {
  return Mermaid().draw(HANGAR_TRY(read_machine(definition, value)));
}

Result<std::string> draw_tree(std::string_view definition, std::string_view value) {
  std::string text;
  draw_node(HANGAR_TRY(read_machine(definition, value)), 0, "", text);
  return text;
}

}  // namespace hangar::abi::statemachine
