#include "tests/service/load_generator.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/statistics/quantile.h"

namespace fusion {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Clock::duration AsDuration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

int64_t Load::calls(grpc::StatusCode code) const {
  auto it = ms.find(code);
  return it == ms.end() ? 0 : static_cast<int64_t>(it->second.size());
}

std::vector<double> Load::GoodputOfParts(int parts) const {
  std::vector<double> goodput(static_cast<size_t>(parts));
  const double part_seconds = seconds / parts;
  for (double at : ok_at) {
    const auto part = static_cast<size_t>(at / part_seconds);
    if (part < goodput.size()) goodput[part] += 1 / part_seconds;
  }
  return goodput;
}

double Load::Quantile(grpc::StatusCode code, double q) const {
  auto it = ms.find(code);
  return it == ms.end() ? 0 : fusion::Quantile(it->second, q);
}

grpc::ByteBuffer AsBuffer(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// What the calls of one load share.
struct LoadGenerator::Round {
  Requests requests;
  std::chrono::milliseconds deadline;
  const Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> end;  // until then, the end of a call begins another
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::condition_variable changed;
  int64_t under_way = 0;
  Load load;

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return under_way == 0; });
  }
};

LoadGenerator::LoadGenerator(const std::string& address, std::string method, int connections)
    : method_(std::move(method)) {
  for (int i = 0; i < connections; ++i) {
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    args.SetMaxReceiveMessageSize(-1);
    args.SetMaxSendMessageSize(-1);
    auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args);
    channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
    stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
  }
}

void LoadGenerator::Begin(const std::shared_ptr<Round>& round, int64_t number) const {
  struct OneCall {
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer response;
    Clock::time_point start;
  };
  auto call = std::make_shared<OneCall>();
  call->request = round->requests(number);
  call->start = Clock::now();
  call->context.set_deadline(std::chrono::system_clock::now() + round->deadline);
  grpc::GenericStub& stub = *stubs_[static_cast<size_t>(number) % stubs_.size()];
  stub.UnaryCall(&call->context, method_, {}, &call->request, &call->response,
                 [this, round, call](const grpc::Status& status) {
                   const double ms = 1e3 * SecondsSince(call->start);
                   const bool more = round->end.has_value() && Clock::now() < *round->end;
                   {
                     std::lock_guard<std::mutex> lock(round->mutex);
                     round->load.ms[status.error_code()].push_back(ms);
                     if (status.ok()) round->load.ok_at.push_back(SecondsSince(round->start));
                     if (!more && --round->under_way == 0) round->changed.notify_all();
                   }
                   if (more) Begin(round, round->next++);
                 });
}

Load LoadGenerator::Closed(const Requests& requests, int outstanding, double seconds,
                           std::chrono::milliseconds deadline) const {
  auto round = std::make_shared<Round>();
  round->requests = requests;
  round->deadline = deadline;
  round->end = round->start + AsDuration(seconds);
  round->under_way = outstanding;
  for (int i = 0; i < outstanding; ++i) Begin(round, round->next++);
  round->Wait();
  round->load.seconds = SecondsSince(round->start);
  return std::move(round->load);
}

Load LoadGenerator::Open(const Requests& requests, double rate, double seconds,
                         std::chrono::milliseconds deadline) const {
  auto round = std::make_shared<Round>();
  round->requests = requests;
  round->deadline = deadline;
  const auto calls = static_cast<int64_t>(rate * seconds);
  round->under_way = calls;
  for (int64_t i = 0; i < calls; ++i) {
    std::this_thread::sleep_until(round->start + AsDuration(static_cast<double>(i) / rate));
    Begin(round, i);
  }
  const double offered = SecondsSince(round->start);
  round->Wait();
  round->load.seconds = offered;
  return std::move(round->load);
}

}  // namespace fusion
