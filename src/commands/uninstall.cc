#include "commands/uninstall.h"

#include "admission/kept_objects.h"
#include "admission/webhooks.h"
#include "airways/airway.h"
#include "airways/crd_template.h"
#include "airways/flight.h"
#include "airways/ownership.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "commands/streams.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "http/client.h"
#include "io/all.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/skim.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/media_types.h"
#include "kube/object.h"
#include "kube/urls.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

// A host answers what it has begun, and ends within its pod's grace period.
constexpr std::chrono::minutes kHostsPatience{3};
// Some moments pass until the API server acts on a configuration that was removed. All objects
// share them, so that those of one tenant cannot hold up the rest; each has some tries in any case.
constexpr std::chrono::seconds kWritePatience{60};
constexpr std::size_t kWriteTriesMin = 5;
constexpr std::chrono::milliseconds kAgain{500};
// Objects in memory at a time, which are also written at a time. There may be thousands of them,
// and tenants decide how large each is.
constexpr std::string_view kPageSize = "16";

kube::Resource admission_kind(std::string plural, std::string kind) {
  return {.group = "admissionregistration.k8s.io",
          .version = "v1",
          .plural = std::move(plural),
          .kind = std::move(kind)};
}

kube::Resource deployment_resource() {
  return {.group = "apps",
          .version = "v1",
          .plural = "deployments",
          .kind = "Deployment",
          .namespaced = true};
}

bool is_of_airway(const json::Value& definition) {
  const json::Array* const owners = json::array_at(definition, {"metadata", "ownerReferences"});
  return owners != nullptr && std::ranges::any_of(*owners, [](const json::Value& owner) {
           return json::string_at(owner, {"kind"}) == "Airway" &&
                  json::string_at(owner, {"apiVersion"}).starts_with("yoke.cd/");
         });
}

// The selector of a Deployment as a list request has it.
std::string selector_of(const json::Value& deployment) {
  const json::Object* const labels =
      json::object_at(deployment, {"spec", "selector", "matchLabels"});
  std::string selector;
  if (labels == nullptr) return selector;
  for (const auto& label : *labels) {
    if (!label.value().is_string()) continue;
    selector += fmt::format("{}{}={}", selector.empty() ? "" : ",", std::string_view(label.key()),
                            std::string_view(label.value().get_string()));
  }
  return selector;
}

// A definition of an Airway, as far as it matters here.
struct Definition {
  kube::ObjectKey key;
  std::optional<kube::Resource> kind;  // As it is stored; nothing if it is not served.
  bool is_converted = false;
};

Definition read_definition(const json::Value& definition) {
  return {
      .key = kube::key_of(definition),
      .kind = airways::stored_kind(definition),
      .is_converted = json::string_at(definition, {"spec", "conversion", "strategy"}) == "Webhook"};
}

// An object that waits for a host.
struct Held {
  kube::ObjectKey key;
  std::size_t index = 0;  // Of the finalizer among those of the object.
};

struct Page {
  std::vector<Held> held;
  std::string continue_token;
};

std::optional<std::size_t> index_of(const kube::Object& object, std::string_view finalizer) {
  const json::Value value = object.to_value();
  const json::Array* const all = json::array_at(value, {"metadata", "finalizers"});
  if (all == nullptr) return std::nullopt;
  const auto found = std::ranges::find_if(*all, [finalizer](const json::Value& one) {
    return one.is_string() && std::string_view(one.get_string()) == finalizer;
  });
  if (found == all->end()) return std::nullopt;
  return static_cast<std::size_t>(found - all->begin());
}

// A page of a list, one item after the other. The answer to a continuation that has expired is read
// too: it has no items, and tells where to continue.
Result<Page> read_page(std::string_view body, const kube::Resource& kind,
                       std::string_view finalizer) {
  Page page;
  json::Skim skim(body);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (*key == "metadata") {
      for (auto metadata = skim.object(); const auto name = skim.next_key(metadata);) {
        if (*name == "continue") {
          page.continue_token = skim.string();
        } else {
          skim.value();
        }
      }
    } else if (*key != "items") {
      skim.value();
    } else if (!skim.skip_null()) {
      for (auto items = skim.array(); skim.next_element(items);) {
        const std::string_view item = skim.value();
        if (skim.is_failed()) break;
        const kube::ObjectPtr object = HANGAR_TRY(kube::Object::make_item(item, kind.gvk()));
        if (const auto index = index_of(*object, finalizer))
          page.held.push_back({.key = object->key(), .index = *index});
      }
    }
  }
  HANGAR_TRY(skim.finish());
  return page;
}

