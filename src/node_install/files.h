// The files of a node, below the directory that its root is mounted at.
//
// The node's own links are followed inside that root only: /etc/containerd -> /srv/containerd means
// the node's /srv, and ../../.. ends at the node's root. Nothing of the machine that hangar-node
// runs on (a container's own files) can be reached through what lies on the node.
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

// What a file is to be, apart from its bytes.
enum class Access : std::uint8_t {
  KeepOrPrivate,  // As the file was before; 0600 for a new one.
  KeepOrPublic,   // The same; 0644 for a new one.
  Program,        // 0755.
};

// Paths are absolute, as the node sees them. An interface so that tests can make the disk full.
//
// Errors of all: NotFound; Denied; Unavailable with ReadOnly or NoSpace as reason where that is it.
class Files {
 public:
  virtual ~Files() = default;

  // LimitExceeded if there are more than `bytes_max`.
  [[nodiscard]] virtual Result<std::string> read(std::string_view path,
                                                 std::uint64_t bytes_max) const = 0;
  // Of a file of any size.
  [[nodiscard]] virtual Result<std::string> sha256(std::string_view path) const = 0;
  [[nodiscard]] virtual bool exists(std::string_view path) const = 0;
  // Names, sorted; empty if there is no such directory.
  [[nodiscard]] virtual std::vector<std::string> list(std::string_view directory) const = 0;
  // Whether any of `needles` is in the file, which may be large; the first of them that is.
  [[nodiscard]] virtual std::optional<std::string> find_in(
      std::string_view path, const std::vector<std::string>& needles) const = 0;

  // Readers see the old file or the whole new one, also after a crash. Owner, mode and extended
  // attributes (SELinux) of a file that is replaced stay.
  [[nodiscard]] virtual Result<> write(std::string_view path, std::string_view bytes,
                                       Access access) = 0;
  // The same for a program that is read from `source` until its end. Only bytes with this SHA-256
  // become a file: ChecksumMismatch, with nothing left behind.
  [[nodiscard]] virtual Result<> install(std::string_view path, int source,
                                         std::string_view sha256) = 0;
  // Nothing if there is none.
  [[nodiscard]] virtual Result<> remove(std::string_view path) = 0;
  // With its parents, mode 0755; those that were made, outermost first.
  [[nodiscard]] virtual Result<std::vector<std::string>> make_directories(
      std::string_view path) = 0;
  // Nothing if it is not empty or not there.
  virtual void remove_empty_directory(std::string_view path) = 0;
  // Held until the descriptor closes. Busy if another process holds it.
  [[nodiscard]] virtual Result<Descriptor> lock(std::string_view directory) = 0;

  // A path of this process that leads to what the node has at `path` as long as the descriptor is
  // open: for sockets.
  struct Reached {
    Descriptor directory;
    std::string path;
  };
  [[nodiscard]] virtual Result<Reached> reach(std::string_view path) const = 0;
};

class NodeFiles final : public Files {
 public:
  // NotFound if `root` is no directory.
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

  // A directory, and the name in it that is no symbolic link (it may be absent).
  struct Place {
    Descriptor directory;
    std::string name;
  };
  [[nodiscard]] Result<Place> locate(std::string_view path) const;
  [[nodiscard]] Result<Descriptor> open_file(std::string_view path, int flags) const;

  Descriptor root_;
};

}  // namespace hangar::node_install
