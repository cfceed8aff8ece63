#include "simulation/guest.h"

#include "gateway/gateway.h"
#include "http/client.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/client.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::simulation {

Guest::Guest(gateway::Gateway& gateway, io::Loop& loop, kube::Identity identity,
             std::string namespace_, std::string target, OnViolation on_violation)
    : gateway_(gateway),
      loop_(loop),
      identity_(std::move(identity)),
      namespace_(std::move(namespace_)),
      target_(std::move(target)),
      on_violation_(std::move(on_violation)) {}

void Guest::begin() {
  view_.clear();
  exchange_ = gateway_.begin(identity_, {.method = "GET", .target = target_}, *this);
}

void Guest::on_head(int status, http::Headers /*headers*/) {
  status_ = status;
  last_status_ = status;
}

void Guest::on_piece(gateway::Piece piece) {
  if (status_ != 200) return;
  const json::Value line = json::parse(gateway::text_of(piece)).value_or(json::Value());
  const std::string_view type = json::string_at(line, {"type"});
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") return;
  const std::string name(json::string_at(line, {"object", "metadata", "name"}));
  if (json::string_at(line, {"object", "metadata", "namespace"}) != namespace_) {
    on_violation_(fmt::format("rights: a guest of {} was shown {} in {}", namespace_, name,
                              json::string_at(line, {"object", "metadata", "namespace"})));
  }
  const bool is_known = view_.contains(name);
  if (is_known == (type == "ADDED")) {
    on_violation_(fmt::format("doubled: a watch showed {} of {}, which was {}", type, name,
                              is_known ? "known" : "not known"));
  }
  if (type == "DELETED") {
    view_.erase(name);
  } else {
    view_[name] = json::string_at(line, {"object", "metadata", "resourceVersion"});
  }
}

void Guest::on_bookmark(std::string /*line*/) {}

void Guest::on_end() {
  status_ = 0;
  again_ = loop_.after(std::chrono::seconds(1), [this] { begin(); });
}

}  // namespace hangar::simulation