bool may_pass(const Error& error) {
  return error.kind() == ErrorKind::Conflict || error.kind() == ErrorKind::Unavailable;
}

std::string name_of(const kube::Resource& kind, const kube::ObjectKey& key) {
  return fmt::format("{}.{}/{}", kind.plural, kind.group, key.to_string());
}

// A step that fails is told, and the next one follows: what one tenant has made in such a way that
// it cannot be written keeps nobody else's objects.
class Uninstallation {
 public:
  Uninstallation(const kube::Client& client, std::string namespace_, UninstallOptions options,
                 Streams streams)
      : loop_(client.loop()),
        client_(client),
        namespace_(std::move(namespace_)),
        options_(std::move(options)),
        streams_(std::move(streams)) {}

  io::Task<Result<>> run() {
    if (!options_.deployment.empty()) HANGAR_CO_TRY(co_await stop_hosts());
    for (const kube::Resource& kind :
         {admission::configuration_resource(),
          admission_kind("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
          admission_kind("validatingadmissionpolicies", "ValidatingAdmissionPolicy")}) {
      co_await remove_kept(kind);
    }
    const std::vector<Definition> definitions = co_await airway_definitions();
    for (const Definition& definition : definitions) {
      if (definition.is_converted) co_await switch_conversion_off(definition.key);
    }
    if (!options_.keeps_finalizers) co_await remove_finalizers(definitions);
    if (failures_ == 0) co_return Result<>();
    co_return fail(
        ErrorKind::Unavailable,
        fmt::format("not done: {}, each named above. Remove what refuses it, and run hangar "
                    "uninstall again. To take off finalizers by hand: kubectl patch KIND NAME "
                    "--namespace=NAMESPACE --type=merge --patch='{{\"metadata\": "
                    "{{\"finalizers\": null}}}}'",
                    failures_));
  }

 private:
  void tell_failure(std::string_view what, const Error& error) {
    ++failures_;
    streams_.say(fmt::format("{}: {}\n", what, printable(error.message())));
  }

  // Hosts would bring back what is removed here.
  io::Task<Result<>> stop_hosts() {
    const kube::ObjectKey key{.namespace_ = namespace_, .name = options_.deployment};
    const Result<json::Value> deployment =
        co_await client_.get(deployment_resource(), key, std::stop_token());
    if (!deployment && deployment.error().kind() == ErrorKind::NotFound) co_return Result<>();
    if (!deployment) co_return std::unexpected(deployment.error());
    const std::string selector = selector_of(*deployment);
    if (selector.empty()) {
      co_return fail(
          ErrorKind::InvalidInput,
          fmt::format("Deployment {} selects pods by more than labels", key.to_string()));
    }
    const Result<json::Value> scaled = co_await client_.patch(
        deployment_resource(), key, kube::PatchType::Merge,
        json::Object{{"spec", json::Object{{"replicas", 0}}}}, {.subresource = "scale"}, {});
    if (!scaled) co_return std::unexpected(scaled.error());
    const Instant begin = io::Loop::now();
    while (true) {
      const kube::List pods = HANGAR_CO_TRY(co_await client_.list(
          kube::pod_resource(), {.namespace_ = namespace_, .label_selector = selector}, {}));
      if (pods.items.empty()) break;
      if (io::Loop::now() - begin > kHostsPatience) {
        co_return fail(ErrorKind::Unavailable,
                       fmt::format("pod {} of Deployment {} does not end",
                                   pods.items.front()->key().name, key.to_string()));
      }
      HANGAR_CO_TRY(co_await loop_.sleep(kAgain, {}));
    }
    streams_.out(fmt::format("deployment.apps/{} stopped\n", options_.deployment));
    co_return Result<>();
  }

  // A kind that does not exist, or may not be listed, has nothing that could be removed.
  void tell_unlisted(const kube::Resource& kind, const Error& error) {
    if (error.kind() == ErrorKind::NotFound) return;
    if (error.kind() == ErrorKind::Denied) {
      streams_.out(fmt::format("{} left: {}\n", kind.plural, printable(error.message())));
    } else {
      tell_failure(fmt::format("{}.{}", kind.plural, kind.group), error);
    }
  }

  io::Task<void> remove_kept(kube::Resource kind) {
    const Result<kube::List> kept = co_await client_.list(
        kind,
        {.label_selector = fmt::format("{}={}", admission::kKeptByLabel, namespace_),
         .detail = kube::Detail::Metadata},
        {});
    if (!kept) co_return tell_unlisted(kind, kept.error());
    for (const kube::ObjectPtr& object : kept->items) {
      const Result<json::Value> removed = co_await client_.remove(kind, object->key(), {}, {});
      if (removed || removed.error().kind() == ErrorKind::NotFound) {
        streams_.out(fmt::format("{} deleted\n", name_of(kind, object->key())));
      } else {
        tell_failure(name_of(kind, object->key()), removed.error());
      }
    }
  }

  io::Task<std::vector<Definition>> airway_definitions() {
    std::vector<Definition> definitions;
    const Result<kube::List> listed = co_await client_.list(
        airways::crd_resource(),
        {.holds = [&definitions](const kube::ObjectPtr& object) -> Result<kube::ObjectPtr> {
           const json::Value definition = object->to_value();
           if (is_of_airway(definition)) definitions.push_back(read_definition(definition));
           return nullptr;
         },
         .on_begin = [&definitions] { definitions.clear(); }},
        {});
    if (!listed) tell_unlisted(airways::crd_resource(), listed.error());
    co_return definitions;
  }

  io::Task<void> switch_conversion_off(kube::ObjectKey key) {
    const kube::Resource kind = airways::crd_resource();
    const Result<json::Value> patched = co_await client_.patch(
        kind, key, kube::PatchType::Merge,
        json::Object{{"spec", json::Object{{"conversion", json::Object{{"strategy", "None"},
                                                                       {"webhook", nullptr}}}}}},
        {}, {});
    if (patched) {
      streams_.out(
          fmt::format("customresourcedefinition.apiextensions.k8s.io/{} no longer "
                      "converted\n",
                      key.name));
    } else if (patched.error().kind() != ErrorKind::NotFound) {
      tell_failure(name_of(kind, key), patched.error());
    }
  }

  io::Task<void> remove_finalizers(const std::vector<Definition>& definitions) {
    patience_ends_ = io::Loop::now() + kWritePatience;
    // Those of instances first: an Airway that is being deleted goes when its kind has gone.
    for (const Definition& definition : definitions) {
      if (definition.kind) co_await let_go(*definition.kind, airways::kInstanceFinalizer);
    }
    co_await let_go(airways::flight_resource(), airways::kInstanceFinalizer);
    co_await let_go(airways::cluster_flight_resource(), airways::kInstanceFinalizer);
    co_await let_go(airways::airway_resource(), airways::kAirwayFinalizer);
  }

  // Takes the finalizer off all objects of a kind.
  io::Task<void> let_go(kube::Resource kind, std::string_view finalizer) {
    std::string token;
    while (true) {
      Result<Page> page = co_await list_page(kind, token, finalizer);
      if (!page) co_return tell_unlisted(kind, page.error());
      std::vector<io::Task<Result<>>> writes;
      writes.reserve(page->held.size());
      for (const Held& held : page->held)
        writes.push_back(let_go_of(kind, held, finalizer));
      const std::vector<Result<>> written = co_await io::all(loop_, std::move(writes));
      for (std::size_t index = 0; index < written.size(); ++index) {
        if (!written[index])
          tell_failure(name_of(kind, page->held[index].key), written[index].error());
      }
      if (page->continue_token.empty()) co_return;
      token = std::move(page->continue_token);
    }
  }

  // The page after that with this token; empty: the first one. Written objects leave no page, so
  // that it does not matter from which time the pages are.
  io::Task<Result<Page>> list_page(kube::Resource kind, std::string token,
                                   std::string_view finalizer) {
    const std::string path = HANGAR_CO_TRY(kube::collection_path(kind, {}));
    const kube::Query query = kube::Query().add("limit", kPageSize).add("continue", token);
    const http::Response response = HANGAR_CO_TRY(co_await client_.send(
        {.target = path + query.text(), .accept = std::string(kube::kMetadataListType)}, {}));
    const bool is_expired = response.status == 410 && !token.empty();
    if (response.status != 200 && !is_expired)
      co_return std::unexpected(kube::error_from_status(response.status, response.body));
    Page page = HANGAR_CO_TRY(read_page(response.body, kind, finalizer));
    if (is_expired && page.continue_token.empty())
      co_return std::unexpected(kube::error_from_status(response.status, response.body));
    if (!token.empty() && page.continue_token == token)
      co_return fail(ErrorKind::Unavailable, "the server returned the same continue token twice");
    co_return page;
  }

  io::Task<Result<>> let_go_of(kube::Resource kind, Held held, std::string_view finalizer) {
    for (std::size_t tries = 1;; ++tries) {
      const Result<> written = co_await take_off(kind, held, finalizer);
      if (written) {
        streams_.out(fmt::format("{} let go\n", name_of(kind, held.key)));
        co_return written;
      }
      const bool has_time = tries < kWriteTriesMin || io::Loop::now() < patience_ends_;
      if (has_time && may_pass(written.error())) HANGAR_CO_TRY(co_await loop_.sleep(kAgain, {}));
      const Result<std::optional<std::size_t>> index =
          co_await read_index(kind, held.key, finalizer);
      if (index && !*index) co_return Result<>();
      // The server answers a test of another list of finalizers like an invalid object.
      const bool is_elsewhere = index && **index != held.index;
      if (!has_time || !(is_elsewhere || may_pass(written.error()))) co_return written;
      if (index) held.index = **index;
    }
  }

  // Conflict, Unavailable: it may succeed later. InvalidInput: the finalizer is elsewhere among
  // those of the object, or the object is refused.
  io::Task<Result<>> take_off(kube::Resource kind, Held held, std::string_view finalizer) {
    const std::string object = HANGAR_CO_TRY(kube::object_path(kind, held.key, {}));
    const std::string path = fmt::format("/metadata/finalizers/{}", held.index);
    // Without a version: the server repeats a write that others have overtaken, and nobody can
    // keep the finalizer by writing again and again.
    const json::Value patch =
        json::Array{json::Object{{"op", "test"}, {"path", path}, {"value", finalizer}},
                    json::Object{{"op", "remove"}, {"path", path}}};
    const kube::Query query = kube::Query().add("fieldManager", airways::kControllerFieldManager);
    const http::Response response =
        HANGAR_CO_TRY(co_await client_.send({.method = "PATCH",
                                             .target = object + query.text(),
                                             .accept = std::string(kube::kMetadataType),
                                             .content_type = "application/json-patch+json",
                                             .body = json::dump(patch)},
                                            {}));
    if (response.status == 200) co_return Result<>();
    co_return std::unexpected(kube::error_from_status(response.status, response.body));
  }

  // Where the finalizer is now; nothing: it has gone.
  io::Task<Result<std::optional<std::size_t>>> read_index(kube::Resource kind, kube::ObjectKey key,
                                                          std::string_view finalizer) {
    std::string path = HANGAR_CO_TRY(kube::object_path(kind, key, {}));
    const http::Response response = HANGAR_CO_TRY(co_await client_.send(
        {.target = std::move(path), .accept = std::string(kube::kMetadataType)}, {}));
    if (response.status == 404) co_return std::nullopt;
    if (response.status != 200)
      co_return std::unexpected(kube::error_from_status(response.status, response.body));
    const kube::ObjectPtr object =
        HANGAR_CO_TRY(kube::Object::make_item(response.body, kind.gvk()));
    co_return index_of(*object, finalizer);
  }

  io::Loop& loop_;
  const kube::Client& client_;
  const std::string namespace_;
  const UninstallOptions options_;
  const Streams streams_;
  Instant patience_ends_;
  std::size_t failures_ = 0;
};

}  // namespace

io::Task<Result<>> let_go_of_cluster(const kube::Client& client, std::string namespace_,
                                     UninstallOptions options, Streams streams) {
  Uninstallation work(client, std::move(namespace_), std::move(options), std::move(streams));
  co_return co_await work.run();
}

Result<> uninstall(const host::Config& config, const UninstallOptions& options, const Log& log,
                   Streams streams) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  std::string namespace_ = host::lease_namespace(config, login.namespace_);
  host::ClusterSession session(std::move(login), log);
  return session.run(
      let_go_of_cluster(session.client, std::move(namespace_), options, std::move(streams)));
}

}  // namespace hangar::commands
