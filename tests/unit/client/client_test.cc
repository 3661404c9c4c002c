// Client against a service in this process that says what a test wants.
#include "client/client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>

#include "core/wire/basics/limits.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "tests/support/served_client.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::GetKernelsResponse KernelOf(const std::string& key) {
  v1::GetKernelsResponse out;
  out.set_key(key);
  out.set_state(v1::KERNEL_STATE_READY);
  out.set_content_sha256(DigestToWire(Sha256(key)));
  out.set_data(key);
  out.set_last(true);
  return out;
}

class FakeService : public v1::FusionService::Service {
 public:
  std::function<grpc::Status(grpc::ServerContext*, v1::PlanFusionResponse*)> plan;
  // Empty: every key is a kernel whose bytes are the key.
  std::vector<v1::GetKernelsResponse> parts;
  std::vector<int> key_counts;  // of the GetKernels calls
  std::atomic<int> calls{0};

  grpc::Status PlanFusion(grpc::ServerContext* context, const v1::PlanFusionRequest* request,
                          v1::PlanFusionResponse* response) override {
    ++calls;
    last = *request;
    return plan(context, response);
  }
  grpc::Status GetKernels(grpc::ServerContext*, const v1::GetKernelsRequest* request,
                          grpc::ServerWriter<v1::GetKernelsResponse>* writer) override {
    key_counts.push_back(request->keys_size());
    for (const v1::GetKernelsResponse& part : parts) writer->Write(part);
    if (!parts.empty()) return grpc::Status::OK;
    for (const std::string& key : request->keys()) writer->Write(KernelOf(key));
    return grpc::Status::OK;
  }
  v1::PlanFusionRequest last;
};

class ClientTest : public ServedClientTest {
 protected:
  FakeService service_;
};

TEST_F(ClientTest, ARefusedConnectionIsUnavailableSoonAndSaysWhy) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(address_, {.connect_timeout = std::chrono::hours(1)});
  EXPECT_TRUE(absl::IsUnavailable(client.status())) << client.status();
  EXPECT_THAT(std::string(Message(client.status())),
              AllOf(HasSubstr(address_), HasSubstr("No such file or directory")));
}

TEST_F(ClientTest, AConnectionThatIsRefusedAtFirstIsTriedAgain) {
  std::thread later([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    Serve(&service_);
  });
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(
      address_,
      {.connect_timeout = std::chrono::minutes(1), .refused_for = std::chrono::minutes(1)});
  later.join();
  EXPECT_TRUE(client.ok()) << client.status();
}

TEST_F(ClientTest, WaitsForAServiceThatStartsLater) {
  std::thread later([this] { Serve(&service_); });
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(
      address_, {.connect_timeout = std::chrono::minutes(1), .wait_for_ready = true});
  later.join();
  EXPECT_TRUE(client.ok()) << client.status();
}

TEST_F(ClientTest, TriesAgainWhileTheServiceIsUnavailable) {
  service_.plan = [this](auto*, auto*) {
    return service_.calls < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "later")
                              : grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "node 'x' is odd");
  };
  Serve(&service_);
  absl::Status status = Connect()->PlanFusion(Request()).status();
  EXPECT_EQ(service_.calls, 3);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(Message(status), "node 'x' is odd");
}

TEST_F(ClientTest, GivesUpAfterItsAttempts) {
  service_.plan = [](auto*, auto*) { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "never"); };
  Serve(&service_);
  absl::Status status = Connect({.attempts = 2})->PlanFusion(Request()).status();
  EXPECT_EQ(service_.calls, 2);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(Message(status), StrCat("the service at ", address_, " is unavailable: never"));
}

