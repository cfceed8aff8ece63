// A guest of the gateway with one request, and the answer to it.
#pragma once

#include "gateway/gateway.h"
#include "http/client.h"
#include "json/value.h"
#include "kube/client.h"

#include <gtest/gtest.h>

#include <compare>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

// One line of a watch.
struct Line {
  std::string type;
  std::string name;
  std::string resource_version;
  auto operator<=>(const Line&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Line& line) {
  return out << line.type << " " << line.name << "@" << line.resource_version;
}

inline Line read_line(std::string_view text) {
  const json::Value event = json::parse(text).value_or(json::Value());
  return {std::string(json::string_at(event, {"type"})),
          std::string(json::string_at(event, {"object", "metadata", "name"})),
          std::string(json::string_at(event, {"object", "metadata", "resourceVersion"}))};
}

// A guest with one request.
class Guest final : public Answer {
 public:
  Guest(Gateway& gateway, const kube::Identity& identity, std::string target,
        std::string method = "GET", std::string body = {}, http::Headers headers = {}) {
    exchange_ = gateway.begin(
        identity, {std::move(method), std::move(target), std::move(headers), std::move(body)},
        *this);
    EXPECT_EQ(status, 0) << "answered too soon";
  }

  void on_head(int code, http::Headers) override {
    EXPECT_EQ(status, 0) << "a second head";
    status = code;
  }
  void on_bound(const std::string& message) override { bound = message; }
  void on_piece(Piece piece) override {
    EXPECT_NE(status, 0) << "a piece before the head";
    EXPECT_FALSE(has_ended) << "a piece after the end";
    pieces.push_back(text_of(piece));
  }
  void on_bookmark(std::string line) override { bookmarks.push_back(std::move(line)); }
  void on_end() override {
    EXPECT_FALSE(has_ended) << "a second end";
    has_ended = true;
  }

  [[nodiscard]] std::string body() const {
    std::string whole;
    for (const std::string& piece : pieces)
      whole += piece;
    return whole;
  }
  [[nodiscard]] std::vector<Line> lines() const {
    std::vector<Line> out;
    for (const std::string& piece : pieces)
      out.push_back(read_line(piece));
    return out;
  }
  void leave() { exchange_.reset(); }

  int status = 0;
  std::string bound;  // Why a bound refuses the request.
  std::vector<std::string> pieces;
  std::vector<std::string> bookmarks;
  bool has_ended = false;

 private:
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace hangar::gateway
