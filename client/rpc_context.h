#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "client/client.h"

namespace fusion {

/// The deadline of what may take so long from now.
std::chrono::system_clock::time_point After(Nanoseconds timeout);

/// Of what is said of a call's `traceparent`, the most particular first, the first that is one;
/// empty: none is.
std::string FirstTrace(std::initializer_list<std::string_view> said);

/// Says in a call's metadata who calls, what the call is part of (`traceparent`; empty: as all of
/// the client's), and whether that one waits: for every call to a service.
void Introduce(const ClientOptions& options, grpc::ClientContext* context,
               const std::string& traceparent = {});

}  // namespace fusion
