// An AdmissionReview (admission.k8s.io/v1) as a struct, and its answer. Pure.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

enum class Operation : std::uint8_t { Create, Update, Delete, Connect };

// Owns everything in it: there are no views.
struct Review {
  std::string uid;
  Operation operation = Operation::Create;
  kube::GroupVersionKind kind;  // As in the webhook's rule.
  kube::ObjectKey key;          // Without a name if the server generates it.
  std::string user;
  std::vector<std::string> groups;
  bool is_dry_run = false;
  // The sender has proved to be the API server, so the review's user is true.
  bool is_authenticated = false;
  json::Value object;      // Null at deletions.
  json::Value old_object;  // Null at creations.
};

// InvalidInput tells the sender what is wrong.
[[nodiscard]] Result<Review> parse_review(std::string_view body);

struct Decision {
  bool is_allowed = true;
  int code = 0;         // Of the Status of a refusal; 0: 403.
  std::string message;  // Of a refusal.
  std::vector<std::string> warnings;
};
[[nodiscard]] Decision refusal(const Error& error);
[[nodiscard]] Decision allowed_with(std::string warning);

// The body of the answer.
[[nodiscard]] std::string answer_to(std::string_view uid, const Decision& decision);

}  // namespace hangar::admission
