// Reads through the gateway and the same reads without it, for requests that nobody thought of.
//
// Paths come from the grammar of the API server's RequestInfo, with what may go wrong in them;
// rights, objects, selectors and options are drawn at random. Whatever a guest is shown, and
// whatever it is refused, is what the API server says to the same identity. Nothing changes
// meanwhile, so both may be asked at the same time.
//
// HANGAR_TEST_SEED repeats a run, HANGAR_TEST_CASES says how many requests it makes.
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/documents.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "guest.h"
#include "http/client.h"
#include "io/task.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "testing/control_plane.h"
#include "testing/own_control_plane.h"
#include "testing/session.h"
#include "testing/wait.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

using kube::Identity;
using testing::Session;

constexpr std::uint64_t kCases = 4000;
// Requests that are under way at once: each is one to the gateway and one to the API server.
constexpr std::size_t kAtOnce = 200;
constexpr int kAccounts = 24;

struct Kind {
  std::string group;
  std::string plural;
  std::string kind;
  bool namespaced = true;
  std::vector<std::string> names;

  [[nodiscard]] std::string prefix() const {
    return group.empty() ? "/api/v1" : "/apis/" + group + "/v1";
  }
};

// Words of the grammar are names of namespaces, objects and resources too: who takes one for the
// other answers the wrong question.
const std::vector<std::string> kNamespaces = {"red", "blue", "namespaces", "status", "watch"};
const std::vector<std::string> kNames = {"a", "b", "status", "namespaces", "red", "watch"};
const std::vector<Kind> kKinds = {
    {"", "configmaps", "ConfigMap", true, kNames},
    {"", "secrets", "Secret", true, kNames},
    {"", "namespaces", "Namespace", false, kNamespaces},
    {"", "nodes", "Node", false, kNames},
    {"rbac.authorization.k8s.io", "clusterroles", "ClusterRole", false, {"cluster-admin", "view"}},
    {"reads.example.com", "rings", "Ring", true, kNames},
    {"reads.example.com", "crowns", "Crown", false, kNames},
    {"reads.example.com", "namespaces", "Realm", false, kNames},
    {"reads.example.com", "watch", "Watch", true, kNames},
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  // In so many of a hundred cases.
  bool chance(unsigned percent) { return random_() % 100 < percent; }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  std::mt19937_64 random_;
};

std::string definition(const Kind& kind) {
  return fmt::format(R"(---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {0}.reads.example.com}}
spec:
  group: reads.example.com
  scope: {2}
  names: {{plural: {0}, singular: {3}, kind: {1}}}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{{jsonPath: .spec.color}}]
    subresources: {{status: {{}}}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object, properties: {{color: {{type: string}}}}}}
          status: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
)",
                     kind.plural, kind.kind, kind.namespaced ? "Namespaced" : "Cluster",
                     "one" + kind.plural);
}

std::string object_of(const Kind& kind, const std::string& namespace_, const std::string& name,
                      Dice& dice) {
  std::string labels;
  if (dice.chance(60)) labels += fmt::format(R"("app": "{}", )", dice.chance(50) ? "x" : "y");
  if (dice.chance(30)) labels += fmt::format(R"("example.com/n": "{}", )", dice.below(4));
  if (dice.chance(20)) labels += R"("empty": "", )";
  std::string rest;
  if (kind.plural == "configmaps") rest = R"(data: {"labels": "{\"app\":\"x\"}"})";
  if (kind.plural == "secrets") rest = dice.chance(50) ? "type: Opaque" : "type: example.com/b";
  if (kind.group == "reads.example.com") {
    rest = fmt::format("spec: {{color: {}}}", dice.chance(50) ? "red" : "blue");
  }
  return fmt::format(
      "---\napiVersion: {}\nkind: {}\nmetadata: {{name: \"{}\"{}, labels: {{{}}}}}\n{}\n",
      kind.group.empty() ? "v1" : kind.group + "/v1", kind.kind, name,
      namespace_.empty() ? "" : fmt::format(", namespace: \"{}\"", namespace_), labels, rest);
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "\"" : ", \"") + word + "\"";
  return "[" + out + "]";
}

