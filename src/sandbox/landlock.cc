#include "sandbox/landlock.h"

#include "base/result.h"
#include "sandbox/sandboxed.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace hangar::sandbox {

namespace {

// The interface of linux/landlock.h; the headers of older systems lack parts of it.
struct RulesetAttributes {
  std::uint64_t handled_access_fs = 0;
  std::uint64_t handled_access_net = 0;  // Version 4.
  std::uint64_t scoped = 0;              // Version 6.
};
constexpr unsigned kAskVersion = 1;
constexpr std::uint64_t kBindAndConnect = 3;
constexpr std::uint64_t kAbstractSocketsAndSignals = 3;
// How many kinds of file access each version has, from version 1 on.
constexpr std::array<unsigned, 5> kFileAccesses = {13, 14, 15, 15, 16};

constexpr std::size_t size_of(int version) {
  if (version >= 6) return sizeof(RulesetAttributes);
  return version >= 4 ? offsetof(RulesetAttributes, scoped)
                      : offsetof(RulesetAttributes, handled_access_net);
}

std::unexpected<Error> fail_errno(const char* doing) {
  return fail(ErrorKind::Unavailable,
              fmt::format("Landlock: {}: {}", doing, std::generic_category().message(errno)));
}

}  // namespace

int landlock_version() {
  if (!kIsSandboxed) return 0;
  const long answer = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
  // Landlock is not built in, was switched off at boot, or a container's filter hides it.
  return answer <= 0 ? 0 : static_cast<int>(answer);
}

Result<int> deny_files_and_others() {
  const int version = landlock_version();
  if (version == 0) return 0;

  RulesetAttributes attributes;
  const auto known = std::min<std::size_t>(static_cast<std::size_t>(version), kFileAccesses.size());
  attributes.handled_access_fs = (std::uint64_t{1} << kFileAccesses.at(known - 1)) - 1;
  if (version >= 4) attributes.handled_access_net = kBindAndConnect;
  if (version >= 6) attributes.scoped = kAbstractSocketsAndSignals;
  const int ruleset =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size_of(version), 0U));
  if (ruleset < 0) return fail_errno("make a set of rules");
  // The ruleset contains no rule that allows anything.
  const long restricted = ::syscall(SYS_landlock_restrict_self, ruleset, 0U);
  const int code = errno;
  ::close(ruleset);
  errno = code;
  if (restricted != 0) return fail_errno("follow it");
  return version;
}

}  // namespace hangar::sandbox
