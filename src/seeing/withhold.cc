#include "seeing/withhold.h"

#include "kube/object.h"
#include "recorder/story.h"
#include "seeing/messages.h"
#include "seeing/why_search.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::seeing {

namespace {

using recorder::Cause;
using recorder::ObjectVersion;
using recorder::Request;
using recorder::Story;

// An event of a watch of bare metadata does not tell the kind of its object. It counts as a
// Secret's, since operators watch Secrets in this way so as not to read them.
bool is_secret(const ObjectVersion& object) {
  const bool is_bare = object.group == "meta.k8s.io" && object.kind == "PartialObjectMetadata";
  return !object.name.empty() && (is_bare || (object.group.empty() && object.kind == "Secret"));
}

bool is_secret(const Request& request) {
  return is_secret(request.object) ||
         (request.object.group.empty() && request.resource == "secrets" &&
          !request.object.name.empty());
}

kube::ObjectKey key_of(const ObjectVersion& object) {
  return {.namespace_ = object.namespace_, .name = object.name};
}

void withhold(ObjectVersion& object, const std::set<kube::ObjectKey>& shown) {
  if (!shown.contains(key_of(object))) object.name = kWithheld;
}

// A path that was not recognised as that of a resource may still contain the name of a Secret.
void withhold_in_path(std::string& path) {
  constexpr std::string_view kSecrets = "/secrets/";
  const std::size_t at = path.find(kSecrets);
  if (at == std::string::npos) return;
  path.resize(at + kSecrets.size());
  path += kWithheld;
}

bool is_of_secrets(const Right& right) {
  return right.group.empty() && right.resource == "secrets";
}

void withhold(recorder::RecordedBody& body, const std::set<kube::ObjectKey>& shown) {
  const bool is_shown = std::ranges::all_of(body.secrets, [&shown](const auto& secret) {
    return shown.contains({.namespace_ = secret.first, .name = secret.second});
  });
  if (!is_shown) body = {.state = recorder::BodyState::Withheld, .text = {}, .secrets = {}};
}

// Keeps only the writes at these indices, which become 0, 1, ... in the result.
Story stranger_of(Story story, const std::vector<std::size_t>& writes) {
  Story stranger{
      .contract = story.contract, .name = std::string(kWithheld), .arrived = story.arrived};
  for (const std::size_t write : writes)
    stranger.requests.push_back(std::move(story.requests[write]));
  // What it wrote may come from objects that the reader may not see.
  for (Request& request : stranger.requests)
    if (request.body) request.body = {.state = recorder::BodyState::Withheld};
  return stranger;
}

}  // namespace

void add_secrets(const Story& story, std::set<kube::ObjectKey>& secrets) {
  for (const Cause& cause : story.causes)
    if (is_secret(cause.object)) secrets.insert(key_of(cause.object));
  for (const Request& request : story.requests) {
    if (is_secret(request)) secrets.insert(key_of(request.object));
    if (!request.body) continue;
    for (const auto& [namespace_, name] : request.body->secrets)
      secrets.insert({.namespace_ = namespace_, .name = name});
  }
}

void withhold_secrets(Story& story, const std::set<kube::ObjectKey>& shown) {
  for (Cause& cause : story.causes)
    if (is_secret(cause.object)) withhold(cause.object, shown);
  for (Request& request : story.requests) {
    if (is_secret(request)) withhold(request.object, shown);
    withhold_in_path(request.path);
    if (request.body) withhold(*request.body, shown);
  }
}

std::set<kube::ObjectKey> secrets_in(const FoundUses& found) {
  std::set<kube::ObjectKey> secrets;
  for (const Use& use : found.uses) {
    if (!is_of_secrets(use.right)) continue;
    for (const std::string& name : use.names)
      secrets.insert({.namespace_ = use.right.namespace_, .name = name});
  }
  return secrets;
}

void withhold_secrets(FoundUses& found, const std::set<kube::ObjectKey>& shown) {
  for (Use& use : found.uses) {
    withhold_in_path(use.right.path);
    if (!is_of_secrets(use.right)) continue;
    const std::size_t withheld = std::erase_if(use.names, [&](const std::string& name) {
      return !shown.contains({.namespace_ = use.right.namespace_, .name = name});
    });
    if (withheld > 0) use.has_more_names = true;
  }
}

void withhold_sharers(FoundUses& found, const std::set<kube::ObjectKey>& shown) {
  found.sharers_withheld += std::erase_if(
      found.sharers, [&shown](const kube::ObjectKey& one) { return !shown.contains(one); });
}

std::set<kube::ObjectKey> guests_in(const WhyFindings& findings) {
  std::set<kube::ObjectKey> guests;
  for (const WhyStep& step : findings.steps)
    guests.insert({.namespace_ = step.story.namespace_, .name = step.story.name});
  return guests;
}

void withhold_guests(WhyFindings& findings, const std::set<kube::ObjectKey>& shown) {
  std::map<std::size_t, std::vector<std::size_t>> writes;  // Writes of hidden guests, by step.
  const auto is_shown = [&](std::size_t step) {
    const Story& story = findings.steps[step].story;
    return shown.contains({.namespace_ = story.namespace_, .name = story.name});
  };
  std::set<std::size_t> strangers;
  for (std::size_t step = 0; step < findings.steps.size(); ++step)
    if (!is_shown(step)) strangers.insert(step);
  for (WhyWrite& write : findings.writes) {
    if (!strangers.contains(write.step)) continue;
    // stranger_of() keeps only these requests, so the indices change.
    std::vector<std::size_t>& of_step = writes[write.step];
    of_step.push_back(std::exchange(write.request, of_step.size()));
  }
  for (std::size_t at = 0; at < findings.steps.size(); ++at) {
    WhyStep& step = findings.steps[at];
    for (WhyLink& link : step.links)
      if (link.step && strangers.contains(*link.step)) link.request.reset();
    if (!strangers.contains(at)) continue;
    step.story = stranger_of(std::move(step.story), writes[at]);
    step.links.clear();
  }
}

void withhold_namespaces(recorder::ReadDirectory& read, const std::set<std::string>& shown) {
  recorder::Shortened others{.namespace_ = std::string(kWithheld)};
  std::erase_if(read.shortened, [&](const recorder::Shortened& one) {
    if (shown.contains(one.namespace_)) return false;
    others.records += one.records;
    others.until = std::max(others.until, one.until);
    return true;
  });
  if (others.records > 0) read.shortened.push_back(std::move(others));
}

}  // namespace hangar::seeing
