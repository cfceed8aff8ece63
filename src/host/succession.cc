#include "host/succession.h"

#include "base/limits.h"
#include "base/result.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/loop.h"
#include "operators/carried_operator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::host {

namespace {

// "PID:DESCRIPTOR" of the manifest. With the pid, so that no other process takes it for its own.
constexpr const char* kVariable = "HANGAR_CARRIED_OPERATORS";

// The kernel's bound for one argument is 128 KiB.
constexpr std::size_t kArgumentsBytesMax = 8 * limits::kMiB;

constexpr int kFirstDescriptor = 3;  // After the standard ones.
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

// Nothing if the variable is not for this process.
std::optional<int> manifest_number() {
  // NOLINTBEGIN(concurrency-mt-unsafe): before any thread starts.
  const char* const value = std::getenv(kVariable);
  if (value == nullptr) return std::nullopt;
  const std::string text = value;
  ::unsetenv(kVariable);
  // NOLINTEND(concurrency-mt-unsafe)
  const char* const end = text.data() + text.size();
  pid_t pid = 0;
  int number = -1;
  const auto [colon, no_pid] = std::from_chars(text.data(), end, pid);
  if (no_pid != std::errc() || colon == end || *colon != ':') return std::nullopt;
  const auto [rest, no_number] = std::from_chars(colon + 1, end, number);
  const bool is_number = no_number == std::errc() && rest == end;
  if (!is_number || pid != ::getpid() || number < kFirstDescriptor) return std::nullopt;
  return number;
}

// The files without names that this process has inherited: only a manifest tells their purpose.
std::vector<int> inherited_files() {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename().string();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    struct stat status{};
    const int flags = ::fcntl(number, F_GETFD);
    const bool is_unnamed = number >= kFirstDescriptor && flags >= 0 && (flags & FD_CLOEXEC) == 0 &&
                            ::fstat(number, &status) == 0 && S_ISREG(status.st_mode) &&
                            status.st_nlink == 0;
    if (is_unnamed) found.push_back(number);
  }
  return found;
}

// A file that its writer can change no more.
Result<std::string> read_manifest(const io::Descriptor& manifest) {
  const int seals = ::fcntl(manifest.value(), F_GET_SEALS);
  struct stat status{};
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(manifest.value(), &status) != 0) {
    return fail(ErrorKind::Corrupt, "the manifest is not a sealed file");
  }
  if (static_cast<std::size_t>(status.st_size) > operators::kCarriedBytesMax) {
    return fail(ErrorKind::Corrupt, "the manifest is too large");
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(manifest.value(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(ErrorKind::Corrupt, "the manifest cannot be read");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<std::vector<std::string>> own_arguments() {
  const std::string text = HANGAR_TRY(io::read_file("/proc/self/cmdline", kArgumentsBytesMax));
  std::vector<std::string> arguments;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    arguments.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return arguments;
}

}  // namespace

Inheritance take_inheritance() {
  const std::optional<int> number = manifest_number();
  if (!number) return {};
  std::vector<int> inherited = inherited_files();
  const auto take = [&inherited](int wanted) -> Result<io::Descriptor> {
    if (std::erase(inherited, wanted) == 0) {
      return fail(ErrorKind::Corrupt, fmt::format("descriptor {} is not one of its files", wanted));
    }
    if (::fcntl(wanted, F_SETFD, FD_CLOEXEC) != 0) {
      return fail(ErrorKind::Corrupt, fmt::format("descriptor {}: {}", wanted, reason_of(errno)));
    }
    return io::Descriptor(wanted);
  };
  Inheritance inheritance;
  const Result<io::Descriptor> manifest = take(*number);
  const Result<std::string> bytes =
      manifest ? read_manifest(*manifest) : std::unexpected(manifest.error());
  Result<operators::CarriedFleet> fleet =
      bytes ? operators::decode(*bytes, io::Loop::now(), take) : std::unexpected(bytes.error());
  if (fleet) {
    inheritance.fleet = *std::move(fleet);
  } else {
    inheritance.problem = fleet.error().message();
  }
  // They hold disk space that nothing needs any more.
  for (const int rest : inherited)
    ::close(rest);
  return inheritance;
}

Result<Successor> Successor::make(std::filesystem::path program, operators::CarriedFleet fleet) {
  const auto failed = [](std::string_view doing) {
    return fail(ErrorKind::Unavailable,
                fmt::format("the manifest of sleeping operators: {}: {}", doing, reason_of(errno)));
  };
  io::Descriptor manifest(::memfd_create("hangar-operators", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!manifest.is_open()) return failed("create");
  operators::leave_unreadable(fleet, io::Loop::now());
  const std::string bytes = operators::encode(fleet);
  if (const int error = io::write_all(manifest.value(), bytes); error != 0) {
    errno = error;
    return failed("write");
  }
  if (::fcntl(manifest.value(), F_ADD_SEALS, kSeals) != 0) return failed("seal");
  return Successor(std::move(program), std::move(fleet), std::move(manifest));
}

Error Successor::exec() const {
  Result<std::vector<std::string>> arguments = own_arguments();
  if (!arguments) return std::move(arguments).error();
  std::vector<char*> pointers;
  for (std::string& argument : *arguments)
    pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // Whatever a library may have left open. Kernels before 5.11 do not know it.
  std::ignore = ::close_range(kFirstDescriptor, ~0U, CLOSE_RANGE_CLOEXEC);
  const auto pass_on = [](const io::Descriptor& descriptor) {
    if (descriptor.is_open()) ::fcntl(descriptor.value(), F_SETFD, 0);
  };
  pass_on(manifest_);
  pass_on(fleet_.snapshots);
  for (const operators::CarriedOperator& carried : fleet_.operators)
    if (carried.guest.layer) pass_on(carried.guest.layer->file);
  const std::string value = fmt::format("{}:{}", ::getpid(), manifest_.value());
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread is left.
  ::setenv(kVariable, value.c_str(), 1);
  ::execv(program_.c_str(), pointers.data());
  return {ErrorKind::Unavailable,
          fmt::format("execute {}: {}", program_.string(), reason_of(errno))};
}

}  // namespace hangar::host
