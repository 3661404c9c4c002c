#include "server/transport/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>

#include "core/base/threads/mutex.h"

namespace fusion {
namespace {

// gRPC's FileWatcherCertificateProvider accepts a key that does not match the certificate and then
// refuses every connection. It cannot be triggered, and does not tell when a certificate expires.
// So Certificates passes its checked sets to the C interface, which asks before each handshake.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(Certificates& certificates) : certificates_(certificates) {}
  ~ReloadingCredentials() override {
    if (credentials_ != nullptr) grpc_server_credentials_release(credentials_);
  }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    if (credentials_ == nullptr) {
      credentials_ = grpc_ssl_server_credentials_create_with_options(
          grpc_ssl_server_credentials_create_options_using_config_fetcher(
              certificates_.asks_clients()
                  ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                  : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
              &ReloadingCredentials::Fetch, this));
    }
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadingCredentials*>(self)->FetchInto(config);
  }

  // The first call must return certificates; later ones only changed ones.
  grpc_ssl_certificate_config_reload_status FetchInto(grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const CertificateSet> now = certificates_.now();
    MutexLock lock(&mutex_);
    if (now == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    grpc_ssl_pem_key_cert_pair pair{now->key_pem.c_str(), now->certificate_pem.c_str()};
    // gRPC 1.51 requires root certificates even if clients need no certificate.
    const std::string& roots =
        now->client_ca_pem.empty() ? now->certificate_pem : now->client_ca_pem;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    given_ = std::move(now);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  Certificates& certificates_;
  grpc_server_credentials* credentials_ = nullptr;
  Mutex mutex_;
  std::shared_ptr<const CertificateSet> given_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(Certificates& certificates) {
  return std::make_shared<ReloadingCredentials>(certificates);
}

}  // namespace fusion
