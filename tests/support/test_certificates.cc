#include "tests/support/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "core/base/check.h"

namespace fusion {
namespace {

constexpr long kDay = 24 * 3600;

template <typename Write>
std::string Pem(Write write) {
  BIO* out = BIO_new(BIO_s_mem());
  FUSION_CHECK(write(out) == 1, "it can be written");
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(out, &data);
  std::string text(data, static_cast<size_t>(bytes));
  BIO_free(out);
  return text;
}

std::string PemOf(X509* certificate) {
  return Pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}
std::string PemOf(EVP_PKEY* key) {
  return Pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

void Extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  FUSION_CHECK(extension != nullptr, "the extension is well-formed");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* NewCertificate(const std::string& name, EVP_PKEY* key, long serial, int days) {
  X509* out = X509_new();
  X509_set_version(out, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(out), serial);
  X509_gmtime_adj(X509_getm_notBefore(out), -400 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(out), days * kDay);
  X509_set_pubkey(out, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(out), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const uint8_t*>(name.c_str()), -1, -1, 0);
  return out;
}

}  // namespace

TestCa::TestCa(const std::string& name) : key_(EVP_EC_gen("P-256")) {
  certificate_ = NewCertificate(name, key_, serial_++, /*days=*/365);
  X509_set_issuer_name(certificate_, X509_get_subject_name(certificate_));
  Extend(certificate_, certificate_, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate_, certificate_, NID_key_usage, "critical,keyCertSign,cRLSign");
  X509_sign(certificate_, key_, EVP_sha256());
  pem_ = PemOf(certificate_);
}

TestCa::~TestCa() {
  X509_free(certificate_);
  EVP_PKEY_free(key_);
}

TestIdentity TestCa::Issue(const std::string& name, const std::string& alternative_names,
                           int days) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = NewCertificate(name, key, serial_++, days);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate_));
  if (!alternative_names.empty()) {
    Extend(certificate, certificate_, NID_subject_alt_name, alternative_names);
  }
  X509_sign(certificate, key_, EVP_sha256());
  TestIdentity out{.certificate = PemOf(certificate), .key = PemOf(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return out;
}

TestKeyPair NewEd25519() {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  TestKeyPair out{.private_pem = PemOf(key),
                  .public_pem = Pem([&](BIO* to) { return PEM_write_bio_PUBKEY(to, key); })};
  EVP_PKEY_free(key);
  return out;
}

}  // namespace fusion
