// What guests print, kept on disk for `hangar logs`: one private file an operator or an instance of
// an Airway, and the one before it, each of limits::kOperatorLogBytesMax or kFlightLogBytesMax at
// most. They outlive the process.
//
// A line is "2026-04-08T12:00:00.123456Z stderr what was printed". Before them each file names the
// Operator by its uid: one that is made later under the same name must not show what another
// printed.
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "output/limits.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hangar::output {

// Of the last lines of each instance of an Airway, of which there may be thousands.
inline constexpr std::uint64_t kFlightLogBytesMax = 16 * limits::kKiB;

class LogFiles {
 public:
  // `directory` exists and is private to this user.
  explicit LogFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  struct Line {
    WallTime time;
    std::string_view stream;  // "stdout", "stderr".
    std::string_view text;    // Without a line end; control characters are escaped.
  };
  [[nodiscard]] static std::string format(const Line& line);

  struct Owner {
    kube::ObjectKey key;
    std::string uid = {};       // Empty: of `hangar run`.
    std::string resource = {};  // "backends.examples.com"; empty: an Operator.
  };
  // All of it blocks on the disk: LogWriter has a thread for that.
  // Forgets what another of the same name printed.
  void begin(const Owner& owner) const;
  // `text` is whole lines.
  [[nodiscard]] Result<> append(const Owner& owner, std::string_view text) const;

  // Oldest first. NotFound when nothing is kept of that one.
  [[nodiscard]] Result<std::string> read(const kube::ObjectKey& key,
                                         const std::string& resource = {}) const;
  // The same of all of one resource, their lines by time: "<time> <namespace>/<name> stderr ...".
  [[nodiscard]] Result<std::string> read_all(const std::string& resource) const;

  // What `now` has that `before` had not, of two readings one after the other. Begins with a line
  // that says so when what came in between is not kept any more.
  [[nodiscard]] static std::string added(std::string_view before, std::string_view now);

  void remove(const kube::ObjectKey& key, const std::string& resource = {}) const;
  // Of all Operators but these, or all of the resource. What `hangar run` keeps stays.
  void remove_others(std::span<const kube::ObjectKey> keys, const std::string& resource = {}) const;
  // Of all resources but these.
  void remove_other_resources(std::span<const std::string> resources) const;

  // A line of read() with its owner's name.
  [[nodiscard]] static std::string named(std::string_view line, const kube::ObjectKey& key);

 private:
  [[nodiscard]] std::filesystem::path directory_of(const std::string& resource) const;
  [[nodiscard]] std::filesystem::path path_of(const kube::ObjectKey& key,
                                              const std::string& resource) const;

  std::filesystem::path directory_;
};

}  // namespace hangar::output
