// The descriptor by which the kernel hands calls over goes from the command's process to the guard, before the exec.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

namespace confine {

struct Handover {
  char word = 0;
  iovec text{&word, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};

  Handover() {
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
  }
};

inline bool give_descriptor(int to, int given) {
  Handover handover;
  cmsghdr* head = CMSG_FIRSTHDR(&handover.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof given);
  std::memcpy(CMSG_DATA(head), &given, sizeof given);
  const bool is_sent = sendmsg(to, &handover.message, MSG_NOSIGNAL) == 1;
  close(given);
  return is_sent;
}

// -1 where the other side ended without giving one.
inline int take_descriptor(int from) {
  Handover handover;
  int taken = -1;
  if (recvmsg(from, &handover.message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* head = CMSG_FIRSTHDR(&handover.message);
  if (head != nullptr && head->cmsg_type == SCM_RIGHTS) std::memcpy(&taken, CMSG_DATA(head), sizeof taken);
  return taken;
}

}  // namespace confine
