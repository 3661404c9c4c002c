#pragma once

#include <memory>
#include <string>

#include "client/client.h"

namespace fusion {

/// A gRPC channel to HOST:PORT or unix:/PATH with the limits, retries and TLS of `options`. Does
/// not wait for a connection.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ClientOptions& options);

}  // namespace fusion
