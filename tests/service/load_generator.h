#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fusion {

/// What some calls came to.
struct Load {
  double seconds = 0;
  std::map<grpc::StatusCode, std::vector<double>> ms;  // of each call, by how it ended
  std::vector<double> ok_at;  // when each call that ended OK did, in seconds from the start

  int64_t calls(grpc::StatusCode code) const;
  /// Calls that ended OK within that time, a second.
  double goodput() const { return GoodputOfParts(1).front(); }
  /// The same of each of `parts` equal parts of that time.
  std::vector<double> GoodputOfParts(int parts) const;
  /// Of calls that ended so; 0 if none did.
  double Quantile(grpc::StatusCode code, double q) const;
};

/// Makes calls of one unary method, with bytes that it does not look at. Thread-safe.
class LoadGenerator {
 public:
  using Requests = std::function<grpc::ByteBuffer(int64_t number)>;

  /// `method`: "/fusion.v1.FusionService/PlanFusion". Every connection is a TCP connection, or one
  /// over a unix socket, of its own.
  LoadGenerator(const std::string& address, std::string method, int connections);

  /// As many calls as `outstanding` at any time, each one begun by the end of another.
  Load Closed(const Requests& requests, int outstanding, double seconds,
              std::chrono::milliseconds deadline = std::chrono::seconds(60)) const;

  /// `rate` calls a second, whatever becomes of them. Waits for all of them.
  Load Open(const Requests& requests, double rate, double seconds,
            std::chrono::milliseconds deadline) const;

 private:
  struct Round;
  void Begin(const std::shared_ptr<Round>& round, int64_t number) const;

  const std::string method_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
};

/// One piece of memory as a message.
grpc::ByteBuffer AsBuffer(const std::string& bytes);

}  // namespace fusion
