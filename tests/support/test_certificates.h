#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace fusion {

/// A private key and a certificate, PEM.
struct TestIdentity {
  std::string certificate;
  std::string key;
};

/// A certificate authority of a test.
///
///   TestCa ca("test CA");
///   TestIdentity server = ca.Issue("server", "DNS:localhost,IP:127.0.0.1");
///   TestIdentity client = ca.Issue("client", "URI:spiffe://shop/tenant-a");
class TestCa {
 public:
  explicit TestCa(const std::string& name);
  ~TestCa();

  /// For CA files.
  const std::string& certificate() const { return pem_; }
  /// `alternative_names`: as openssl.cnf has them; empty: none. `days`: until it ends, negative: it
  /// has ended.
  TestIdentity Issue(const std::string& name, const std::string& alternative_names, int days = 30);

 private:
  EVP_PKEY* key_;
  X509* certificate_;
  std::string pem_;
  long serial_ = 1;
};

/// A new Ed25519 key, PEM.
struct TestKeyPair {
  std::string private_pem;
  std::string public_pem;
};
TestKeyPair NewEd25519();

}  // namespace fusion
