// The files of a node, below the directory where its root is mounted.
//
// The node's own links are followed inside that root only: /etc/containerd -> /srv/containerd means
// the node's /srv, and ../../.. ends at the node's root. No link of the node can lead to files of
// the machine that hangar-node runs on (a container's own files).
#pragma once

#include "base/result.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

// Closes on every path out.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  [[nodiscard]] int value() const { return value_; }
  [[nodiscard]] bool is_open() const { return value_ >= 0; }

 private:
  int value_;
};

// The permissions that a file should have.
enum class Access : std::uint8_t {
  KeepOrPrivate,  // As the file was before; 0600 for a new one.
  KeepOrPublic,   // The same; 0644 for a new one.
  Program,        // 0755.
};

// Paths are absolute, as the node sees them. An interface so that tests can make the disk full.
//
// Errors of all: NotFound; Denied; Unavailable, with ReadOnly or NoSpace as reason if that is
// the cause.
class Files {
 public:
  virtual ~Files() = default;

  // LimitExceeded if there are more than `bytes_max`.
  [[nodiscard]] virtual Result<std::string> read(std::string_view path,
                                                 std::uint64_t bytes_max) const = 0;
  // The digest of a file of any size.
  [[nodiscard]] virtual Result<std::string> sha256(std::string_view path) const = 0;
  [[nodiscard]] virtual bool exists(std::string_view path) const = 0;
  // Names, sorted; empty if there is no such directory.
  [[nodiscard]] virtual std::vector<std::string> list(std::string_view directory) const = 0;
  // The first of `needles` that the file contains; the file may be large.
  [[nodiscard]] virtual std::optional<std::string> find_in(
      std::string_view path, const std::vector<std::string>& needles) const = 0;

  // Readers see the old file or the whole new one, even after a crash. A replaced file keeps its
  // owner, mode and extended attributes (SELinux).
  [[nodiscard]] virtual Result<> write(std::string_view path, std::string_view bytes,
                                       Access access) = 0;
  // The same for a program, read from `source` to its end. Only bytes with this SHA-256 become a
  // file: otherwise ChecksumMismatch, with nothing left behind.
  [[nodiscard]] virtual Result<> install(std::string_view path, int source,
                                         std::string_view sha256) = 0;
  // Does nothing if the file does not exist.
  [[nodiscard]] virtual Result<> remove(std::string_view path) = 0;
  // Creates it and its parents, mode 0755; returns those that it created, outermost first.
  [[nodiscard]] virtual Result<std::vector<std::string>> make_directories(
      std::string_view path) = 0;
  // Does nothing if the directory is not empty or does not exist.
  virtual void remove_empty_directory(std::string_view path) = 0;
  // The lock is held until the descriptor closes. Busy if another process holds it.
  [[nodiscard]] virtual Result<Descriptor> lock(std::string_view directory) = 0;

  // A path of this process to the node's `path`, valid as long as the descriptor is open:
  // for sockets.
  struct Reached {
    Descriptor directory;
    std::string path;
  };
  [[nodiscard]] virtual Result<Reached> reach(std::string_view path) const = 0;
};

class NodeFiles final : public Files {
 public:
  // NotFound if `root` is not a directory.
  [[nodiscard]] static Result<NodeFiles> open(const std::string& root);

  // The directory of the root itself, to compare it with others.
  [[nodiscard]] int root() const { return root_.value(); }

  [[nodiscard]] Result<std::string> read(std::string_view path,
                                         std::uint64_t bytes_max) const override;
  [[nodiscard]] Result<std::string> sha256(std::string_view path) const override;
  [[nodiscard]] bool exists(std::string_view path) const override;
  [[nodiscard]] std::vector<std::string> list(std::string_view directory) const override;
  [[nodiscard]] std::optional<std::string> find_in(
      std::string_view path, const std::vector<std::string>& needles) const override;
  [[nodiscard]] Result<> write(std::string_view path, std::string_view bytes,
                               Access access) override;
  [[nodiscard]] Result<> install(std::string_view path, int source,
                                 std::string_view sha256) override;
  [[nodiscard]] Result<> remove(std::string_view path) override;
  [[nodiscard]] Result<std::vector<std::string>> make_directories(std::string_view path) override;
  void remove_empty_directory(std::string_view path) override;
  [[nodiscard]] Result<Descriptor> lock(std::string_view directory) override;
  [[nodiscard]] Result<Reached> reach(std::string_view path) const override;

 private:
  explicit NodeFiles(Descriptor root) : root_(std::move(root)) {}

  // A directory, and a name in it that is not a symbolic link (it may be absent).
  struct Place {
    Descriptor directory;
    std::string name;
  };
  [[nodiscard]] Result<Place> locate(std::string_view path) const;
  [[nodiscard]] Result<Descriptor> open_file(std::string_view path, int flags) const;

  Descriptor root_;
};

}  // namespace hangar::node_install