// Rights to read, and to write what does not exist: what is sent with other verbs must not change
// anything.
std::string rules(Dice& dice) {
  std::string out;
  if (dice.chance(50)) {
    out += R"(- {apiGroups: ["*"], resources: ["*"], verbs: [update, patch, delete], )"
           R"(resourceNames: [none]})"
           "\n";
  }
  const std::size_t count = 1 + dice.below(2);
  for (std::size_t index = 0; index < count; ++index) {
    const Kind& kind = dice.pick(kKinds);
    std::vector<std::string> resources = {kind.plural};
    if (dice.chance(20)) resources.push_back(kind.plural + "/status");
    if (dice.chance(50)) resources = {"*"};
    std::vector<std::string> verbs;
    for (const char* verb : {"get", "list", "watch"})
      if (dice.chance(70)) verbs.emplace_back(verb);
    if (verbs.empty()) verbs.emplace_back("list");
    out += fmt::format("- {{apiGroups: {}, resources: {}, verbs: {}",
                       quoted_list({dice.chance(60) ? "*" : kind.group}), quoted_list(resources),
                       quoted_list(verbs));
    if (dice.chance(15)) {
      out += ", resourceNames: " + quoted_list({dice.pick(kind.names), dice.pick(kNamespaces)});
    }
    out += "}\n";
  }
  return out;
}

// A right, and the account that has it.
std::string grant(const std::string& name, int account, Dice& dice) {
  const bool is_for_all = dice.chance(30);
  const std::string place =
      is_for_all ? "" : fmt::format(", namespace: {}", dice.pick(kNamespaces));
  const std::string role = is_for_all ? "ClusterRole" : "Role";
  return fmt::format(R"(---
apiVersion: rbac.authorization.k8s.io/v1
kind: {0}
metadata: {{name: {1}{2}}}
rules:
{3}---
apiVersion: rbac.authorization.k8s.io/v1
kind: {0}Binding
metadata: {{name: {1}{2}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {0}, name: {1}}}
subjects: [{{kind: ServiceAccount, name: guest-{4}, namespace: red}}]
)",
                     role, name, place, rules(dice), account);
}

struct Case {
  Identity identity;
  std::string method = "GET";
  std::string target;
  std::string accept = "application/json";
  std::string body;

  // The status with which the gateway refuses without asking anybody, if it does: 400 for what two
  // readers could read differently, 406 for a watch that is not to be lines of JSON.
  [[nodiscard]] std::optional<int> refused_with() const {
    const auto read = parse_target(method, target);
    if (!read) return 400;
    const bool is_lines =
        read->verb != Verb::Watch || !read_accept(accept, read->verb).json_only.empty();
    return is_lines ? std::nullopt : std::optional(406);
  }
  // What the server itself is asked for. A watch is always to be lines of JSON.
  [[nodiscard]] std::string direct_accept() const {
    const auto read = parse_target(method, target);
    return read && read->verb == Verb::Watch ? read_accept(accept, read->verb).json_only : accept;
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} {} ({}) as {}: {}", method, target, accept, identity.user, body);
  }
  // The same, of a watch with ten seconds in place of one.
  [[nodiscard]] Case with_patience() const {
    constexpr std::string_view kOneSecond = "timeoutSeconds=1";
    Case out = *this;
    if (const std::size_t at = target.find(kOneSecond); at != std::string::npos) {
      out.target.insert(at + kOneSecond.size(), "0");
    }
    return out;
  }
};

// Writes a segment, sometimes as nobody would.
std::string segment(std::string_view text, Dice& dice) {
  std::string out;
  for (const char character : text) {
    if (dice.chance(1)) {
      out += fmt::format("%{:02x}", static_cast<unsigned char>(character));
    } else {
      out += character;
    }
  }
  if (dice.chance(1)) out += dice.pick<std::string>({"%2F", "%2e%2e", "%", "%00", "+", "%20", ";"});
  return out;
}

