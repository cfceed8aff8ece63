#include "airways/refusals.h"

#include "reconcile/limits.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hangar::airways {

void Refusals::add(std::string_view message) {
  ++count_;
  if (text_.size() >= limits::kConditionMessageBytesMax) {
    ++left_out_;
    return;
  }
  if (count_ > 1) text_ += "; ";
  text_ += message;
}

std::string Refusals::to_string() const {
  return left_out_ == 0 ? text_ : fmt::format("{}; and {} others", text_, left_out_);
}

}  // namespace hangar::airways
