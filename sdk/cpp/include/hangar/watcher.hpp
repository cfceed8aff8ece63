// Changes to the objects of one kind, from a list on and without a gap. Uses nlohmann-json, which
// has to be on the include path; operator.hpp alone needs no library.

#pragma once

#include "hangar/operator.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::op {

using Json = nlohmann::json;

// The value of a key if it is a string, else an empty text.
inline std::string text_of(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Lists the objects of a collection, then watches them: it continues from its last version when the
// server ends the watch, and lists again when that version is too old. It keeps no objects, never
// ends, and waits between attempts after an error. It sends no time limit with a watch, because
// each end would wake the module for nothing.
class Watcher {
 public:
  struct Event {
    enum class Type : std::uint8_t {
      Listed,   // An object that exists.
      Done,     // The list is complete; objects not in it are gone. No object.
      Changed,  // Created or changed.
      Deleted,  // Its last state.
      Failed,   // An error; object is a Status. The watcher retries.
    };
    Type type = Type::Failed;
    Json object;
  };

  // `path` is that of the collection, such as "/api/v1/namespaces/default/configmaps".
  explicit Watcher(std::string path) : path_(std::move(path)) {}

  Task<Event> next() {
    for (;;) {
      if (next_item_ < items_.size()) {
        co_return Event{Event::Type::Listed, std::move(items_[next_item_++])};
      }
      if (is_list_wanted_) {
        co_await back_off();
        if (auto failed = co_await list()) co_return *std::move(failed);
        continue;
      }
      if (is_done_due_) {
        is_done_due_ = false;
        items_.clear();
        next_item_ = 0;
        co_return Event{Event::Type::Done, {}};
      }
      if (!stream_) {
        co_await back_off();
        stream_.emplace(Request{.path = path_ + "?watch=true&allowWatchBookmarks=true" +
                                        "&resourceVersion=" + resource_version_});
        has_lines_ = false;
        const int status = co_await stream_->status();
        if (status != 200) co_return trouble(status, "watch of " + path_);
      }
      const std::optional<std::string> line = co_await stream_->line();
      if (!line) {
        if (!has_lines_) ++failures_;
        stream_.reset();
        continue;
      }
      has_lines_ = true;
      if (auto event = read(*line)) co_return *std::move(event);
    }
  }

 private:
  // Reads all pages of the list; returns a Failed event after an error.
  Task<std::optional<Event>> list() {
    items_.clear();
    next_item_ = 0;
    std::string continue_token;
    do {
      const Response answer = co_await send({.path = path_ + "?limit=250" + continue_token});
      Json page = Json::parse(answer.body.view(), nullptr, /*allow_exceptions=*/false);
      if (!answer || !page.is_object()) {
        items_.clear();
        co_return trouble(answer.status, text_of(page, "message"));
      }
      const Json metadata = page.value("metadata", Json::object());
      resource_version_ = text_of(metadata, "resourceVersion");
      continue_token = text_of(metadata, "continue");
      if (!continue_token.empty()) continue_token.insert(0, "&continue=");
      for (Json& item : page["items"])
        items_.push_back(std::move(item));
    } while (!continue_token.empty());
    failures_ = 0;
    is_fresh_ = true;
    is_list_wanted_ = false;
    is_done_due_ = true;
    co_return std::nullopt;
  }

  std::optional<Event> read(const std::string& line) {
    Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object() || !event["object"].is_object()) return trouble(0, "unreadable line");
    Json& object = event["object"];
    const std::string type = text_of(event, "type");
    if (type == "ERROR") {
      const Json code = object.value("code", Json(0));
      return trouble(code.is_number_integer() ? code.get<int>() : 0, text_of(object, "message"));
    }
    failures_ = 0;
    is_fresh_ = false;
    resource_version_ = text_of(object.value("metadata", Json::object()), "resourceVersion");
    if (type == "DELETED") return Event{Event::Type::Deleted, std::move(object)};
    if (type == "ADDED" || type == "MODIFIED") {
      return Event{Event::Type::Changed, std::move(object)};
    }
    return std::nullopt;  // A bookmark.
  }

  // Prepares the retry after an error. Expired (410) causes another list and does not count as a
  // failure, unless the expired version is that of the last list.
  Event trouble(int status, std::string message) {
    stream_.reset();
    if (status == 410) is_list_wanted_ = true;
    if (status != 410 || is_fresh_) ++failures_;
    return Event{Event::Type::Failed,
                 {{"kind", "Status"}, {"code", status}, {"message", std::move(message)}}};
  }

  Task<> back_off() {
    constexpr std::chrono::milliseconds kFirst{500};
    constexpr unsigned kDoublingsMax = 7;  // About a minute.
    if (failures_ > 0) co_await sleep(kFirst * (1U << std::min(failures_ - 1, kDoublingsMax)));
  }

  std::string path_;
  bool is_list_wanted_ = true;
  bool is_done_due_ = false;
  Json items_ = Json::array();  // Of the last list; those before next_item_ were returned.
  std::size_t next_item_ = 0;
  std::string resource_version_;
  std::optional<Stream> stream_;
  bool has_lines_ = false;  // Of this watch.
  bool is_fresh_ = true;    // No event since the last list.
  unsigned failures_ = 0;   // In a row.
};

}  // namespace hangar::op
