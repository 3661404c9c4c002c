#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "server/transport/watched_files.h"

namespace fusion {

/// Where certificate, key and CA of a server lie: PEM files.
struct CertificateFiles {
  std::string certificate;  // with its chain
  std::string key;
  std::string client_ca;     // of client certificates; empty: clients show none
  bool trusted_only = true;  // changed files that others can write are not read
};

/// What is in such files, checked: the key is that of the certificate.
struct CertificateSet {
  std::string certificate_pem;
  std::string key_pem;
  std::string client_ca_pem;
  std::string subject;                            // for people: "CN = fusiond.example"
  std::chrono::system_clock::time_point expires;  // of the first certificate of the chain
};

/// InvalidArgument, naming flag and file, for what cannot be read or does not belong together, and
/// for a certificate whose time is over.
absl::StatusOr<CertificateSet> ReadCertificates(const CertificateFiles& files,
                                                std::chrono::system_clock::time_point now);

/// Those of the files that cannot be read, each as ReadCertificates says it.
std::vector<absl::Status> UnreadableCertificates(const CertificateFiles& files);

/// The certificates that new connections get. Files that change are read again; what is bad is
/// logged, and the old ones stay. Thread-safe.
class Certificates {
 public:
  static absl::StatusOr<std::unique_ptr<Certificates>> Open(CertificateFiles files, Logger& logger);

  std::shared_ptr<const CertificateSet> now() const;
  bool asks_clients() const { return !files_.client_ca.empty(); }

  /// Reads the files again if one has changed, or in any case if `always`. To be called about once
  /// a second, by one thread at a time.
  void Reload(bool always);

 private:
  Certificates(CertificateFiles files, Logger& logger)
      : files_(std::move(files)),
        logger_(logger),
        watched_({files_.certificate, files_.key, files_.client_ca}) {}

  const CertificateFiles files_;
  Logger& logger_;
  WatchedFiles watched_;  // of Reload alone
  bool again_ = false;    // of Reload alone: the last one failed
  mutable Mutex mutex_;
  std::shared_ptr<const CertificateSet> set_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
