// ResilientModel against a service in this process: which of its errors end the tries, and when the
// next one is.
#include "client/fallback/resilient_model.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/threads/mutex.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "tests/support/served_client.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Answers every request for a plan with an error; knows when they came.
class RefusingService : public v1::FusionService::Service {
 public:
  std::function<grpc::Status(size_t call)> answer;  // from 1

  grpc::Status PlanFusion(grpc::ServerContext*, const v1::PlanFusionRequest*,
                          v1::PlanFusionResponse*) override {
    size_t call = 0;
    {
      MutexLock lock(&mutex_);
      times_.push_back(Clock::Real().Now());
      call = times_.size();
    }
    return answer(call);
  }
  std::vector<Nanoseconds> times() const {
    MutexLock lock(&mutex_);
    return times_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Nanoseconds> times_ ABSL_GUARDED_BY(mutex_);
};

onnx::ModelProto ReluModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("relu");
  auto declare = [](onnx::ValueInfoProto* value, const char* name) {
    value->set_name(name);
    onnx::TypeProto::Tensor* type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_value(4);
  };
  declare(graph->add_input(), "x");
  declare(graph->add_output(), "y");
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Relu");
  node->add_input("x");
  node->add_output("y");
  return model;
}

class ResilientModelTest : public ServedClientTest {
 protected:
  // A model that tries again after `every`, and asks once a try.
  std::unique_ptr<ResilientModel> Load(Nanoseconds every) {
    ResilientOptions options;
    options.retry.attempts = 1;
    options.breaker.failures = 0;
    options.connect_timeout = seconds(30);
    ResilientModelOptions model_options;
    model_options.upgrade_every = every;
    absl::StatusOr<std::unique_ptr<ResilientModel>> model = ResilientModel::Load(
        ResilientClient::Create({address_}, options).value(), ReluModel(), ".", model_options);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }
  // False if it does not come true within half a minute.
  static bool Await(const std::function<bool()>& condition) {
    for (int i = 0; i < 6000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
  RefusingService service_;
};

TEST_F(ResilientModelTest, AnInternalErrorIsAskedAboutAgainLessAndLessOften) {
  service_.answer = [](size_t) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "kernel fk_1 (Relu): killed after 6 s");
  };
  Serve(&service_);
  constexpr Nanoseconds kEvery = milliseconds(20);
  std::unique_ptr<ResilientModel> model = Load(kEvery);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->mode(), RunMode::kOpByOp);
  ASSERT_TRUE(Await([&] { return service_.times().size() >= 6; }));
  EXPECT_EQ(model->reason(), "kernel fk_1 (Relu): killed after 6 s");
  model.reset();
  const std::vector<Nanoseconds> times = service_.times();
  Nanoseconds least = kEvery;
  for (size_t i = 1; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 1], least) << "before try " << i;
    least *= 2;
  }
}

TEST_F(ResilientModelTest, WhatIsWrongWithTheModelEndsTheTries) {
  // Of two models: a load, and a try.
  service_.answer = [](size_t call) {
    if (call % 2 == 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "starting");
    return grpc::Status(
        call == 2 ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::UNIMPLEMENTED,
        "node 'x' is odd");
  };
  Serve(&service_);
  for (size_t calls : {2, 4}) {
    std::unique_ptr<ResilientModel> model = Load(milliseconds(1));
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->mode(), RunMode::kOpByOp);
    ASSERT_TRUE(Await([&] { return model->reason() == "node 'x' is odd"; })) << model->reason();
    std::this_thread::sleep_for(milliseconds(100));  // for many more tries
    EXPECT_EQ(service_.times().size(), calls);
  }
}

}  // namespace
}  // namespace fusion
