#pragma once

#include <cstdint>
#include <string>

namespace fusion {

// The system counts received bytes for TCP connections but not for unix sockets, and gives all
// clients of a socket file the same name. gRPC has no interface for either. So this program
// interposes two functions of the C library, recvmsg and getpeername, which gRPC calls.

/// Bytes that this process has received with recvmsg from the descriptor number `fd` since it
/// started, including earlier files with this number. 0 for numbers >= 2^20. Thread-safe.
int64_t BytesReceivedOn(int fd);

/// During its lifetime, getpeername(fd) on this thread returns the address of a unix socket whose
/// path is `name` (at most 107 bytes). At most one per thread at a time.
class PeerNameOverride {
 public:
  PeerNameOverride(int fd, std::string name);
  ~PeerNameOverride();
  PeerNameOverride(const PeerNameOverride&) = delete;
  PeerNameOverride& operator=(const PeerNameOverride&) = delete;
};

}  // namespace fusion
