// What the recorder is told of an operator's turns and requests: from what the guest and the
// gateway have, to records. No I/O.
#pragma once

#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "operators/mailbox.h"
#include "recorder/record.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

// What one turn begins with, kept until it has ended.
class Woken {
 public:
  // What the request of an arrival is. Pieces of a plain answer are an answer.
  enum class Source : std::uint8_t { Stream, Plain, Timer };
  // Before the arrival is handed over.
  void add(const Mailbox::Arrival& arrival, Source source);

  // Views into this.
  [[nodiscard]] std::vector<recorder::Waking> wakings() const;
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  struct Entry {
    recorder::Waking waking;  // Without its object's texts.
    std::string group;
    std::string kind;
    std::string namespace_;
    std::string name;
  };
  void add_piece(std::uint64_t id, const gateway::Piece& piece);

  std::vector<Entry> entries_;
  std::uint64_t left_out_ = 0;
};

// Views into `target` and `request`; guest, turn, id and time are the caller's to fill in.
[[nodiscard]] recorder::Asked asked_of(const gateway::RequestTarget& target,
                                       const gateway::Request& request);

// Which object a write's answer is, as views into both. Empty for a Status, and for what is not
// JSON.
class AnsweredObject {
 public:
  explicit AnsweredObject(std::string_view body);
  [[nodiscard]] recorder::Object object() const;

 private:
  std::string_view group_;
  std::string_view kind_;
  std::string namespace_;
  std::string name_;
  std::uint64_t version_ = 0;
};

}  // namespace hangar::operators
