// A file descriptor that is closed on every path out.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hangar::io {

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      (void)close();
      value_ = std::exchange(other.value_, -1);
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { (void)close(); }

  [[nodiscard]] int value() const { return value_; }
  [[nodiscard]] bool is_open() const { return value_ >= 0; }
  // Zero, or the errno that closing reported.
  int close() {
    if (value_ < 0) return 0;
    return ::close(std::exchange(value_, -1)) == 0 ? 0 : errno;
  }

 private:
  int value_;
};

}  // namespace hangar::io