std::string path(Dice& dice) {
  if (dice.chance(3)) {
    return dice.pick<std::string>({"/version", "/api", "/apis", "/api/v1", "/apis/", "/healthz",
                                   "/apis/reads.example.com", "/apis/reads.example.com/v1", "/"});
  }
  const Kind& kind = dice.pick(kKinds);
  std::vector<std::string> parts;
  if (dice.chance(5)) parts.emplace_back("watch");
  if (dice.chance(1)) parts.emplace_back("proxy");
  // Also those that are not in a namespace.
  if (dice.chance(65)) {
    parts.emplace_back("namespaces");
    parts.push_back(dice.chance(4) ? "none" : dice.pick(kNamespaces));
  }
  if (dice.chance(92)) parts.push_back(kind.plural);
  if (dice.chance(35)) parts.push_back(dice.chance(8) ? "none" : dice.pick(kind.names));
  if (dice.chance(6)) {
    parts.push_back(dice.pick<std::string>({"status", "finalize", "scale", "log", "proxy"}));
  }
  if (dice.chance(1)) parts.emplace_back("more");
  std::string out = dice.chance(96) ? kind.prefix() : dice.pick(kKinds).prefix();
  if (dice.chance(1)) out = dice.pick<std::string>({"/apis/v1", "/api", "/api/v2", "/APIS/v1"});
  for (const std::string& part : parts)
    out += (dice.chance(1) ? "//" : "/") + segment(part, dice);
  if (dice.chance(3)) out += '/';
  return out;
}

std::string label_selector(Dice& dice) {
  return dice.pick<std::string>({"app",
                                 "!app",
                                 "app=x",
                                 "app==y",
                                 "app!=x",
                                 "app in (x,y)",
                                 "app notin (x)",
                                 "empty=",
                                 "empty",
                                 "empty!=",
                                 "example.com/n>1",
                                 "example.com/n<2",
                                 "example.com/n=3,app",
                                 "app in (x),!empty",
                                 "app=x,app=y",
                                 "none",
                                 "!none",
                                 "app in ()",
                                 " app = x ",
                                 ",",
                                 "app,",
                                 "app=",
                                 "!!app",
                                 "app=x=y",
                                 "app>x",
                                 "app in x",
                                 "_=a",
                                 "app=-x",
                                 "a/b/c",
                                 "app>+1",
                                 "example.com/n>-1",
                                 "app,,empty",
                                 "=x",
                                 "app!x"});
}

std::string field_selector(const std::string& target, Dice& dice) {
  const std::string name = dice.pick(kNames);
  const std::string place = dice.pick(kNamespaces);
  const std::vector<std::string> some = {
      "metadata.name=" + name,
      "metadata.name==" + name,
      "metadata.name!=" + name,
      "metadata.namespace=" + place,
      "metadata.namespace!=" + place,
      "metadata.namespace=" + place + ",metadata.name=" + name,
      "metadata.name=" + name + ",metadata.name=" + dice.pick(kNames),
      "metadata.name=",
      "metadata.namespace=",
      "metadata.name=..",
      "metadata.name=a/b",
      "metadata.name=%",
      "metadata.name=\\,",
      "metadata.name=a\\",
      "metadata.name=a=b",
      "metadata.name",
      "metadata.name =a",
      "metadata.name= a",
      ",",
      "metadata.name=" + name + ",",
      "spec.color=red",
      "spec.color=red,metadata.name=" + name,
      "spec.color!=blue",
      "type=Opaque",
      "status.phase=Active",
      "spec.unschedulable=true",
      "none=a",
      "a!b=c",
  };
  // Some of these make sense for one kind only: more often for that.
  if (dice.chance(30) && target.contains("reads.example.com")) return "spec.color=red";
  if (dice.chance(30) && target.contains("secrets")) return "type=Opaque";
  return dice.pick(some);
}

