#pragma once

#include <cstdint>
#include <string>

namespace fusion {

// The system counts what comes over a TCP connection, but not what comes over a unix socket, and
// gives all clients of a socket file the same name. gRPC has no interface for either. So this
// program defines two functions of the C library itself, recvmsg and getpeername, in front of the
// library's own. gRPC's calls go through them.

/// Bytes that this process has received with recvmsg from the file descriptor `fd` since it
/// started, also for earlier files with this number. 0 for numbers of 2^20 and above. Thread-safe.
int64_t BytesReceivedOn(int fd);

/// While it lives, getpeername(fd) on this thread answers with the address of a unix socket whose
/// path is `name`, at most 107 bytes. One a thread at a time.
class PeerNameOverride {
 public:
  PeerNameOverride(int fd, std::string name);
  ~PeerNameOverride();
  PeerNameOverride(const PeerNameOverride&) = delete;
  PeerNameOverride& operator=(const PeerNameOverride&) = delete;
};

}  // namespace fusion
