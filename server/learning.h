#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/cancel.h"
#include "core/learn/latency_book.h"
#include "core/learn/learner.h"
#include "core/pipeline/plan_fusion.h"
#include "server/config/config.h"

namespace fusion {

/// What the server learns from reports: its epochs, and the thread that fits them. With
/// `--learn false` it does nothing.
///
///   ASSIGN_OR_RETURN(learning, Learning::Open(config, logger));
///   options.epochs = learning->epochs();
///   ... make pipeline and book ...
///   learning->Start(store, book, pipeline);
///   learning->Stop();
///
/// Thread-safe between Start and Stop.
class Learning {
 public:
  /// Reads the epochs of the store directory. Fails as EpochBook::Open does, naming --store.
  static absl::StatusOr<std::unique_ptr<Learning>> Open(const ServerConfig& config, Logger& logger);
  /// Calls Stop().
  ~Learning();

  /// Null: the server does not learn.
  EpochBook* epochs() const { return epochs_.get(); }

  /// Listens to the book's reports from now on, and starts the thread. Everything referred to
  /// outlives Stop.
  void Start(Store& store, LatencyBook& book, FusionPipeline& pipeline);
  /// Ends the thread. Idempotent.
  void Stop();

  /// As Learner::OnTiming; also before Start.
  void OnTiming(const KernelTimings& measured) {
    if (learner_ != nullptr) learner_->OnTiming(measured);
  }

  /// As EpochBook::List.
  EpochList List(std::optional<std::string_view> tenant) const;
  /// As Learner::Train. FailedPrecondition: the server does not learn.
  absl::StatusOr<std::vector<std::string>> Train(const CancelToken& cancel);
  /// As EpochBook::RollBack. FailedPrecondition also if the server does not learn.
  absl::Status RollBack(int64_t epoch, std::string_view reason);
  LearningStats Stats() const;

 private:
  explicit Learning(Logger& logger) : logger_(logger) {}
  void Work();

  Logger& logger_;
  std::unique_ptr<EpochBook> epochs_;
  std::unique_ptr<Learner> learner_;
  CancelToken stopping_;
  std::atomic<bool> working_{false};  // during a fit
  std::thread thread_;
};

}  // namespace fusion
