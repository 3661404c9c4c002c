#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "server/transport/watched_files.h"

namespace fusion {

/// Paths of the PEM files of a server.
struct CertificateFiles {
  std::string certificate;  // with its chain
  std::string key;
  std::string client_ca;     // CA of client certificates; empty: clients need none
  bool trusted_only = true;  // Reload refuses files that other users can write
};

/// The contents of these files. Checked: the key belongs to the certificate.
struct CertificateSet {
  std::string certificate_pem;
  std::string key_pem;
  std::string client_ca_pem;
  std::string subject;                            // for display: "CN = fusiond.example"
  std::chrono::system_clock::time_point expires;  // of the first certificate of the chain
};

/// InvalidArgument, naming flag and file: a file cannot be read or parsed, the key is not that of
/// the certificate, or the certificate has expired at `now`.
absl::StatusOr<CertificateSet> ReadCertificates(const CertificateFiles& files,
                                                std::chrono::system_clock::time_point now);

/// One status of ReadCertificates for each file that cannot be read; does not check contents.
std::vector<absl::Status> UnreadableCertificates(const CertificateFiles& files);

/// The certificates for new connections. Thread-safe.
class Certificates {
 public:
  /// Fails as ReadCertificates does. `logger` must outlive the result.
  static absl::StatusOr<std::unique_ptr<Certificates>> Open(CertificateFiles files, Logger& logger);

  /// The set in force.
  std::shared_ptr<const CertificateSet> now() const;
  bool asks_clients() const { return !files_.client_ca.empty(); }

  /// Reads the files again if one has changed or the last read failed, or unconditionally if
  /// `always`. Invalid files are logged, and the previous set stays in force. Call it about once a
  /// second, from one thread at a time.
  void Reload(bool always);

 private:
  Certificates(CertificateFiles files, Logger& logger)
      : files_(std::move(files)),
        logger_(logger),
        watched_({files_.certificate, files_.key, files_.client_ca}) {}

  const CertificateFiles files_;
  Logger& logger_;
  WatchedFiles watched_;  // used by Reload only
  bool again_ = false;    // used by Reload only: the last one failed
  mutable Mutex mutex_;
  std::shared_ptr<const CertificateSet> set_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
