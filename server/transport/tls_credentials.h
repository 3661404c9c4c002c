#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/transport/certificates.h"

namespace fusion {

/// TLS with the certificates of the moment: each new connection gets those that are in force then.
/// With a CA for clients, they must show a certificate of it. For one address: a second one needs
/// credentials of its own. They and `certificates` outlive the server that uses them.
std::shared_ptr<grpc::ServerCredentials> TlsCredentials(Certificates& certificates);

}  // namespace fusion
