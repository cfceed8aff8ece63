// Documents that the gateway writes itself, in the form that the API server gives them.
#pragma once

#include "base/result.h"
#include "gateway/request_target.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::gateway {

// A failure, as the fields of a metav1.Status.
struct Refusal {
  int code = 500;
  std::string reason;
  std::string message;
};
[[nodiscard]] std::string status_document(const Refusal& refusal);

[[nodiscard]] Refusal bad_request(std::string message);
[[nodiscard]] Refusal not_found(const kube::Resource& resource, std::string_view name);
[[nodiscard]] Refusal expired(std::string message);
// The tenant already has the maximum number of requests waiting for the API server.
[[nodiscard]] Refusal too_many_requests();
// The API server gave no usable answer. After a write (`is_write`) that was sent, the message says
// that its outcome is unknown.
[[nodiscard]] Refusal no_answer(const Error& error, bool is_write);

// Lines of a watch, each with its newline.
[[nodiscard]] std::string error_line(const Refusal& refusal);
[[nodiscard]] std::string bookmark_line(const kube::Resource& resource, std::uint64_t version,
                                        bool ends_initial_events,
                                        kube::Detail detail = kube::Detail::Whole);

// The object, or its PartialObjectMetadata.
[[nodiscard]] std::string object_text(const kube::Object& object, kube::Detail detail);

// Writes a list in pieces: a large one is never in memory as a whole, nor written in one turn of
// the loop.
class ListText {
 public:
  ListText(const kube::Resource& resource, std::uint64_t version,
           kube::Detail detail = kube::Detail::Whole);

  void add(const kube::Object& item);
  void end();
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  // The text written since the last call.
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
  kube::Detail detail_;
  bool has_items_ = false;
};

// The formats that a guest accepts, from its Accept header; the API server's default if that
// is empty.
struct Accepts {
  // How much of each object an answer from the cache contains: as much as the API server's own
  // would (for a watch: its answer to `json_only`), but always as JSON. Nothing: only the API
  // server can answer.
  std::optional<kube::Detail> cached;
  std::string json_only;  // The header's JSON types only, for streams of lines.
};
[[nodiscard]] Accepts read_accept(std::string_view header, Verb verb);

}  // namespace hangar::gateway
