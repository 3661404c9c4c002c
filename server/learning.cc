#include "server/learning.h"

#include <absl/cleanup/cleanup.h>

#include "core/base/threads/named_thread.h"

namespace fusion {
namespace {

constexpr std::chrono::milliseconds kLook(100);

absl::Status LearningIsOff() {
  return ServerPrecondition("this server does not learn (--learn false)");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Learning>> Learning::Open(const ServerConfig& config,
                                                         Logger& logger) {
  std::unique_ptr<Learning> out(new Learning(logger));
  if (!config.learn) return out;
  const std::string& store = config.store_dir;
  absl::StatusOr<std::unique_ptr<EpochBook>> epochs =
      EpochBook::Open({.path = store.empty() ? "" : StrCat(store, "/epochs"),
                       .canary_percent = config.canary_percent},
                      logger);
  if (!epochs.ok()) return Annotate(epochs.status(), "--store");
  out->epochs_ = *std::move(epochs);
  return out;
}

Learning::~Learning() { Stop(); }

void Learning::Start(Store& store, LatencyBook& book, FusionPipeline& pipeline) {
  if (epochs_ == nullptr) return;
  Learner::Callbacks callbacks{
      .preview =
          [&pipeline](const StoredPlan& plan, const PlanCalibration& constants,
                      const CancelToken& cancel) {
            return pipeline.Preview(plan, constants, cancel);
          },
      .stays = [&store](const Digest& plan) { return store.IsPinned(plan); }};
  learner_ = std::make_unique<Learner>(LearnerOptions(), store, book.Timings(), *epochs_,
                                       std::move(callbacks), logger_);
  book.SetListener([this](const StoredPlan& plan, const std::vector<KernelTimings>& measured) {
    learner_->OnReport(plan, measured);
  });
  thread_ = NamedThread("learner", [this] { Work(); });
}

void Learning::Stop() {
  stopping_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void Learning::Work() {
  for (int look = 0; stopping_.Check().ok(); ++look) {
    std::this_thread::sleep_for(kLook);
    if (look % 10 != 9) continue;
    if (working_.exchange(true)) continue;
    learner_->Tick(stopping_);
    working_ = false;
  }
}

EpochList Learning::List(std::optional<std::string_view> tenant) const {
  return epochs_ == nullptr ? EpochList() : epochs_->List(tenant);
}

absl::StatusOr<std::vector<std::string>> Learning::Train(const CancelToken& cancel) {
  if (learner_ == nullptr) return LearningIsOff();
  while (working_.exchange(true)) {
    RETURN_IF_ERROR(cancel.Check());
    RETURN_IF_ERROR(stopping_.Check());
    std::this_thread::sleep_for(kLook);
  }
  absl::Cleanup done = [this] { working_ = false; };
  const std::optional<Nanoseconds> left = cancel.Remaining();
  const CancelToken both(stopping_, left ? Clock::Real().Now() + *left : Nanoseconds::max());
  std::vector<std::string> outcomes = learner_->Train(both);
  RETURN_IF_ERROR(both.Check());
  return outcomes;
}

absl::Status Learning::RollBack(int64_t epoch, std::string_view reason) {
  if (epochs_ == nullptr) return LearningIsOff();
  RETURN_IF_ERROR(epochs_->RollBack(epoch, reason));
  epochs_->Flush();  // an acknowledged order outlives a crash
  return absl::OkStatus();
}

LearningStats Learning::Stats() const {
  if (learner_ == nullptr) return {};
  LearningStats out = epochs_->Stats();
  out.drifts = learner_->drifts();
  out.measured_over_expected = learner_->MeasuredOverExpected();
  return out;
}

}  // namespace fusion