// `known`: a version of the cluster from before the first request.
std::string query(const std::string& target, const std::string& known, Dice& dice) {
  std::string out;
  const auto add = [&out](std::string_view key, std::string_view value) {
    out += out.empty() ? '?' : '&';
    out += key;
    out += '=';
    for (const char character : value) {
      const auto byte = static_cast<unsigned char>(character);
      const bool is_plain = std::isalnum(byte) != 0 || character == '.' || character == '-';
      out += is_plain ? std::string(1, character) : fmt::format("%{:02X}", byte);
    }
  };
  const bool is_watch = dice.chance(7) || target.contains("/watch/");
  if (is_watch) {
    add("watch", dice.pick<std::string>({"true", "1", "TRUE", "", "yes"}));
  } else if (dice.chance(2)) {
    add("watch", dice.pick<std::string>({"false", "0", "False"}));
  }
  add("timeoutSeconds", "1");  // Also where nobody thinks that it is a watch.
  if (dice.chance(70)) {
    add("resourceVersion", "0");
  } else if (dice.chance(60)) {
    add("resourceVersion", is_watch || dice.chance(50)
                               ? known
                               : dice.pick<std::string>({"1", "x", "-1", "00", "", "1.5", "+1"}));
  }
  if (dice.chance(12)) {
    add("resourceVersionMatch",
        dice.pick<std::string>({"NotOlderThan", "NotOlderThan", "Exact", "Latest", ""}));
  }
  if (dice.chance(25)) add("labelSelector", label_selector(dice));
  if (dice.chance(30)) add("fieldSelector", field_selector(target, dice));
  if (dice.chance(8)) {
    add("limit", dice.pick<std::string>({"0", "500", "-1", "x", "", "+500", "1e3"}));
  }
  if (dice.chance(2)) add("continue", dice.pick<std::string>({"x", "", "e30"}));
  if (dice.chance(3)) add("sendInitialEvents", dice.pick<std::string>({"true", "false", ""}));
  if (dice.chance(2)) add("allowWatchBookmarks", "true");
  if (dice.chance(2)) add("resourceVersion", "0");  // The first one counts.
  if (dice.chance(2)) add("pretty", "true");
  if (dice.chance(1)) out += dice.pick<std::string>({"&", "&a;b=c", "&x=%zz", "&=", "&&limit=1"});
  return out;
}

// An Accept header with bare metadata among what it names, as clients write it or as they might.
std::string metadata_accept(const std::string& target, Dice& dice) {
  const auto read = parse_target("GET", target);
  const bool is_list = read && read->verb == Verb::List;
  // Sometimes what the server refuses: one object as a list, or a list as one object.
  const std::string kind =
      is_list != dice.chance(5) ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  const std::string metadata = ";as=" + kind + ";g=meta.k8s.io;v=v1";
  if (dice.chance(25)) {  // client-go
    return "application/vnd.kubernetes.protobuf" + metadata + ",application/json" + metadata +
           ",application/json";
  }
  if (dice.chance(35)) return "application/json" + metadata;
  std::string out;
  const std::size_t count = 1 + dice.below(4);
  for (std::size_t index = 0; index < count; ++index) {
    if (index > 0) out += dice.chance(30) ? ", " : ",";
    out += dice.pick<std::string>({"application/json", "application/json", "application/json",
                                   "application/json", "*/*", "application/vnd.kubernetes.protobuf",
                                   "application/yaml", "text/html", "application/*", "json"});
    if (dice.chance(70)) {
      out += dice.pick<std::string>(
          {metadata, metadata, metadata, metadata, ";v=v1;g=meta.k8s.io;as=" + kind,
           "; as=" + kind + " ; g=meta.k8s.io; v=v1", ";as=Table;g=meta.k8s.io;v=v1",
           ";as=" + kind + ";g=meta.k8s.io;v=v1beta1", ";as=" + kind, ";as=Other;g=a;v=v1",
           metadata + ";charset=utf-8", metadata + ";stream=watch", ";as=Table" + metadata,
           ";AS=" + kind + ";g=meta.k8s.io;v=v1"});
    }
    if (dice.chance(40)) {
      out += dice.pick<std::string>(
          {";q=0.5", ";q=0.1", ";q=1", ";q=0", ";q=0.75", ";q=x", "; q=0.9", ";q=0.5;q=1"});
    }
  }
  return out;
}

// Of what does not exist: the server reads the body of who may write it.
std::string path_of_none(Dice& dice) {
  const Kind& kind = dice.pick(kKinds);
  std::string out = kind.prefix();
  if (kind.namespaced) out += "/namespaces/" + dice.pick(kNamespaces);
  return out + "/" + kind.plural + "/none";
}

// What a body may be, also where it makes no sense or nobody reads it.
std::string body(Dice& dice) {
  return dice.pick<std::string>({
      R"({"kind":"ConfigMap"})",
      // The place of a request is in its path.
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"blue"}})",
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"none"},"metadata":{"name":"b"}})",
      R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})",
      R"({"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"],"orphanDependents":1})",
      R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"x"},"dryRun":["None"]})",
      R"([{"op":"remove","path":"/metadata/finalizers"}])",
      R"({"kind":"ConfigMap",)",
      "kind: ConfigMap\nmetadata: {name: a}\n",
      "null",
      "\xff\xfe",
      std::string("k8s\0\x0a\x01", 6),
  });
}

