#include "io/part.h"

#include "io/loop.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::io {

Part::Part(Loop& loop, std::string_view part) : loop_(loop), whole_(loop.activity()) {
  next(part);
}

Part::~Part() {
  loop_.set_activity(whole_);
}

void Part::next(std::string_view part) {
  Loop::Doing doing;
  if (whole_) {
    doing = {.name = fmt::format("{}: {}", whole_->name, part), .payer = whole_->payer};
  } else {
    doing.name = part;
  }
  loop_.set_activity(std::make_shared<const Loop::Doing>(std::move(doing)));
}

Resumed::Resumed(Loop& loop, Loop::DoingPtr doing) : loop_(loop), before_(loop.activity()) {
  loop_.set_activity(std::move(doing));
}

Resumed::~Resumed() {
  loop_.set_activity(std::move(before_));
}

}  // namespace hangar::io
