// Guests' output, kept on disk for `hangar logs`: for each operator or instance of an Airway a
// private file, and the one before it, each of limits::kOperatorLogBytesMax or kFlightLogBytesMax
// at most. They outlive the process.
//
// A line is "2026-04-08T12:00:00.123456Z stderr the output". The first line of each file names the
// Operator by its uid: a later one of the same name must not show the output of the earlier one.
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

// Kept of the last lines of each instance of an Airway, of which there may be thousands.
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
  // All functions block on the disk: LogWriter has a thread for that.
  // Deletes the output of an earlier owner of the same name.
  void begin(const Owner& owner) const;
  // `text` consists of whole lines.
  [[nodiscard]] Result<> append(const Owner& owner, std::string_view text) const;

  // Oldest first. NotFound when no output of that owner is kept.
  [[nodiscard]] Result<std::string> read(const kube::ObjectKey& key,
                                         const std::string& resource = {}) const;
  // The same for all owners of one resource, their lines by time: "<time> <namespace>/<name>
  // stderr ...".
  [[nodiscard]] Result<std::string> read_all(const std::string& resource) const;

  // The lines that `now` has and `before` had not, of two successive readings. Begins with a line
  // that says so when output in between is not kept any more.
  [[nodiscard]] static std::string added(std::string_view before, std::string_view now);

  void remove(const kube::ObjectKey& key, const std::string& resource = {}) const;
  // Removes the files of all Operators but these, or of all owners of the resource but these. Those
  // of `hangar run` stay.
  void remove_others(std::span<const kube::ObjectKey> keys, const std::string& resource = {}) const;
  // Removes the files of all resources but these.
  void remove_other_resources(std::span<const std::string> resources) const;

  // A line of read() with its owner's name added.
  [[nodiscard]] static std::string named(std::string_view line, const kube::ObjectKey& key);

 private:
  [[nodiscard]] std::filesystem::path directory_of(const std::string& resource) const;
  [[nodiscard]] std::filesystem::path path_of(const kube::ObjectKey& key,
                                              const std::string& resource) const;

  std::filesystem::path directory_;
};

}  // namespace hangar::output
