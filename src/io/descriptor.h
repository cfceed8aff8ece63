// Owns a file descriptor and closes it on every path out.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace hangar::io {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
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
  // The caller closes it.
  [[nodiscard]] int release() && { return std::exchange(value_, -1); }
  // Returns zero, or the errno that close(2) reported.
  int close() {
    if (value_ < 0) return 0;
    return ::close(std::exchange(value_, -1)) == 0 ? 0 : errno;
  }

 private:
  int value_ = -1;
};

// Opens the same file once more, for reading only: the holder of the new descriptor cannot write to
// the file, even if `descriptor` can. The result is not open if that fails; errno has the reason.
[[nodiscard]] Descriptor open_again_for_reading(int descriptor);

// Writes all bytes, in as many calls as the system needs. Returns zero, or the errno of the write
// that failed.
[[nodiscard]] int write_all(int descriptor, std::string_view bytes);

}  // namespace hangar::io
