// Bytes, and descriptors with them, over a local socket that connects two processes.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>
#include <vector>

namespace hangar::io {

// How many bytes were taken, or negative with errno as sendmsg(2) has it; never a signal.
// `descriptor` goes with the first byte; negative: none.
[[nodiscard]] ssize_t send_local(int socket, std::string_view bytes, int descriptor = -1);

enum class Waiting : bool { No, Yes };
// How many bytes there were, zero at the end, or negative with errno as recvmsg(2) has it. What
// came with them is added to `descriptors`, for the caller to close. At most four at a time: the
// kernel closes more.
[[nodiscard]] ssize_t receive_local(int socket, std::span<char> into, std::vector<int>& descriptors,
                                    Waiting waiting);

}  // namespace hangar::io
