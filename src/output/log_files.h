// The output of guests, kept on disk for `hangar logs`. Each operator and each instance of an
// Airway has a private file and its predecessor, each of at most limits::kOperatorLogBytesMax or
// kFlightLogBytesMax. The files outlive the process.
//
// A line is "2026-04-08T12:00:00.123456Z stderr the output". The first line of each file has the
// uid of the Operator: a later Operator of the same name must not show the output of the
// earlier one.
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

// Size of the last output of each instance of an Airway; there may be thousands of instances.
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
    std::string uid = {};       // Empty: the guest of `hangar run`.
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

  // The lines of `now` that are not in `before`, for two successive readings. If output in between
  // is no longer kept, the result starts with a line that says so.
  [[nodiscard]] static std::string added(std::string_view before, std::string_view now);

  void remove(const kube::ObjectKey& key, const std::string& resource = {}) const;
  // Removes the files of all other Operators, or of all other owners of the resource. Files of
  // `hangar run` stay.
  void remove_others(std::span<const kube::ObjectKey> keys, const std::string& resource = {}) const;
  // Removes the files of all other resources.
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
