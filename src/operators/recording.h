// Builds the recorder's records of an operator's turns and requests from the data of the guest and
// the gateway. No I/O.
#pragma once

#include "abi/kube_runtime/messages.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "kube/object.h"
#include "operators/mailbox.h"
#include "operators/operator.h"
#include "recorder/raw_body.h"
#include "recorder/record.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

// The arrivals and the requests into the guest that a turn begins with, kept until it has ended.
class Woken {
 public:
  // The kind of request that an arrival answers. Pieces of a plain answer are an answer.
  enum class Source : std::uint8_t { Stream, Plain, Timer };
  // Whether the annotation recorder::kTraceAnnotation of objects is looked for.
  enum class Traces : std::uint8_t { Off, On };
  explicit Woken(Traces traces = Traces::Off) : traces_(traces) {}
  // Makes room for so many arrivals and requests.
  void reserve(std::size_t count);
  // Call this before the arrival is delivered.
  void add(const Mailbox::Arrival& arrival, Source source);
  // The guest is given a review or a scrape with a body of that size.
  void add_request(abi::kube_runtime::Listener listener, std::uint64_t bytes);

  // Views into this.
  [[nodiscard]] const std::vector<recorder::Waking>& wakings() const { return wakings_; }
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  void add_piece(std::uint64_t id, const gateway::Piece& piece);
  // False: there are as many as are recorded, so this one is only counted.
  [[nodiscard]] bool has_place();
  // A copy that lives as long as this object.
  [[nodiscard]] std::string_view kept(std::string_view text);

  // Enough for the texts of one or two objects, which most turns begin with.
  static constexpr std::size_t kFirstTextsBytes = 512;

  Traces traces_;
  std::array<std::byte, kFirstTextsBytes> first_texts_;
  std::pmr::monotonic_buffer_resource texts_{first_texts_.data(), first_texts_.size()};
  std::vector<recorder::Waking> wakings_;  // Their texts are literals, or in `texts_`.
  std::uint64_t left_out_ = 0;
};

// Has views into all of them. `body` is the object in the body of the request, if it is one. The
// caller fills in guest, turn, id and time.
[[nodiscard]] recorder::Asked asked_of(const gateway::RequestTarget& target,
                                       const gateway::Request& request,
                                       const std::optional<kube::Identification>& body);

// Whether the body of that request may be recorded: it creates or changes an object that is not a
// Secret.
[[nodiscard]] bool has_recordable_body(const recorder::Asked& asked);

// The Secrets that a guest may have in its memory: those that its spec names, and those that it has
// asked for. Beyond recorder::kBodySecretsMax of them, it stands for all of the cluster.
class SecretsRead {
 public:
  // The Secrets of the spec, as variables and files.
  explicit SecretsRead(const Operator& spec);
  // Call this for each request.
  void add(const recorder::Asked& asked);
  // Call this for each review that it is given: it may be of a Secret.
  void add_review(std::string_view body);
  [[nodiscard]] const recorder::SecretNames& names() const { return names_; }

 private:
  void add(std::string_view namespace_, std::string_view name);

  recorder::SecretNames names_;
};

// The object in an answer, as views into both; of a list in JSON, its version. Unknown for a
// Status, for what is neither JSON nor protobuf, and if more comes before it than is read.
class AnsweredObject {
 public:
  explicit AnsweredObject(std::string_view body);
  [[nodiscard]] bool is_known() const { return !kind_.empty(); }
  [[nodiscard]] recorder::Object object() const;

 private:
  std::string_view group_;
  std::string_view kind_;
  std::string namespace_;
  std::string name_;
  std::uint64_t version_ = 0;
};

}  // namespace hangar::operators
