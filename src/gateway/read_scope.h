// The scope of a get, list or watch: the one value that is both authorised and looked up.
//
// If a review covered one place and the lookup used another, a tenant could see objects that it may
// not read. So both use one value that nothing changes in between: a ReadScope holds the place as
// the API server's RequestInfo has it, and gives the attributes of the review; the Authorizer turns
// it into an AuthorizedScope; and a Feed opens a Window, the one way to objects, only for an
// AuthorizedScope.
#pragma once

#include "gateway/request_target.h"
#include "gateway/view.h"
#include "kube/object.h"
#include "kube/scope.h"

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
  std::string label_selector;  // As written in the request.
  std::string field_selector;

  auto operator<=>(const Attributes&) const = default;
};

// The attributes of a request for `view` of a collection. The kind of `resource` is ignored.
[[nodiscard]] Attributes attributes_of(Verb verb, const kube::Resource& resource, const View& view);

class ReadScope {
 public:
  // Nothing for requests that only the API server can place: paths that are not of a collection
  // or of one of its objects, a namespace by its own path (RequestInfo puts it into itself), the
  // legacy watch of one object (by its path or a selector), selectors and options that do not
  // parse, selectors of very many terms, terms on other fields than name and namespace, and texts
  // that cannot be a version or a namespace.
  //
  // `detail`: how much of each object the guest wants. The review does not depend on it.
  [[nodiscard]] static std::optional<ReadScope> of(const RequestTarget& target,
                                                   kube::Detail detail = kube::Detail::Whole);

  [[nodiscard]] Verb verb() const { return verb_; }
  // The collection as the path names it: without a kind, and not yet known to be namespaced.
  [[nodiscard]] const kube::Resource& resource() const { return resource_; }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] View take_view() && { return std::move(view_); }

  // Whether the API server has such a path for `resource`, as discovery describes it: it serves no
  // cluster-scoped resource within a namespace, and no object of a namespace outside of one.
  // Whether cluster-scoped objects can be selected by namespace differs between kinds; then the
  // answer is no.
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
