// libFuzzer target: plans, plan locks and explanations as a client reads them from a stranger, or a
// server from its store. What is read must be written as it was.
#include "core/bundle/plan_lock.h"
#include "core/wire/explanation.h"
#include "core/wire/options/plan_lock.h"
#include "core/wire/plan.h"
#include "fusion/v1/fusion_service.pb.h"
#include "fusion/v1/plan.pb.h"
#include "fusion/v1/plan_lock.pb.h"
#include "tests/fuzz/proto_mutator.h"
#include "tests/fuzz/require.h"

namespace fusion {
namespace {

// One message of each kind with one of everything in it: the mutator adds more.
template <typename Message>
std::string Filled() {
  Message message;
  for (uint32_t seed = 1; seed < 400; ++seed) MutateMessage(&message, seed, 1 << 12);
  return message.SerializeAsString();
}

void FuzzPlan(std::string_view bytes) {
  absl::StatusOr<Plan> plan = PlanFromBytes(bytes);
  if (!plan.ok()) return RequireBlamesText(plan.status());
  const std::string written = PlanToBytes(*plan);
  absl::StatusOr<Plan> again = PlanFromBytes(written);
  Require(again.ok(), "a plan does not read back", again.status());
  Require(PlanToBytes(*again) == written, "a plan reads back as another");
}

void FuzzLock(std::string_view bytes) {
  absl::StatusOr<PlanLock> lock = LockFromText(bytes);
  if (!lock.ok()) RequireBlamesText(lock.status());
  v1::PlanLock wire;
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  absl::StatusOr<PlanLock> decoded = DecodeLock(wire);
  if (!decoded.ok()) return RequireBlamesText(decoded.status());
  v1::PlanLock written;
  EncodeLock(*decoded, &written);
  absl::StatusOr<PlanLock> again = DecodeLock(written);
  Require(again.ok(), "a lock does not come back from the wire", again.status());
  Require(DigestOf(*again) == DigestOf(*decoded), "a lock comes back as another");
}

void FuzzExplanation(std::string_view bytes) {
  absl::StatusOr<PlanExplanation> explanation = ExplanationFromBytes(bytes);
  if (!explanation.ok()) RequireBlamesText(explanation.status());
}

template <typename Message>
size_t Mutate(uint8_t* data, size_t size, size_t max_size, uint32_t seed) {
  Message message;
  if (!message.ParseFromArray(data + 1, static_cast<int>(size - 1))) return 0;
  MutateMessage(&message, seed, max_size - 1);
  const std::string bytes = message.SerializeAsString();
  if (bytes.size() + 1 > max_size) return 0;
  std::copy(bytes.begin(), bytes.end(), data + 1);
  return bytes.size() + 1;
}

}  // namespace
}  // namespace fusion

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string corpus = fusion::SeedsDirectory(*argc, *argv);
  if (corpus.empty()) return 0;
  fusion::WriteSeed(corpus, "plan", "0" + fusion::Filled<fusion::v1::Plan>());
  fusion::WriteSeed(corpus, "lock", "1" + fusion::Filled<fusion::v1::PlanLock>());
  fusion::WriteSeed(corpus, "explanation", "2" + fusion::Filled<fusion::v1::ExplainPlanResponse>());
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      fusion::FuzzPlan(bytes);
      break;
    case 1:
      fusion::FuzzLock(bytes);
      break;
    default:
      fusion::FuzzExplanation(bytes);
      break;
  }
  return 0;
}

// Mostly changes messages as messages; now and then as bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (size > 1 && seed % 16 != 0) {
    size_t mutated = 0;
    if (data[0] % 3 == 0) mutated = fusion::Mutate<fusion::v1::Plan>(data, size, max_size, seed);
    if (data[0] % 3 == 1) {
      mutated = fusion::Mutate<fusion::v1::PlanLock>(data, size, max_size, seed);
    }
    if (data[0] % 3 == 2) {
      mutated = fusion::Mutate<fusion::v1::ExplainPlanResponse>(data, size, max_size, seed);
    }
    if (mutated > 0) return mutated;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