Case draw(const std::string& known, Dice& dice, bool is_of_metadata) {
  Case out;
  const int account = static_cast<int>(dice.below(kAccounts));
  out.identity = kube::service_account("red", fmt::format("guest-{}", account));
  if (dice.chance(12)) {
    out.method = dice.pick<std::string>({"HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"});
    if (out.method != "HEAD" && dice.chance(70)) out.body = body(dice);
  }
  out.target = !out.body.empty() && dice.chance(50) ? path_of_none(dice) : path(dice);
  out.target += query(out.target, known, dice);
  if (is_of_metadata) {
    out.accept = metadata_accept(out.target, dice);
  } else if (dice.chance(3)) {
    out.accept = dice.pick<std::string>(
        {"*/*", "application/json;as=Table;v=v1;g=meta.k8s.io",
         "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
         "text/html", "application/yaml", "application/*"});
  }
  return out;
}

// What two answers to one question have in common, whoever gave them.
struct Answered {
  int status = 0;
  std::set<std::string> content;

  bool operator==(const Answered&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Answered& answered) {
  out << answered.status;
  for (const std::string& one : answered.content)
    out << "\n  " << one.substr(0, 400);
  return out;
}

// The members of objects in the order of their names, which no two writers share.
json::Value in_order(const json::Value& value) {
  if (const json::Array* array = value.if_array()) {
    json::Array out;
    for (const json::Value& one : *array)
      out.push_back(in_order(one));
    return out;
  }
  const json::Object* object = value.if_object();
  if (object == nullptr) return value;
  std::map<std::string, json::Value> sorted;
  for (const auto& [name, member] : *object)
    sorted.emplace(name, in_order(member));
  json::Object out;
  for (auto& [name, member] : sorted)
    out.emplace(name, std::move(member));
  return out;
}

// The cache drops managedFields; only custom objects and bare metadata have their kind within a
// list of the server's.
std::string plain(json::Value object) {
  json::erase_at(object, {"metadata", "managedFields"});
  if (object.is_object() && json::string_at(object, {"kind"}) != "PartialObjectMetadata") {
    object.as_object().erase("kind");
    object.as_object().erase("apiVersion");
  }
  return json::dump(in_order(object));
}

// "42s", "3m12s": of a Table's Age. A second may pass between two answers.
bool is_age(std::string_view cell) {
  return !cell.empty() && cell.front() >= '0' && cell.front() <= '9' &&
         std::string_view("smhdy").contains(cell.back()) &&
         cell.find_first_not_of("0123456789smhdy") == std::string_view::npos;
}

// What differs between two Tables of the same objects: when they were made, and the version that
// the collection had. Reads after a write of one's own may be of a later one.
void forget_times(json::Value& table) {
  if (json::string_at(table, {"kind"}) != "Table") return;
  json::erase_at(table, {"metadata", "resourceVersion"});
  json::Value* const rows = json::find(table, {"rows"});
  if (rows == nullptr || !rows->is_array()) return;
  for (json::Value& row : rows->get_array()) {
    json::Value* const cells = json::find(row, {"cells"});
    if (cells == nullptr || !cells->is_array()) continue;
    for (json::Value& cell : cells->get_array()) {
      if (cell.is_string() && is_age(cell.get_string())) cell = "some time";
    }
  }
}

bool is_protobuf(std::string_view body) {
  return body.starts_with(std::string_view("k8s\0", 4));
}

Answered answered(int status, const std::string& body) {
  Answered out{.status = status};
  if (is_protobuf(body)) {  // Which nobody reads here.
    out.content.insert("protobuf");
    return out;
  }
  std::string_view rest = body;
  while (!rest.empty()) {  // A document, or lines of a watch.
    const bool has_lines = body.starts_with(R"({"type":)");
    const std::size_t end = has_lines ? std::min(rest.find('\n'), rest.size()) : rest.size();
    const std::string_view text = rest.substr(0, end);
    auto document = json::parse(text);
    if (!document) document = json::parse_yaml(text);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!document || !document->is_object()) {
      // What could not be read is quoted as it was written, which the gateway does anew.
      if (status != 500) out.content.insert(std::string(text));
    } else if (json::string_at(*document, {"kind"}) == "Status") {
      out.content.insert(fmt::format("{} {}: {}", json::int_at(*document, {"code"}),
                                     json::string_at(*document, {"reason"}),
                                     json::string_at(*document, {"message"})));
    } else if (has_lines) {
      // Where a watch stands is not where another stands.
      if (json::string_at(*document, {"type"}) == "BOOKMARK") continue;
      json::Value* const object = json::find(*document, {"object"});
      if (object != nullptr) forget_times(*object);
      out.content.insert(std::string(json::string_at(*document, {"type"})) + " " +
                         plain(object != nullptr ? *object : json::Value()));
    } else if (const json::Array* items = json::array_at(*document, {"items"})) {
      out.content.insert(fmt::format("{} {}", json::string_at(*document, {"apiVersion"}),
                                     json::string_at(*document, {"kind"})));
      for (const json::Value& item : *items)
        out.content.insert(plain(item));
    } else if (const json::Value* no_items = json::find(*document, {"items"});
               no_items != nullptr && no_items->is_null()) {
      out.content.insert(fmt::format("{} {} of null", json::string_at(*document, {"apiVersion"}),
                                     json::string_at(*document, {"kind"})));
    } else {
      forget_times(*document);
      out.content.insert(plain(*std::move(document)));
    }
  }
  return out;
}

