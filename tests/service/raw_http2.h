#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/files/unique_fd.h"

namespace fusion {

/// A connection that speaks just enough HTTP/2 to misbehave: what no gRPC client would send, and
/// no reading unless asked. Sources: RFC 9113 (frames), RFC 7541 (headers). Not thread-safe.
class RawHttp2 {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  /// Connects to "host:port" of numbers, or to "unix:/path".
  explicit RawHttp2(const std::string& address);

  bool connected() const { return fd_.valid(); }

  /// The preface, and how much of each answer the server may send before it is asked for more.
  bool Hello(uint32_t answer_window = 65535);

  /// The head of a gRPC call, in as many frames as it takes; `more` fields follow the usual ones.
  /// `part`: more of it will follow.
  bool Call(uint32_t stream, std::string_view method, const Fields& more = {}, bool part = false);
  /// More of a head in parts; it never ends.
  bool Continue(uint32_t stream, const Fields& more);

  /// Bytes of a call's request, as far as the server takes them within `limit`: how many.
  size_t Data(uint32_t stream, std::string_view bytes, bool last, Nanoseconds limit);
  /// A request: gRPC's head of a message, and the message.
  size_t Message(uint32_t stream, std::string_view message, Nanoseconds limit);
  /// The same, whatever the server takes: nothing is read before.
  bool Unasked(uint32_t stream, std::string_view message);
  bool Reset(uint32_t stream);
  /// Ends the request of a call.
  bool End(uint32_t stream);

  /// As they are. False once the server has hung up, or does not read for two seconds.
  bool Send(std::string_view bytes);

  /// Looks at what has come: windows, questions whether somebody is here. False once the server has
  /// hung up.
  bool Read() { return ReadPart(SIZE_MAX); }
  /// The same of so many bytes at most, and lets the server send as many more of that call's
  /// answer.
  bool ReadSlowly(uint32_t stream, size_t bytes);
  /// Bytes of answers that were read; calls that the server has ended.
  int64_t answered_bytes() const { return answered_bytes_; }
  int64_t ended() const { return ended_; }
  /// The fields at the end of the last one, as they came: gRPC writes names and values in clear.
  const std::string& trailers() const { return trailers_; }

 private:
  bool ReadPart(size_t bytes);
  bool Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
  void Handle(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
  void HandleSettings(std::string_view payload);

  UniqueFd fd_;
  std::string unread_;
  int64_t answered_bytes_ = 0;
  int64_t ended_ = 0;
  std::string trailers_;
  int64_t window_ = 65535;  // of the connection
  int64_t stream_window_ = 65535;
  std::map<uint32_t, int64_t> more_;  // of each stream, beyond stream_window_
};

/// `message` behind gRPC's five bytes.
std::string GrpcMessage(std::string_view message);

}  // namespace fusion
