// A guest that watches ConfigMaps through the gateway, and checks what it is shown.
#pragma once

#include "gateway/gateway.h"
#include "http/client.h"
#include "io/loop.h"
#include "kube/client.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::simulation {

class Guest final : public gateway::Answer {
 public:
  using OnViolation = std::function<void(std::string)>;
  // It may read only what is in `namespace_`, and tries `target`.
  Guest(gateway::Gateway& gateway, io::Loop& loop, kube::Identity identity, std::string namespace_,
        std::string target, OnViolation on_violation);
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest() override = default;

  void begin();
  // The versions of the objects that it has been shown, by name; those of the open watch.
  [[nodiscard]] const std::map<std::string, std::string>& view() const { return view_; }
  [[nodiscard]] bool is_open() const { return status_ == 200; }
  [[nodiscard]] int last_status() const { return last_status_; }

  void on_head(int status, http::Headers headers) override;
  void on_piece(gateway::Piece piece) override;
  void on_bookmark(std::string line) override;
  void on_end() override;

 private:
  gateway::Gateway& gateway_;
  io::Loop& loop_;
  const kube::Identity identity_;
  const std::string namespace_;
  const std::string target_;
  const OnViolation on_violation_;
  std::unique_ptr<gateway::Exchange> exchange_;
  io::Loop::Timer again_;
  int status_ = 0;
  int last_status_ = 0;
  std::map<std::string, std::string> view_;
};

}  // namespace hangar::simulation