TEST_F(ClientTest, StopsAtItsDeadline) {
  service_.plan = [](grpc::ServerContext* context, auto*) {
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  Serve(&service_);
  absl::Status status =
      Connect({.deadline = std::chrono::milliseconds(50)})->PlanFusion(Request()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("no answer from"));
}

TEST_F(ClientTest, ATimeOfTheServersOwnIsNotTakenForItsDeadline) {
  service_.plan = [](auto*, auto*) {
    return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "the store did not answer");
  };
  Serve(&service_);
  absl::Status status = Connect()->PlanFusion(Request()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(Message(status), "the store did not answer");
}

TEST_F(ClientTest, RefusesAMalformedAnswer) {
  service_.plan = [](auto*, v1::PlanFusionResponse* response) {
    response->mutable_plan()->set_version(99);
    return grpc::Status::OK;
  };
  Serve(&service_);
  EXPECT_TRUE(absl::IsDataLoss(Connect()->PlanFusion(Request()).status()));
}

TEST_F(ClientTest, SendsWhatWasAskedFor) {
  service_.plan = [](auto*, auto*) { return grpc::Status::CANCELLED; };
  Serve(&service_);
  FusionRequest request = Request();
  request.mode = PlanMode::kByDeadline;
  request.ready_within = std::chrono::milliseconds(25);
  request.options.hints.batch_size = 3;
  request.options.dim_bindings = {{"seq", 128}};
  request.dumps = {DumpKind::kSource};
  request.request_id = "me";
  ASSERT_FALSE(Connect()->PlanFusion(request).ok());
  const v1::PlanFusionRequest& wire = service_.last;
  EXPECT_EQ(wire.onnx_model(), "model");
  EXPECT_EQ(wire.target().isa(), "avx2");
  EXPECT_EQ(wire.mode(), v1::PLAN_MODE_BY_DEADLINE);
  EXPECT_EQ(wire.ready_within_ms(), 25u);
  EXPECT_EQ(wire.hints().batch_size(), 3);
  EXPECT_EQ(wire.options().dim_bindings().at("seq"), 128);
  ASSERT_EQ(wire.dumps_size(), 1);
  EXPECT_EQ(wire.dumps(0), v1::DUMP_KIND_SOURCE);
  EXPECT_EQ(wire.request_id(), "me");
}

TEST_F(ClientTest, RefusesRequestsThatCannotBeSent) {
  Serve(&service_);
  std::unique_ptr<Client> client = Connect({.max_message_bytes = 1000});
  EXPECT_TRUE(absl::IsInvalidArgument(client->PlanFusion({}).status()));
  FusionRequest request = Request();
  request.onnx_model = std::string(1000, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(client->PlanFusion(request).status()));
  request = Request();
  request.options.dim_bindings = {{"\xff", 1}};
  EXPECT_TRUE(absl::IsInvalidArgument(client->PlanFusion(request).status()));
  EXPECT_EQ(service_.calls, 0);
}

TEST_F(ClientTest, RefusesAKernelWithAnotherDigest) {
  v1::GetKernelsResponse part;
  part.set_key(DigestToWire(Sha256("k")));
  part.set_state(v1::KERNEL_STATE_READY);
  part.set_content_sha256(DigestToWire(Sha256("bytes")));
  part.set_data("bytes");
  part.set_last(true);
  service_.parts = {part};
  Serve(&service_);
  std::unique_ptr<Client> client = Connect();
  absl::StatusOr<std::vector<FetchedKernel>> kernels = client->GetKernels({Sha256("k")});
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  EXPECT_EQ(kernels->front().binary, "bytes");
  service_.parts[0].set_data("bytEs");
  EXPECT_TRUE(absl::IsDataLoss(client->GetKernels({Sha256("k")}).status()));
}

TEST_F(ClientTest, MoreKernelsThanACallMayAskForTakeSeveral) {
  Serve(&service_);
  std::vector<Digest> keys;
  for (int i = 0; i < 2 * kMaxKernelKeys + 1; ++i) keys.push_back(Sha256(StrCat(i)));
  absl::StatusOr<std::vector<FetchedKernel>> kernels = Connect()->GetKernels(keys);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  EXPECT_THAT(service_.key_counts, ElementsAre(kMaxKernelKeys, kMaxKernelKeys, 1));
  ASSERT_EQ(kernels->size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ((*kernels)[i].key, keys[i]);
    ASSERT_EQ((*kernels)[i].binary, DigestToWire(keys[i]));
  }
  EXPECT_TRUE(Connect()->GetKernels({}).value().empty());
  EXPECT_EQ(service_.key_counts.size(), 3u) << "nothing to ask";
}

TEST_F(ClientTest, TellsErrorsOfTheServiceFromThoseOfThisProcess) {
  service_.plan = [](auto*, auto*) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full");
  };
  Serve(&service_);
  absl::Status status = Connect()->PlanFusion(Request()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(IsFromService(status));
  EXPECT_FALSE(IsFromService(ResourceExhausted("no memory")));
}

TEST_F(ClientTest, SaysThatAServerIsNoFusiond) {
  grpc::CallbackGenericService other;  // knows no method
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&other);
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
  absl::Status status = Connect()->PlanFusion(Request()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("no fusiond"));
}

TEST_F(ClientTest, AServiceThatKnowsNoProgressIsAskedPlainly) {
  service_.plan = [](grpc::ServerContext*, v1::PlanFusionResponse*) {
    return grpc::Status(grpc::INVALID_ARGUMENT, "the words of PlanFusion");
  };
  Serve(&service_);
  int shown = 0;
  absl::Status status =
      Connect()->PlanFusion(Request(), [&](const PlanProgress&) { ++shown; }).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(Message(status), "the words of PlanFusion");
  EXPECT_EQ(service_.calls, 1);
  EXPECT_EQ(shown, 0);
}

TEST_F(ClientTest, HealthIsWhatTheServiceSays) {
  Serve(&service_);
  std::unique_ptr<Client> client = Connect();
  EXPECT_TRUE(client->CheckHealth(std::chrono::minutes(1)).ok());
  server_->GetHealthCheckService()->SetServingStatus(false);
  EXPECT_TRUE(absl::IsUnavailable(client->CheckHealth(std::chrono::minutes(1))));
}

}  // namespace
}  // namespace fusion
