// Finds the resource of a kind by asking the API server, and caches the answers.
#pragma once

#include "base/consumer.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::kube {

struct GroupVersionResource {
  std::string group;
  std::string version;
  std::string resource;  // The plural name.
};

// An unknown kind is looked up at the server before it is reported missing, so that a new CRD is
// found at once; a group that lacks something is requested again at most once a second. Known
// answers stay valid until forget(): call it when a CRD changes, and when the server answers
// NotFound to a request for a whole collection.
//
// Requests for groups that are not known are made in slots that are fair between the tenants for
// whom a kind is looked up (`whose`): a tenant may look for any number of groups that do not exist,
// and only its own lookups wait. All callers that look for a group share the request for it.
//
// A group whose server is down (an aggregated API) fails only lookups of its own kinds. Further
// errors: LimitExceeded when too many lookups of one consumer wait, Cancelled when a stop is
// requested, and those of Client::get_path. Loop thread only.
class Discovery {
 public:
  explicit Discovery(const Client& client);
  ~Discovery();

  // NotFound when the server does not serve the kind; the message is kubectl's ("no matches for
  // kind \"X\" in version \"g/v\"").
  [[nodiscard]] io::Task<Result<Resource>> find(GroupVersionKind gvk, Consumer whose,
                                                std::stop_token stop);
  // Any served version; the group's preferred one is tried first.
  [[nodiscard]] io::Task<Result<Resource>> find(GroupKind kind, Consumer whose,
                                                std::stop_token stop);
  // By plural name in a group ("backends", "examples.com").
  [[nodiscard]] io::Task<Result<Resource>> find_plural(std::string group, std::string plural,
                                                       Consumer whose, std::stop_token stop);
  // The same in exactly that version. A version that a group lacks is requested no more often than
  // a kind that it lacks.
  [[nodiscard]] io::Task<Result<Resource>> find(GroupVersionResource named, Consumer whose,
                                                std::stop_token stop);

  void forget(std::string_view group);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::kube
