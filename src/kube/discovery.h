// Which resource a kind is, as the API server says, remembered.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::kube {

// A kind that is not known is looked for at the server before it is reported missing, so that a CRD
// made a moment ago is found at once; a group where something stays missing is asked for again at
// most once a second. What is known is believed until forget(): call it when a CRD changes, and
// when the server answers NotFound to a request for a whole collection.
//
// A group whose server is down (an aggregated API) fails only those who ask for its kinds. Errors
// besides those named below: as Client::get_path. Loop thread only.
class Discovery {
 public:
  explicit Discovery(const Client& client);
  ~Discovery();

  // NotFound when the server serves no such kind: the message names it as kubectl does
  // ("no matches for kind \"X\" in version \"g/v\"").
  [[nodiscard]] io::Task<Result<Resource>> find(GroupVersionKind gvk, std::stop_token stop);
  // Any served version, the group's preferred one first.
  [[nodiscard]] io::Task<Result<Resource>> find(GroupKind kind, std::stop_token stop);
  // By plural name in a group ("backends", "examples.com").
  [[nodiscard]] io::Task<Result<Resource>> find_plural(std::string group, std::string plural,
                                                       std::stop_token stop);

  void forget(std::string_view group);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::kube
