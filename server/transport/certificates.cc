#include "server/transport/certificates.h"

#include <ctime>

#include "core/base/files/file.h"
#include "core/base/files/trusted_path.h"
#include "core/base/parse/pem.h"
#include "core/base/text/text.h"
#include "core/base/utc_time.h"

namespace fusion {
namespace {

constexpr int64_t kMaxPemBytes = int64_t{1} << 20;

absl::StatusOr<std::string> ReadPem(std::string_view flag, const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxPemBytes);
  if (!text.ok()) return InvalidArgument(flag, ": ", Message(text.status()));
  return text;
}

// The first certificate in `pem`, with flag and file in errors.
absl::StatusOr<OpenSslPtr<X509>> FirstOf(std::string_view flag, const std::string& path,
                                         const std::string& pem) {
  absl::StatusOr<OpenSslPtr<X509>> first = FirstCertificate(pem);
  if (!first.ok()) return InvalidArgument(flag, ": ", path, ": ", Message(first.status()));
  return first;
}

std::string SubjectOf(X509* certificate) {
  OpenSslPtr<BIO> out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(bytes)};
}

std::chrono::system_clock::time_point EndOf(X509* certificate) {
  std::tm parts{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts);
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

absl::Status CheckTrusted(const CertificateFiles& files) {
  RETURN_IF_ERROR(CheckTrustedPath(files.certificate));
  RETURN_IF_ERROR(CheckTrustedPath(files.key));
  return files.client_ca.empty() ? absl::OkStatus() : CheckTrustedPath(files.client_ca);
}

}  // namespace

absl::StatusOr<CertificateSet> ReadCertificates(const CertificateFiles& files,
                                                std::chrono::system_clock::time_point now) {
  CertificateSet out;
  ASSIGN_OR_RETURN(out.certificate_pem, ReadPem("--tls-cert", files.certificate));
  ASSIGN_OR_RETURN(out.key_pem, ReadPem("--tls-key", files.key));
  ASSIGN_OR_RETURN(OpenSslPtr<X509> certificate,
                   FirstOf("--tls-cert", files.certificate, out.certificate_pem));
  absl::StatusOr<OpenSslPtr<EVP_PKEY>> key = FirstPrivateKey(out.key_pem);
  if (!key.ok()) return InvalidArgument("--tls-key: ", files.key, ": ", Message(key.status()));
  if (X509_check_private_key(certificate.get(), key->get()) != 1) {
    return InvalidArgument("--tls-key: ", files.key, ": not the key of the certificate of ",
                           files.certificate);
  }
  out.subject = SubjectOf(certificate.get());
  out.expires = EndOf(certificate.get());
  if (now >= out.expires) {
    return InvalidArgument("--tls-cert: ", files.certificate, ": ", out.subject, " expired on ",
                           UtcTimeText(out.expires));
  }
  if (files.client_ca.empty()) return out;
  ASSIGN_OR_RETURN(out.client_ca_pem, ReadPem("--tls-client-ca", files.client_ca));
  RETURN_IF_ERROR(FirstOf("--tls-client-ca", files.client_ca, out.client_ca_pem).status());
  return out;
}

std::vector<absl::Status> UnreadableCertificates(const CertificateFiles& files) {
  std::vector<absl::Status> out;
  for (const auto& [flag, path] :
       {std::pair("--tls-cert", &files.certificate), std::pair("--tls-key", &files.key),
        std::pair("--tls-client-ca", &files.client_ca)}) {
    if (path->empty()) continue;
    const absl::Status read = ReadPem(flag, *path).status();
    if (!read.ok()) out.push_back(read);
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Certificates>> Certificates::Open(CertificateFiles files,
                                                                 Logger& logger) {
  std::unique_ptr<Certificates> out(new Certificates(std::move(files), logger));
  ASSIGN_OR_RETURN(CertificateSet set,
                   ReadCertificates(out->files_, std::chrono::system_clock::now()));
  MutexLock lock(&out->mutex_);
  out->set_ = std::make_shared<const CertificateSet>(std::move(set));
  return out;
}

std::shared_ptr<const CertificateSet> Certificates::now() const {
  MutexLock lock(&mutex_);
  return set_;
}

void Certificates::Reload(bool always) {
  const bool changed = watched_.Changed();
  if (!changed && !again_ && !always) return;
  const absl::Status trusted = files_.trusted_only ? CheckTrusted(files_) : absl::OkStatus();
  absl::StatusOr<CertificateSet> read =
      trusted.ok() ? ReadCertificates(files_, std::chrono::system_clock::now()) : trusted;
  if (!read.ok()) {
    // Certificate and key are two files: they do not match while only one has been replaced.
    if (changed || always) {
      logger_.Error("certificates_not_reloaded",
                    {{"reason", Message(read.status())}, {"in_force", now()->subject}});
    }
    again_ = true;
    return;
  }
  again_ = false;
  const auto set = std::make_shared<const CertificateSet>(*std::move(read));
  {
    MutexLock lock(&mutex_);
    set_ = set;
  }
  logger_.Info("certificates_reloaded",
               {{"subject", set->subject}, {"expires", UtcTimeText(set->expires)}});
}

}  // namespace fusion
