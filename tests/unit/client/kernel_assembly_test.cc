#include "client/kernel_assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

using testing::HasSubstr;

constexpr int64_t kLimit = 100;

Digest Key(std::string_view name) { return Sha256(name); }

v1::GetKernelsResponse Part(std::string_view name, std::string data, bool last,
                            std::string_view whole) {
  v1::GetKernelsResponse part;
  part.set_key(DigestToWire(Key(name)));
  part.set_state(v1::KERNEL_STATE_READY);
  part.set_data(std::move(data));
  part.set_last(last);
  part.set_content_sha256(DigestToWire(Sha256(whole)));
  return part;
}

TEST(KernelAssembly, PutsPartsTogether) {
  KernelAssembly assembly({Key("a"), Key("b")}, kLimit);
  ASSERT_TRUE(assembly.Add(Part("a", "one ", false, "one two")).ok());
  ASSERT_TRUE(assembly.Add(Part("a", "two", true, "one two")).ok());
  ASSERT_TRUE(assembly.Add(Part("b", "three", true, "three")).ok());
  absl::StatusOr<std::vector<FetchedKernel>> kernels = std::move(assembly).Finish();
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 2u);
  EXPECT_EQ((*kernels)[0].binary, "one two");
  EXPECT_EQ((*kernels)[1].binary, "three");
  EXPECT_EQ((*kernels)[1].content, Sha256("three"));
}

TEST(KernelAssembly, RefusesBytesThatAreNotWhatTheirDigestSays) {
  KernelAssembly assembly({Key("a")}, kLimit);
  ASSERT_TRUE(assembly.Add(Part("a", "one ", false, "one two")).ok());
  absl::Status status = assembly.Add(Part("a", "twO", true, "one two"));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr(Key("a").ToHex()));
  EXPECT_THAT(std::string(Message(status)), HasSubstr(Sha256("one two").ToHex()));
}

TEST(KernelAssembly, RefusesAKernelWithoutDigest) {
  KernelAssembly assembly({Key("a")}, kLimit);
  v1::GetKernelsResponse part = Part("a", "one", true, "one");
  part.clear_content_sha256();
  EXPECT_TRUE(absl::IsDataLoss(assembly.Add(part)));
}

TEST(KernelAssembly, RefusesAnotherKernelInItsPlace) {
  KernelAssembly assembly({Key("a"), Key("b")}, kLimit);
  EXPECT_TRUE(absl::IsDataLoss(assembly.Add(Part("b", "one", true, "one"))));
}

TEST(KernelAssembly, RefusesMoreThanItsLimit) {
  KernelAssembly assembly({Key("a")}, kLimit);
  ASSERT_TRUE(assembly.Add(Part("a", std::string(60, 'x'), false, "")).ok());
  absl::Status status = assembly.Add(Part("a", std::string(41, 'x'), false, ""));
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("more than 100 bytes"));
}

TEST(KernelAssembly, RefusesMoreKernelsThanAskedFor) {
  KernelAssembly assembly({Key("a")}, kLimit);
  ASSERT_TRUE(assembly.Add(Part("a", "one", true, "one")).ok());
  EXPECT_TRUE(absl::IsDataLoss(assembly.Add(Part("a", "one", true, "one"))));
}

TEST(KernelAssembly, RefusesAStreamThatEndsEarly) {
  KernelAssembly assembly({Key("a")}, kLimit);
  ASSERT_TRUE(assembly.Add(Part("a", "one ", false, "one two")).ok());
  EXPECT_TRUE(absl::IsDataLoss(std::move(assembly).Finish().status()));
}

TEST(KernelAssembly, PassesTheWordsOfAFailedKernelOn) {
  KernelAssembly assembly({Key("a")}, kLimit);
  v1::GetKernelsResponse part = Part("a", "", true, "");
  part.set_state(v1::KERNEL_STATE_FAILED);
  part.set_error("expected ';' before '}'");
  absl::Status status = assembly.Add(part);
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("expected ';' before '}'"));
}

TEST(KernelAssembly, AKernelThatTheServiceDoesNotKnowIsNotFound) {
  KernelAssembly assembly({Key("a")}, kLimit);
  v1::GetKernelsResponse part = Part("a", "", true, "");
  part.set_state(v1::KERNEL_STATE_UNKNOWN);
  part.set_error("neither stored nor being compiled; plan again");
  absl::Status status = assembly.Add(part);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("plan again"));
}

TEST(KernelAssembly, SaysThatAKernelIsNotCompiledYet) {
  KernelAssembly assembly({Key("a")}, kLimit);
  v1::GetKernelsResponse part = Part("a", "", true, "");
  part.set_state(v1::KERNEL_STATE_PENDING);
  EXPECT_TRUE(absl::IsUnavailable(assembly.Add(part)));
}

}  // namespace
}  // namespace fusion
