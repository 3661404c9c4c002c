#include "client/calls/answer_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "client/kernel_assembly.h"
#include "core/bundle/signed_bytes.h"
#include "core/wire/answer.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/signature.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class AnswerCheckTest : public testing::Test {
 protected:
  // As a server signs it.
  v1::PlanFusionResponse Signed() const {
    v1::PlanFusionResponse out;
    out.mutable_plan()->set_nodes(3);
    out.set_plan_key(DigestToWire(Sha256("key")));
    std::vector<KernelStatus> kernels = {
        {.key = Sha256("k0"), .state = KernelState::kReady, .content = Sha256("c0")},
        {.key = Sha256("k1"), .state = KernelState::kPending}};
    for (const KernelStatus& kernel : kernels) EncodeKernelStatus(kernel, out.add_kernels());
    Digest plan = Sha256(out.plan().SerializeAsString());
    EncodeSignature(key_.Sign(SignedPlanBytes(Sha256("key"), plan, kernels)),
                    out.mutable_signature());
    return out;
  }
  absl::Status Check(const v1::PlanFusionResponse& response) const {
    return CheckBytes(response.SerializeAsString());
  }
  absl::Status CheckBytes(const std::string& bytes) const {
    v1::PlanFusionResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    return CheckPlanSignature({key_}, bytes, response);
  }
  v1::GetKernelsResponse SignedKernel() const {
    v1::GetKernelsResponse out;
    out.set_key(DigestToWire(Sha256("k")));
    out.set_state(v1::KERNEL_STATE_READY);
    out.set_data("binary");
    out.set_last(true);
    out.set_content_sha256(DigestToWire(Sha256("binary")));
    EncodeSignature(key_.Sign(SignedKernelBytes(Sha256("k"), Sha256("binary"))),
                    out.mutable_signature());
    return out;
  }
  SigningKey key_ = SigningKey::Parse("k", std::string(64, 'a')).value();
};

TEST_F(AnswerCheckTest, WhatWasSignedIsTakenInAnyOrderOfFields) {
  EXPECT_TRUE(Check(Signed()).ok()) << Check(Signed());
  v1::PlanFusionResponse plan;  // as the service sends it: the plan first, then the rest
  v1::PlanFusionResponse rest = Signed();
  plan.mutable_plan()->Swap(rest.mutable_plan());
  rest.clear_plan();
  EXPECT_TRUE(CheckBytes(plan.SerializeAsString() + rest.SerializeAsString()).ok());
  EXPECT_TRUE(CheckBytes(rest.SerializeAsString() + plan.SerializeAsString()).ok());
}

TEST_F(AnswerCheckTest, WhateverIsTamperedWithIsRefused) {
  const std::vector<std::function<void(v1::PlanFusionResponse*)>> attacks = {
      [](auto* r) { r->mutable_plan()->set_nodes(4); },
      [](auto* r) { r->clear_plan(); },
      [](auto* r) { r->set_plan_key(DigestToWire(Sha256("other"))); },
      [](auto* r) { r->mutable_kernels(0)->set_content_sha256(DigestToWire(Sha256("evil"))); },
      [](auto* r) { r->mutable_kernels(0)->set_key(DigestToWire(Sha256("k1"))); },
      [](auto* r) {
        *r->mutable_kernels(1) = r->kernels(0);  // ready, says somebody else
      },
      [](auto* r) { r->mutable_kernels(0)->set_state(v1::KERNEL_STATE_PENDING); },
      [](auto* r) { r->clear_signature(); },
      [](auto* r) { r->mutable_signature()->set_key_id("other"); },
      [](auto* r) { r->mutable_signature()->clear_value(); },
      [](auto* r) { r->mutable_signature()->set_algorithm(v1::SIGNATURE_ALGORITHM_ED25519); },
      [](auto* r) { r->mutable_signature()->clear_algorithm(); }};
  for (size_t i = 0; i < attacks.size(); ++i) {
    v1::PlanFusionResponse response = Signed();
    attacks[i](&response);
    EXPECT_TRUE(absl::IsDataLoss(Check(response))) << i << ": " << Check(response);
  }
}

TEST_F(AnswerCheckTest, ASecondPlanThatAParserWouldMergeIsRefused) {
  v1::PlanFusionResponse more;
  more.mutable_plan()->set_threads(7);
  EXPECT_TRUE(
      absl::IsDataLoss(CheckBytes(Signed().SerializeAsString() + more.SerializeAsString())));
  EXPECT_TRUE(
      absl::IsDataLoss(CheckBytes(more.SerializeAsString() + Signed().SerializeAsString())));
}

TEST_F(AnswerCheckTest, KernelsAreTakenSignedOnly) {
  auto add = [&](const v1::GetKernelsResponse& part) {
    return KernelAssembly({Sha256("k")}, /*max_kernel_bytes=*/100, {key_}).Add(part);
  };
  EXPECT_TRUE(add(SignedKernel()).ok());
  v1::GetKernelsResponse bare = SignedKernel();
  bare.clear_signature();
  EXPECT_TRUE(absl::IsDataLoss(add(bare)));
  EXPECT_THAT(std::string(Message(add(bare))), HasSubstr("not signed"));
  v1::GetKernelsResponse other = SignedKernel();  // its own digest fits
  other.set_data("evil");
  other.set_content_sha256(DigestToWire(Sha256("evil")));
  EXPECT_TRUE(absl::IsDataLoss(add(other)));
}

}  // namespace
}  // namespace fusion