class ReadsTest : public testing::OwnControlPlane<ReadsTest> {
 public:
  static testing::ControlPlaneOptions options() {
    // Nobody but the test changes anything.
    return {.controller_manager = false};
  }

 protected:
  void SetUp() override {
    OwnControlPlane::SetUp();
    if (is_absent()) return;
    session_ = std::make_unique<Session>(own_->kubeconfig());
    // Every object is packed, so that what the gateway answers has been unpacked.
    cache_ = std::make_unique<kube::Cache>(
        session_->loop, session_->client, session_->metrics, Log(),
        kube::Cache::Options{.packing = {.kind_min = 0, .text_min = 0}});
    discovery_ = std::make_unique<kube::Discovery>(session_->client);
    gateway_ = std::make_unique<Gateway>(Gateway::Parts{.loop = session_->loop,
                                                        .client = session_->client,
                                                        .cache = *cache_,
                                                        .discovery = *discovery_,
                                                        .metrics = session_->metrics,
                                                        .log = Log()});
  }
  void TearDown() override {
    if (!session_) return;
    warm_.clear();
    gateway_.reset();
    cache_.reset();
    EXPECT_TRUE(testing::wait_for_end_of_tasks(session_->loop)) << "something does not end";
    discovery_.reset();
    session_.reset();
  }

  static void apply(const std::string& documents) {
    const auto applied = own_->kubectl({"apply", "-f", "-"}, documents);
    ASSERT_TRUE(applied.has_value()) << applied.error().message();
  }

