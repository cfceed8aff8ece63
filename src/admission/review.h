// An AdmissionReview (admission.k8s.io/v1) as a struct, and its answer. Pure.
//
// The API server takes objects that are nested much deeper than a document may be. The review of
// such an object is read without the members that are nested too deep, so that it can be answered:
// the API server does not show its user the text of an HTTP error.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

enum class Operation : std::uint8_t { Create, Update, Delete, Connect };

// Owns all its content: there are no views.
struct Review {
  std::string uid;
  Operation operation = Operation::Create;
  kube::GroupVersionKind kind;  // As in the webhook's rule.
  kube::ObjectKey key;          // Without a name if the server generates it.
  kube::Identity identity;      // The user of the request.
  bool is_dry_run = false;
  // The sender has proved to be the API server, so the review's user can be trusted.
  bool is_authenticated = false;
  json::Value object;      // Null at deletions.
  json::Value old_object;  // Null at creations.
  // The object is nested too deep, not counting metadata.managedFields: members may be missing.
  bool is_object_cut = false;
  bool is_old_object_cut = false;
};

// The message of InvalidInput is for the sender.
[[nodiscard]] Result<Review> parse_review(std::string_view body);

// InvalidInput for a review of whose object members are left out, unless the object is being
// deleted: a part must not be taken for what its author wants.
[[nodiscard]] Result<> check_depth(const Review& review);

struct Decision {
  bool is_allowed = true;
  int code = 0;         // The code of a refusal's Status; 0: 403.
  std::string message;  // The message of a refusal.
  std::vector<std::string> warnings;
};
[[nodiscard]] Decision refusal(const Error& error);
[[nodiscard]] Decision allowed_with(std::string warning);

// The body of the answer.
[[nodiscard]] std::string answer_to(std::string_view uid, const Decision& decision);

}  // namespace hangar::admission
