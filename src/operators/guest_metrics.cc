#include "operators/guest_metrics.h"

#include "base/utf8.h"
#include "operators/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hangar::operators {

using abi::kube_runtime::InboundAnswer;

bool GuestMetrics::was_scraped_lately(Instant now) const {
  return now - scraped_at_ < limits::kMetricsWanted;
}

io::OneShot<bool> GuestMetrics::wait(io::Loop& loop) {
  // A guest may never answer; those that no longer wait have set theirs.
  std::erase_if(waiting_, [](const io::OneShot<bool>& one) { return one.is_set(); });
  return waiting_.emplace_back(loop);
}

bool GuestMetrics::is_waited_for() const {
  return std::ranges::any_of(waiting_, [](const io::OneShot<bool>& one) { return !one.is_set(); });
}

void GuestMetrics::on_asked(std::optional<std::uint64_t> id) {
  asked_ = id;
  is_current_ = true;
}

void GuestMetrics::on_answers(std::span<InboundAnswer> answers) {
  const auto found = std::ranges::find(
      answers, asked_, [](const InboundAnswer& answer) { return std::optional(answer.id); });
  if (found == answers.end()) return;
  asked_.reset();
  last_ = taken(std::move(*found));
  tell(true);
}

void GuestMetrics::clear() {
  (void)memory_.set(0);
  last_.reset();
  asked_.reset();
  is_current_ = false;
  tell(false);
}

// The text goes to whoever scrapes the host, and what it says is the guest's.
Result<std::string> GuestMetrics::taken(InboundAnswer answer) {
  (void)memory_.set(0);
  if (answer.status != 200) {
    return fail(ErrorKind::Unavailable,
                fmt::format("the operator answers with status {}", answer.status));
  }
  if (answer.body.size() > limits::kMetricsBytesMax) {
    return fail(ErrorKind::Unavailable,
                fmt::format("the operator's metrics have {} bytes, the most is {}",
                            answer.body.size(), limits::kMetricsBytesMax));
  }
  if (valid_utf8_prefix(answer.body) != answer.body.size() ||
      answer.body.find('\0') != std::string::npos) {
    return fail(ErrorKind::Unavailable, "the operator's metrics are not text");
  }
  if (const auto shortage = memory_.set(answer.body.size())) {
    return fail(
        ErrorKind::Unavailable,
        fmt::format("there is no memory for the operator's metrics: {}", to_text(*shortage)));
  }
  answer.body.shrink_to_fit();
  return std::move(answer.body);
}

void GuestMetrics::tell(bool is_answered) {
  for (const io::OneShot<bool>& one : std::exchange(waiting_, {}))
    one.set(is_answered);
}

}  // namespace hangar::operators
