// Sends bytes, and file descriptors with them, over a local socket that connects two processes.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>
#include <vector>

namespace hangar::io {

// Returns how many bytes were sent, or a negative value with errno as sendmsg(2) sets it; never
// raises a signal. The descriptors, four at most, go with the first byte.
[[nodiscard]] ssize_t send_local(int socket, std::string_view bytes,
                                 std::span<const int> descriptors);
// The same with one descriptor; negative: none.
[[nodiscard]] ssize_t send_local(int socket, std::string_view bytes, int descriptor = -1);

enum class Waiting : bool { No, Yes };
// Returns how many bytes were received, zero at the end of the stream, or a negative value with
// errno as recvmsg(2) sets it. Descriptors that came with the bytes are appended to `descriptors`;
// the caller closes them. At most four at a time: the kernel closes the others.
[[nodiscard]] ssize_t receive_local(int socket, std::span<char> into, std::vector<int>& descriptors,
                                    Waiting waiting);

}  // namespace hangar::io