  void make_world(Dice& dice) {
    std::string documents;
    for (const Kind& kind : kKinds)
      if (kind.group == "reads.example.com") documents += definition(kind);
    for (const std::string& namespace_ : kNamespaces)
      documents += object_of(kKinds[2], "", namespace_, dice);
    apply(documents);
    ASSERT_TRUE(
        own_->kubectl({"wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"})
            .has_value());
    documents.clear();
    for (const Kind& kind : kKinds) {
      if (kind.plural == "clusterroles" || kind.kind == "Namespace") continue;
      const std::vector<std::string> places =
          kind.namespaced ? kNamespaces : std::vector<std::string>{""};
      for (const std::string& place : places) {
        if (place == "blue" && dice.chance(40)) continue;  // Nothing of this kind there.
        for (const std::string& name : kind.names)
          if (dice.chance(70)) documents += object_of(kind, place, name, dice);
      }
    }
    // What is known of the last of these is known of all: each kind is read in its order.
    for (int account = 0; account < kAccounts; ++account)
      for (int index = 0; index < 4; ++index)
        documents += grant(fmt::format("right-{}-{}", account, index), account, dice);
    documents += R"(---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: zz-last, namespace: red}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: zz-last, namespace: red}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: zz-last}
subjects: [{kind: ServiceAccount, name: last, namespace: red}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: zz-last}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: zz-last}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: zz-last}
subjects: [{kind: ServiceAccount, name: last, namespace: red}]
)";
    apply(documents);
    const Identity last = kube::service_account("red", "last");
    ASSERT_TRUE(testing::wait(session_->loop, [&] {
      return direct(last, "/api/v1/namespaces/red/configmaps/none") == 404 &&
             direct(last, "/api/v1/namespaces/blue/secrets/none") == 404;
    }));
  }

  int direct(const Identity& identity, const std::string& target) {
    const auto response = session_->run(session_->client.as(identity).send({.target = target}, {}));
    return response ? response->status : 0;
  }

  // Watches of everything, so that what may be answered from the cache is.
  void warm(Dice& dice) {
    for (const Kind& kind : kKinds) {
      // Of some kinds the cache has nothing but metadata.
      const std::string accept =
          dice.chance(30) ? "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
                          : "application/json";
      std::vector<std::string> selectors = {""};
      if (kind.group == "reads.example.com")
        selectors.emplace_back("&fieldSelector=spec.color%3Dred");
      if (kind.plural == "secrets") selectors.emplace_back("&fieldSelector=type%3DOpaque");
      for (const std::string& selector : selectors) {
        warm_.push_back(std::make_unique<Guest>(
            *gateway_, Identity{}, kind.prefix() + "/" + kind.plural + "?watch=true" + selector,
            "GET", std::string(), http::Headers{{"Accept", accept}}));
      }
    }
    ASSERT_TRUE(testing::wait(session_->loop, [&] {
      return std::ranges::all_of(warm_, [](const auto& guest) { return guest->status != 0; });
    }));
  }

  double from_cache() {
    double sum = 0;
    for (const Metrics::Family& family : session_->metrics.collect()) {
      if (family.name != "hangar_gateway_requests_total") continue;
      for (const Metrics::Sample& sample : family.samples) {
        const auto has = [&sample](const char* label, const char* value) {
          return std::ranges::any_of(sample.labels, [&](const auto& one) {
            return one.first == label && one.second == value;
          });
        };
        if (has("source", "cache") && has("code", "200")) sum += sample.value;
      }
    }
    return sum;
  }

  // The gateway may answer with JSON where the server prefers protobuf: then the server is asked
  // for JSON too.
  void in_json_if_the_gateway_is(const std::vector<Case>& cases,
                                 const std::vector<std::unique_ptr<Guest>>& guests,
                                 std::vector<Result<http::Response>>& responses) {
    constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";
    auto response = responses.begin();
    for (std::size_t index = 0; index < cases.size(); ++index) {
      const Case& one = cases[index];
      if (one.refused_with()) continue;
      Result<http::Response>& direct = *response++;
      if (!direct || !is_protobuf(direct->body) || is_protobuf(guests[index]->body())) continue;
      std::string accept = one.accept;
      for (std::size_t at = accept.find(kProtobuf); at != std::string::npos;
           at = accept.find(kProtobuf, at)) {
        accept.replace(at, kProtobuf.size(), "application/json");
      }
      direct = session_->run(
          session_->client.as(one.identity)
              .send(
                  {.method = one.method, .target = one.target, .accept = accept, .body = one.body},
                  {}));
    }
  }

  // The gateway's answer to each, and the server's where the gateway asks nobody.
  struct Both {
    Answered gateway;
    std::optional<Answered> server;

    // On a busy machine a watch of a second may end before it has shown what exists, or in an
    // error about its deadline, and the server may fail to answer: this compares nothing.
    [[nodiscard]] bool was_too_short() const {
      if (!server) return true;
      const auto has_events = [](const Answered& answer) {
        return std::ranges::any_of(answer.content, [](const std::string& line) {
          return line.starts_with("ADDED ") || line.starts_with("ERROR ");
        });
      };
      return gateway != *server && (has_events(gateway) || has_events(*server));
    }
  };
  std::vector<Both> ask(const std::vector<Case>& cases) {
    std::vector<std::unique_ptr<Guest>> guests;
    std::vector<io::Task<Result<http::Response>>> directs;
    for (const Case& one : cases) {
      guests.push_back(std::make_unique<Guest>(*gateway_, one.identity, one.target, one.method,
                                               one.body, http::Headers{{"Accept", one.accept}}));
      if (one.refused_with()) continue;
      directs.push_back(session_->client.as(one.identity)
                            .send({.method = one.method,
                                   .target = one.target,
                                   .accept = one.direct_accept(),
                                   .body = one.body},
                                  {}));
    }
    auto responses = session_->run_all(std::move(directs));
    EXPECT_TRUE(testing::wait(session_->loop, [&] {
      return std::ranges::all_of(guests, [](const auto& guest) { return guest->has_ended; });
    }));
    in_json_if_the_gateway_is(cases, guests, responses);
    std::vector<Both> out;
    auto response = responses.begin();
    for (std::size_t index = 0; index < cases.size(); ++index) {
      const Guest& guest = *guests[index];
      EXPECT_TRUE(guest.has_ended) << "no answer: " << cases[index].text();
      Both& both = out.emplace_back(Both{.gateway = answered(guest.status, guest.body())});
      if (cases[index].refused_with()) continue;
      const Result<http::Response>& direct = *response++;
      if (direct) {
        both.server = answered(static_cast<int>(direct->status), direct->body);
      } else {
        std::cout << "the server did not answer " << cases[index].text() << ": "
                  << direct.error().message() << "\n";
      }
    }
    return out;
  }

  std::unique_ptr<Session> session_;
  std::unique_ptr<kube::Cache> cache_;
  std::unique_ptr<kube::Discovery> discovery_;
  std::unique_ptr<Gateway> gateway_;
  std::vector<std::unique_ptr<Guest>> warm_;
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const given = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

