// What guests print, kept on disk for `hangar logs`: one private file an operator, and the one
// before it, each of limits::kOperatorLogBytesMax at most. They outlive the process.
//
// A line is "2026-04-08T12:00:00.123456Z stderr what was printed". Before them each file names the
// Operator by its uid: one that is made later under the same name must not show what another
// printed.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hangar::operators {

class OperatorLogs {
 public:
  // `directory` exists and is private to this user.
  explicit OperatorLogs(std::filesystem::path directory) : directory_(std::move(directory)) {}

  struct Line {
    WallTime time;
    std::string_view stream;  // "stdout", "stderr".
    std::string_view text;    // Without a line end; control characters are escaped.
  };
  [[nodiscard]] static std::string format(const Line& line);

  struct Owner {
    kube::ObjectKey key;
    std::string uid = {};  // Empty: of `hangar run`.
  };
  // All of it blocks on the disk: OperatorLogWriter has a thread for that.
  // Forgets what another of the same name printed.
  void begin(const Owner& owner) const;
  // `text` is whole lines.
  [[nodiscard]] Result<> append(const Owner& owner, std::string_view text) const;

  // Oldest first. NotFound when nothing is kept of that operator.
  [[nodiscard]] Result<std::string> read(const kube::ObjectKey& key) const;

  // What `now` has that `before` had not, of two readings one after the other. Begins with a line
  // that says so when what came in between is not kept any more.
  [[nodiscard]] static std::string added(std::string_view before, std::string_view now);

  void remove(const kube::ObjectKey& key) const;
  // Of all Operators but these. What `hangar run` keeps stays.
  void remove_others(std::span<const kube::ObjectKey> keys) const;

 private:
  [[nodiscard]] std::filesystem::path path_of(const kube::ObjectKey& key) const;

  std::filesystem::path directory_;
};

}  // namespace hangar::operators
