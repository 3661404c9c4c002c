#include "tests/service/raw_http2.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace fusion {
namespace {

enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kResetStream = 3,
  kSettings = 4,
  kPing = 6,
  kWindowUpdate = 8,
  kContinuation = 9,
};
constexpr uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4;
constexpr uint16_t kInitialWindow = 4;
constexpr size_t kFrameHead = 9, kMaxFrame = 16384;
constexpr std::chrono::milliseconds kSendLimit(2000);

std::string BigEndian(uint64_t value, int bytes) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift & 0xff);
  }
  return out;
}

uint32_t Number(std::string_view bytes) {
  uint32_t value = 0;
  for (char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

// RFC 7541, 5.1 and 5.2, with a prefix of seven bits and without Huffman's code.
std::string Text(std::string_view text) {
  std::string out;
  if (text.size() < 127) {
    out += static_cast<char>(text.size());
  } else {
    out += '\x7f';
    size_t rest = text.size() - 127;
    for (; rest > 127; rest >>= 7) out += static_cast<char>((rest & 127) | 128);
    out += static_cast<char>(rest);
  }
  return out.append(text);
}

// Literals that nobody keeps.
std::string Block(const RawHttp2::Fields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) {
    out += '\0';
    out += Text(name) + Text(value);
  }
  return out;
}

}  // namespace

std::string GrpcMessage(std::string_view message) {
  return std::string(1, '\0').append(BigEndian(message.size(), 4)).append(message);
}

RawHttp2::RawHttp2(const std::string& address) {
  const size_t colon = address.rfind(':');
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_un local;
  } peer{};
  socklen_t length = sizeof(peer.v4);
  if (address.starts_with("unix:")) {
    peer.local.sun_family = AF_UNIX;
    std::snprintf(peer.local.sun_path, sizeof(peer.local.sun_path), "%s",
                  address.c_str() + colon + 1);
    length = sizeof(peer.local);
  } else {
    peer.v4.sin_family = AF_INET;
    peer.v4.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.v4.sin_addr);
  }
  fd_ = UniqueFd(socket(peer.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd_.valid()) return;
  timeval limit{.tv_sec = kSendLimit / std::chrono::seconds(1), .tv_usec = 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (connect(fd_.get(), &peer.any, length) != 0) fd_.Reset();
}

bool RawHttp2::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawHttp2::Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame = BigEndian(payload.size(), 3);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  return Send(frame.append(BigEndian(stream, 4)).append(payload));
}

bool RawHttp2::Hello(uint32_t answer_window) {
  return Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") &&
         Frame(kSettings, 0, 0, BigEndian(kInitialWindow, 2) + BigEndian(answer_window, 4));
}

bool RawHttp2::Call(uint32_t stream, std::string_view method, const Fields& more, bool part) {
  Fields fields = {
      {":method", "POST"},    {":scheme", "http"}, {":path", std::string(method)},
      {":authority", "here"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  fields.insert(fields.end(), more.begin(), more.end());
  const std::string block = Block(fields);
  for (size_t at = 0; at < block.size(); at += kMaxFrame) {
    const bool ends = !part && at + kMaxFrame >= block.size();
    if (!Frame(at == 0 ? kHeaders : kContinuation, ends ? kEndHeaders : 0, stream,
               std::string_view(block).substr(at, kMaxFrame))) {
      return false;
    }
  }
  return true;
}

bool RawHttp2::Continue(uint32_t stream, const Fields& more) {
  return Frame(kContinuation, 0, stream, Block(more));
}

bool RawHttp2::Reset(uint32_t stream) {
  return Frame(kResetStream, 0, stream, BigEndian(8, 4));  // CANCEL
}

bool RawHttp2::End(uint32_t stream) { return Frame(kData, kEndStream, stream, ""); }

size_t RawHttp2::Data(uint32_t stream, std::string_view bytes, bool last, Nanoseconds limit) {
  const Nanoseconds end = Clock::Real().Now() + limit;
  size_t sent = 0;
  while (sent < bytes.size()) {
    if (!Read()) return sent;
    const int64_t room = std::min(window_, stream_window_ + more_[stream]);
    if (room <= 0) {
      if (Clock::Real().Now() > end) return sent;
      pollfd polled{fd_.get(), POLLIN, 0};
      poll(&polled, 1, 10);
      continue;
    }
    const std::string_view piece =
        bytes.substr(sent, std::min(kMaxFrame, static_cast<size_t>(room)));
    const bool ends = last && sent + piece.size() == bytes.size();
    if (!Frame(kData, ends ? kEndStream : 0, stream, piece)) return sent;
    window_ -= static_cast<int64_t>(piece.size());
    more_[stream] -= static_cast<int64_t>(piece.size());
    sent += piece.size();
  }
  return sent;
}

size_t RawHttp2::Message(uint32_t stream, std::string_view message, Nanoseconds limit) {
  return Data(stream, GrpcMessage(message), /*last=*/true, limit);
}

bool RawHttp2::Unasked(uint32_t stream, std::string_view message) {
  return Frame(kData, kEndStream, stream, GrpcMessage(message));
}

bool RawHttp2::ReadSlowly(uint32_t stream, size_t bytes) {
  const int64_t before = answered_bytes_;
  if (!ReadPart(bytes)) return false;
  const auto read = static_cast<uint64_t>(answered_bytes_ - before);
  return read == 0 || (Frame(kWindowUpdate, 0, stream, BigEndian(read, 4)) &&
                       Frame(kWindowUpdate, 0, 0, BigEndian(read, 4)));
}

bool RawHttp2::ReadPart(size_t bytes) {
  char buffer[1 << 16];
  while (bytes > 0) {
    const ssize_t got = recv(fd_.get(), buffer, std::min(sizeof(buffer), bytes), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) return false;
    unread_.append(buffer, static_cast<size_t>(got));
    bytes -= static_cast<size_t>(got);
  }
  size_t at = 0;
  while (unread_.size() - at >= kFrameHead) {
    const std::string_view head = std::string_view(unread_).substr(at, kFrameHead);
    const size_t length = Number(head.substr(0, 3));
    if (unread_.size() - at < kFrameHead + length) break;
    Handle(static_cast<uint8_t>(head[3]), static_cast<uint8_t>(head[4]), Number(head.substr(5)),
           std::string_view(unread_).substr(at + kFrameHead, length));
    at += kFrameHead + length;
  }
  unread_.erase(0, at);
  return true;
}

void RawHttp2::Handle(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  if (type == kSettings && (flags & kAck) == 0) {
    HandleSettings(payload);
    Frame(kSettings, kAck, 0, "");
  } else if (type == kPing && (flags & kAck) == 0) {
    Frame(kPing, kAck, 0, payload);
  } else if (type == kData) {
    answered_bytes_ += static_cast<int64_t>(payload.size());
  } else if (type == kHeaders && (flags & kEndStream) != 0) {
    ++ended_;
    trailers_ = payload;
  } else if (type == kWindowUpdate) {
    (stream == 0 ? window_ : more_[stream]) += Number(payload);
  }
}

void RawHttp2::HandleSettings(std::string_view payload) {
  for (; payload.size() >= 6; payload.remove_prefix(6)) {
    if (Number(payload.substr(0, 2)) == kInitialWindow) {
      stream_window_ = Number(payload.substr(2, 4));
    }
  }
}

}  // namespace fusion