TEST_F(ReadsTest, AreAnsweredAsTheServerAnswersThem) {
  const std::uint64_t seed = number_from("HANGAR_TEST_SEED", std::random_device()());
  const std::uint64_t count = number_from("HANGAR_TEST_CASES", kCases);
  std::cout << "HANGAR_TEST_SEED=" << seed << "\n";
  SCOPED_TRACE(fmt::format("HANGAR_TEST_SEED={}", seed));
  Dice dice(seed);
  ASSERT_NO_FATAL_FAILURE(make_world(dice));
  ASSERT_NO_FATAL_FAILURE(warm(dice));
  const double warming = from_cache();
  const auto list = session_->run(session_->client.list(
      {.version = "v1", .plural = "namespaces", .kind = "Namespace"}, {}, {}));
  ASSERT_TRUE(list.has_value());

  std::uint64_t done = 0;
  std::uint64_t refused = 0;
  double metadata_from_cache = 0;
  std::map<int, int> by_status;
  while (done < count && !HasFailure()) {
    std::vector<Case> cases;
    const bool is_of_metadata = done / kAtOnce % 2 == 1;
    for (; cases.size() < kAtOnce && done + cases.size() < count;)
      cases.push_back(draw(list->resource_version, dice, is_of_metadata));
    const double before = from_cache();
    std::vector<Both> answers = ask(cases);
    if (is_of_metadata) metadata_from_cache += from_cache() - before;
    for (std::size_t index = 0; index < cases.size(); ++index) {
      if (cases[index].refused_with() || !answers[index].was_too_short()) continue;
      answers[index] = ask({cases[index].with_patience()}).front();
    }
    for (std::size_t index = 0; index < cases.size(); ++index) {
      const auto& [gateway, server] = answers[index];
      if (const auto refusal = cases[index].refused_with()) {
        ++refused;
        EXPECT_EQ(gateway.status, *refusal) << cases[index].text();
      } else {
        ASSERT_TRUE(server.has_value()) << "no answer twice: " << cases[index].text();
        ++by_status[server->status];
        EXPECT_EQ(gateway, *server) << "case " << done + index << ": " << cases[index].text();
      }
    }
    done += cases.size();
  }
  std::cout << done << " requests, " << from_cache() - warming << " of them shown from the cache, "
            << metadata_from_cache << " of these with Accept headers for bare metadata, " << refused
            << " not taken";
  for (const auto& [status, times] : by_status)
    std::cout << ", " << status << ": " << times;
  std::cout << "\n";
  // Else it shows little. Whatever the rights are, some of them see something: one in 20 as a rule,
  // one in 50 in worlds with few rights.
  EXPECT_GT(from_cache() - warming, static_cast<double>(done) / 200);
  EXPECT_GT(metadata_from_cache, static_cast<double>(done) / 400);
  EXPECT_GT(by_status[403], static_cast<int>(done) / 10);
  EXPECT_GT(by_status[404], static_cast<int>(done) / 100);
}

}  // namespace
}  // namespace hangar::gateway
