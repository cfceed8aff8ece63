// What a get, list or watch is about: the one value that is authorised and that answers.
//
// A review asked about one place and a lookup made in another show a tenant what it may not see. So
// both come from one value that nothing changes in between: a ReadScope has the place as the API
// server's RequestInfo has it and gives the attributes of the review; the Authorizer turns it into
// an AuthorizedScope, and only for that a Feed opens a Window, which objects are seen through.
#pragma once

#include "gateway/request_target.h"
#include "gateway/view.h"
#include "kube/object.h"

#include <optional>
#include <string>
#include <utility>

namespace hangar::gateway {

// As in authorization.k8s.io/v1 ResourceAttributes.
struct Attributes {
  std::string verb;
  std::string group;
  std::string version;
  std::string resource;
  std::string namespace_;
  std::string name;
  std::string label_selector;  // As the request has them.
  std::string field_selector;

  auto operator<=>(const Attributes&) const = default;
};

// The attributes of a request for `view` of a collection. The kind of `resource` is not looked at.
[[nodiscard]] Attributes attributes_of(Verb verb, const kube::Resource& resource, const View& view);

class ReadScope {
 public:
  // Nothing for what only the API server can place: paths that are not of a collection or of one of
  // its objects, a namespace by its own path (RequestInfo puts it into itself), the legacy watch of
  // one object, selectors and options that do not parse, selectors of very many terms, terms on
  // other fields than name and namespace, texts that no version or namespace has.
  [[nodiscard]] static std::optional<ReadScope> of(const RequestTarget& target);

  [[nodiscard]] Verb verb() const { return verb_; }
  // The collection as the path names it: without a kind, and not yet known to be namespaced.
  [[nodiscard]] const kube::Resource& resource() const { return resource_; }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] View take_view() && { return std::move(view_); }

  // Whether the API server has such a path for `resource`, as discovery describes it: a resource
  // of the cluster is not served within a namespace, nor an object of a namespace outside. Whether
  // objects of the cluster may be selected by namespace differs between kinds: then it does not.
  [[nodiscard]] bool fits(const kube::Resource& resource) const;
  [[nodiscard]] Attributes attributes() const { return attributes_of(verb_, resource_, view_); }

 private:
  ReadScope() = default;

  Verb verb_ = Verb::Other;
  kube::Resource resource_;
  View view_;
  bool selects_namespace_ = false;  // By a field selector.
};

// A scope that an identity may read. Only the Authorizer makes one.
class AuthorizedScope {
 public:
  [[nodiscard]] const ReadScope& scope() const { return scope_; }
  [[nodiscard]] View take_view() && { return std::move(scope_).take_view(); }

 private:
  friend class Authorizer;
  explicit AuthorizedScope(ReadScope scope) : scope_(std::move(scope)) {}

  ReadScope scope_;
};

}  // namespace hangar::gateway
