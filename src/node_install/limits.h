// Every bound of hangar-node, each with the reason for its number. It is a separate list because
// hangar-node is another program than the host, on another machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::node_install::limits {

// A configuration of containerd. Written out with every default it has some 15 kB; a file a hundred
// times as large is not a configuration.
inline constexpr std::uint64_t kConfigBytesMax = std::uint64_t{2} << 20;

// All paths and values of one configuration, written out one by one. A long table name in front of
// many keys multiplies; real files stay below 100 kB.
inline constexpr std::uint64_t kLeafBytesMax = std::uint64_t{64} << 20;

// One runtime. The largest published shim (spin) has about 100 MB.
inline constexpr std::uint64_t kRuntimeBytesMax = std::uint64_t{512} << 20;

// A SHA256SUMS or a lock file: one line for each runtime.
inline constexpr std::uint64_t kListBytesMax = std::uint64_t{1} << 20;

// As in the kernel: more symbolic links than this on one path are a loop.
inline constexpr int kLinksMax = 40;

// The kept end of a command's output, which has the reason of a failure.
inline constexpr std::size_t kOutputBytesMax = std::size_t{4} << 10;

// One restart, including the wait until containerd answers. systemd itself gives a unit 90 s to
// stop and 90 s to start.
inline constexpr std::chrono::seconds kRestartMax{180};

// Between two probes of a socket that does not answer yet.
inline constexpr std::chrono::milliseconds kProbePause{250};

// For one answer on a socket that accepts connections: containerd loads its plugins before
// it listens.
inline constexpr std::chrono::milliseconds kProbeMax{2000};

}  // namespace hangar::node_install::limits
