#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "client/client.h"

namespace fusion {

/// The deadline that is `timeout` from now.
std::chrono::system_clock::time_point After(Nanoseconds timeout);

/// The first valid traceparent of `said` (most specific first); empty if none is valid.
std::string FirstTrace(std::initializer_list<std::string_view> said);

/// Adds the metadata of every call to a service: the token, `traceparent` (empty: that of the
/// client), and whether the call is in the background.
void Introduce(const ClientOptions& options, grpc::ClientContext* context,
               const std::string& traceparent = {});

}  // namespace fusion
