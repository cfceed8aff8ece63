#include "operators/operator_log.h"

#include "base/limits.h"
#include "io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace hangar::operators {

namespace {

std::unexpected<Error> failed(std::string_view doing, const std::filesystem::path& path) {
  return fail(
      errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable,
      fmt::format("{} {}: {}", doing, path.string(), std::generic_category().message(errno)));
}

std::filesystem::path previous_of(std::filesystem::path path) {
  return path += ".1";
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::string OperatorLogs::format(const Line& line) {
  std::string text = fmt::format("{} {} ", to_rfc3339_micro(line.time), line.stream);
  for (const char character : line.text) {
    // A guest must not be able to forge lines, nor to play with the terminal of who reads them.
    const auto byte = static_cast<unsigned char>(character);
    if (byte == '\t' || (byte >= 0x20 && byte != 0x7f)) {
      text += character;
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  text += '\n';
  return text;
}

// Kubernetes' names have neither '/' nor a leading '_'.
std::filesystem::path OperatorLogs::path_of(const kube::ObjectKey& key) const {
  return directory_ / fmt::format("{}_{}.log", key.namespace_, key.name);
}

Result<> OperatorLogs::append(const kube::ObjectKey& key, std::string_view text) const {
  const std::filesystem::path path = path_of(key);
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.number() < 0) return failed("open", path);
  while (!text.empty()) {
    const ::ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  struct ::stat status{};
  if (::fstat(file.number(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) > limits::kOperatorLogBytesMax &&
      ::rename(path.c_str(), previous_of(path).c_str()) != 0) {
    return failed("rename", path);
  }
  return {};
}

Result<std::string> OperatorLogs::read(const kube::ObjectKey& key) const {
  // One turn's output is appended at once, whatever the bound: OutputAllowance's burst.
  constexpr std::uint64_t kFileBytesMax =
      limits::kOperatorLogBytesMax + 8 * limits::kOperatorOutputBytesMax;
  const std::filesystem::path path = path_of(key);
  Result<std::string> before = io::read_file(previous_of(path), kFileBytesMax);
  Result<std::string> now = io::read_file(path, kFileBytesMax);
  if (!before && !now) {
    return fail(ErrorKind::NotFound,
                fmt::format("no output of {} is kept in {}; it has printed nothing yet, or another "
                            "host runs it",
                            key.to_string(), directory_.string()));
  }
  return before.value_or("") + now.value_or("");
}

void OperatorLogs::remove(const kube::ObjectKey& key) const {
  const std::filesystem::path path = path_of(key);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::filesystem::remove(previous_of(path), ignored);
}

}  // namespace hangar::operators
