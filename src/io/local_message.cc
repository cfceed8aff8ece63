#include "io/local_message.h"

#include "base/assert.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace hangar::io {

namespace {

constexpr std::size_t kDescriptorsMax = 4;

}  // namespace

ssize_t send_local(int socket, std::string_view bytes, int descriptor) {
  return send_local(socket, bytes, std::span(&descriptor, descriptor < 0 ? 0 : 1));
}

ssize_t send_local(int socket, std::string_view bytes, std::span<const int> descriptors) {
  HANGAR_ASSERT(descriptors.size() <= kDescriptorsMax, "the kernel would close the others");
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t size = -1;
  do {
    size = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  return size;
}

ssize_t receive_local(int socket, std::span<char> into, std::vector<int>& descriptors,
                      Waiting waiting) {
  iovec part{.iov_base = into.data(), .iov_len = into.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const int flags = MSG_CMSG_CLOEXEC | (waiting == Waiting::No ? MSG_DONTWAIT : 0);
  ssize_t size = -1;
  do {
    size = ::recvmsg(socket, &message, flags);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return size;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t bytes = header->cmsg_len - CMSG_LEN(0);
    for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + at, sizeof descriptor);
      descriptors.push_back(descriptor);
    }
  }
  return size;
}

}  // namespace hangar::io
