#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/transport/certificates.h"

namespace fusion {

/// TLS with the certificates in force when a connection is made. If `certificates` has a CA for
/// clients, clients must present a certificate of it. Make separate credentials for each listening
/// address. They and `certificates` must outlive the server that uses them.
std::shared_ptr<grpc::ServerCredentials> TlsCredentials(Certificates& certificates);

}  // namespace fusion
