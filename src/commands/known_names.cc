#include "commands/known_names.h"

#include "airways/release_catalog.h"
#include "airways/revision.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "operators/operator.h"
#include "workflows/workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

constexpr std::chrono::seconds kNamesPatience{3};
// More candidates do not help, and slow the shell down.
constexpr std::size_t kNamesMax = 1000;

kube::Resource resource_of(NameKind kind) {
  switch (kind) {
    case NameKind::Namespaces:
      return kube::namespace_resource();
    case NameKind::Operators:
      return operators::operator_resource();
    default:
      return workflows::workflow_resource();
  }
}

io::Task<Result<std::vector<KnownName>>> objects(const kube::Client& client, NamesQuestion question,
                                                 std::stop_token stop) {
  const bool is_of_cluster = question.kind == NameKind::Namespaces;
  const kube::List list = HANGAR_CO_TRY(co_await client.list(
      resource_of(question.kind),
      {.namespace_ = is_of_cluster ? std::string() : std::move(question.namespace_),
       .detail = kube::Detail::Metadata},
      std::move(stop)));
  std::vector<KnownName> names;
  for (const kube::ObjectPtr& object : list.items)
    names.push_back({.name = object->key().name, .description = {}});
  co_return names;
}

std::vector<KnownName> revisions_of(const airways::CatalogEntry& entry) {
  const std::size_t active = entry.history.active_number();
  std::vector<KnownName> names;
  for (std::size_t number = entry.history.revisions.size(); number > 0; --number) {
    const airways::Revision& revision = entry.history.revisions[number - 1];
    names.push_back({.name = std::to_string(number),
                     .description = fmt::format("{} resources, made {}{}", revision.resource_count,
                                                entry.times.at(revision.secret).created_at,
                                                number == active ? ", current" : "")});
  }
  return names;
}

io::Task<Result<std::vector<KnownName>>> releases(const kube::Client& client,
                                                  NamesQuestion question, std::stop_token stop) {
  const bool is_of_one = question.kind == NameKind::Revisions;
  const airways::Catalog catalog = HANGAR_CO_TRY(
      co_await airways::read_catalog(client,
                                     {.namespace_ = std::move(question.namespace_),
                                      .release = is_of_one ? question.release : std::string()},
                                     std::move(stop)));
  std::vector<KnownName> names;
  for (const airways::CatalogEntry& entry : catalog.entries) {
    if (!is_of_one) {
      names.push_back({.name = entry.name,
                       .description = fmt::format("in {}, revision {}", entry.namespace_,
                                                  entry.history.active_number())});
    } else if (entry.name == question.release && names.empty()) {
      names = revisions_of(entry);
    }
  }
  co_return names;
}

}  // namespace

bool is_plain_word(std::string_view text) {
  const auto is_plain = [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '/' ||
           c == ':' || c == '@';
  };
  return !text.empty() && !text.starts_with('-') && std::ranges::all_of(text, is_plain);
}

Result<std::vector<KnownName>> known_names(const host::Config& config,
                                           const NamesQuestion& question, const Log& log) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  NamesQuestion asked = question;
  if (asked.namespace_.empty() && !asked.is_in_every_namespace) {
    asked.namespace_ = login.namespace_.empty() ? "default" : login.namespace_;
  }
  host::ClusterSession session(std::move(login), log);
  const std::stop_source stop;
  const io::Loop::Timer limit = session.loop.after(kNamesPatience, [stop] { stop.request_stop(); });
  const bool is_release = asked.kind == NameKind::Releases || asked.kind == NameKind::Revisions;
  std::vector<KnownName> names =
      HANGAR_TRY(session.run(is_release ? releases(session.client, asked, stop.get_token())
                                        : objects(session.client, asked, stop.get_token())));
  std::erase_if(names, [](const KnownName& one) { return !is_plain_word(one.name); });
  if (names.size() > kNamesMax) names.resize(kNamesMax);
  for (KnownName& one : names)
    one.description = printable(one.description);
  return names;
}

}  // namespace hangar::commands
