// The documents that the gateway writes itself, as the API server would.
#pragma once

#include "base/result.h"
#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::gateway {

// metav1.Status of a failure.
struct Refusal {
  int code = 500;
  std::string reason;
  std::string message;
};
[[nodiscard]] std::string status_document(const Refusal& refusal);

[[nodiscard]] Refusal bad_request(std::string message);
[[nodiscard]] Refusal not_found(const kube::Resource& resource, std::string_view name);
[[nodiscard]] Refusal expired(std::string message);
// No answer came from upstream. `is_write`: so nobody knows whether it was done.
[[nodiscard]] Refusal no_answer(const Error& error, bool is_write);

// Lines of a watch, with their line end.
[[nodiscard]] std::string error_line(const Refusal& refusal);
[[nodiscard]] std::string bookmark_line(const kube::Resource& resource, std::uint64_t version,
                                        bool ends_initial_events);

// A list, piece by piece: a large one is never in memory as a whole here, nor made at one go.
class ListText {
 public:
  ListText(const kube::Resource& resource, std::uint64_t version);

  void add(const kube::Object& item);
  void end();
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  // What has been written since the last time.
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
  bool has_items_ = false;
};

// What a guest takes, out of its Accept header: the API server's default when that is empty.
struct Accepts {
  bool json = false;         // Plain objects as JSON: what we have.
  bool transformed = false;  // Asks (too) for Tables or bare metadata, which only the server makes.
  std::string json_only;     // The header without what is no JSON: for streams made of lines.
};
[[nodiscard]] Accepts read_accept(std::string_view header);

}  // namespace hangar::gateway
