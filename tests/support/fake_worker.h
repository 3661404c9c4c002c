#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/base/kernel_abi.h"
#include "core/compile/worker_pool.h"

namespace fusion {

/// What a fake worker does with a job.
enum class FakeAct : uint8_t {
  kCompile,  // "binary of <label>"
  kError,    // as if the compiler had refused the source
  kDie,
  kGarbage,  // answers nonsense
  kHang,
};
using FakeDecision = std::function<FakeAct(const CompileJob&)>;

/// What tests may know of the talk between a pool and its fake workers. Thread-safe.
struct FakeTalk {
  std::atomic<bool> broken{false};  // no worker can be started
  // Set before the pool starts, on a slot's thread; not OK: its worker cannot be started.
  std::function<absl::Status(int slot)> on_start;
  std::atomic<int> looks{0};    // how often the pool turned to a worker: once per message or wait
  std::atomic<int> hanging{0};  // jobs that a worker has begun and will not end
  std::function<void(const WorkerJob&)> on_job;  // set before the pool starts; on a worker's thread
  std::function<RaceTimes(const KernelRace&)> on_race;  // likewise; not set: nothing was run
};

/// A worker that is a thread.
class FakeWorker final : public WorkerProcess {
 public:
  /// `talk` may be null.
  FakeWorker(FakeDecision decide, FakeTalk* talk) : decide_(std::move(decide)), talk_(talk) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ours_ = std::make_unique<FrameChannel>(UniqueFd(fds[0]), kMaxWorkerMessageBytes);
    thread_ = std::thread([this, fd = fds[1]] { Serve(fd); });
  }
  ~FakeWorker() override { End(Nanoseconds(0)); }

  FrameChannel& channel() override {
    if (talk_ != nullptr) ++talk_->looks;
    return *ours_;
  }
  std::string End(Nanoseconds /*grace*/) override {
    killed_ = true;
    if (thread_.joinable()) thread_.join();
    return died_ ? "killed by signal 11 (Segmentation fault)" : "killed by signal 9 (Killed)";
  }

 private:
  static constexpr Nanoseconds kForEver = std::chrono::seconds(30);

  void Serve(int fd) {
    FrameChannel channel{UniqueFd(fd), kMaxWorkerMessageBytes};
    auto send = [&](const std::string& body) { EXPECT_TRUE(channel.Send(body, kForEver).ok()); };
    send(EncodeReply(WorkerHello{FUSION_KERNEL_ABI_VERSION, "avx2", "none"}));
    while (!killed_) {
      absl::StatusOr<std::optional<std::string>> body =
          channel.Receive(std::chrono::milliseconds(2));
      if (!body.ok()) return;
      if (!body->has_value()) continue;
      const WorkerTask task = DecodeTask(**body).value();
      if (const auto* race = std::get_if<KernelRace>(&task)) {
        WorkerRaceResult result;
        if (talk_ != nullptr && talk_->on_race) result.times = talk_->on_race(*race);
        result.times.runners.resize(race->runners.size());
        send(EncodeReply(result));
        continue;
      }
      const auto& work = std::get<WorkerJob>(task);
      if (talk_ != nullptr && talk_->on_job) talk_->on_job(work);
      FakeAct act = decide_(work.job);
      if (act == FakeAct::kDie) {
        died_ = true;
        return;
      }
      send(EncodeReply(WorkerStage{"compile"}));
      if (act == FakeAct::kHang) {
        if (talk_ != nullptr) ++talk_->hanging;
        continue;
      }
      if (act == FakeAct::kGarbage) {
        send("\xc1");
        continue;
      }
      WorkerResult result;
      result.binary = StrCat("binary of ", work.job.label);
      if (act == FakeAct::kError) {
        result.status = Internal("g++ exited with 1");
        result.log = "kernel.cc:3: error: no";
      }
      send(EncodeReply(result));
    }
  }

  const FakeDecision decide_;
  FakeTalk* const talk_;
  std::unique_ptr<FrameChannel> ours_;
  std::atomic<bool> killed_{false};
  std::atomic<bool> died_{false};
  std::thread thread_;
};

class FakeStarter final : public WorkerStarter {
 public:
  /// `talk` may be null; it outlives the starter and its workers.
  explicit FakeStarter(FakeDecision decide, FakeTalk* talk = nullptr)
      : decide_(std::move(decide)), talk_(talk) {}

  absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(int slot) override {
    if (talk_ != nullptr && talk_->broken) return FailedPrecondition("no such program");
    if (talk_ != nullptr && talk_->on_start) RETURN_IF_ERROR(talk_->on_start(slot));
    return std::make_unique<FakeWorker>(decide_, talk_);
  }

 private:
  const FakeDecision decide_;
  FakeTalk* const talk_;
};

}  // namespace fusion
