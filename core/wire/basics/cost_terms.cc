#include "core/wire/basics/cost_terms.h"

#include "core/wire/basics/scalars.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

// Eleven days. So that sums and products of terms are finite.
constexpr double kMaxTermUs = 1e12;

}  // namespace

void EncodeTerms(const CostTerms& terms, v1::CostTerms* out) {
  out->set_product_type(TextToWire(terms.product_type));
  out->set_product_us(terms.product_us);
  out->set_element_us(terms.element_us);
  out->set_idle_us(terms.idle_us);
  out->set_spill_us(terms.spill_us);
  out->set_serial_us(terms.serial_us);
  out->set_shared_us(terms.shared_us);
  out->set_memory_us(terms.memory_us);
  out->set_launch_us(terms.launch_us);
  out->set_barrier_us(terms.barrier_us);
  out->set_task_us(terms.task_us);
  out->set_exposed(terms.exposed);
}

absl::StatusOr<CostTerms> DecodeTerms(const v1::CostTerms& wire) {
  RETURN_IF_ERROR(CheckName("product_type", wire.product_type()));
  const std::pair<std::string_view, double> kTimes[] = {
      {"product_us", wire.product_us()}, {"element_us", wire.element_us()},
      {"idle_us", wire.idle_us()},       {"spill_us", wire.spill_us()},
      {"serial_us", wire.serial_us()},   {"shared_us", wire.shared_us()},
      {"memory_us", wire.memory_us()},   {"launch_us", wire.launch_us()},
      {"barrier_us", wire.barrier_us()}, {"task_us", wire.task_us()}};
  for (const auto& [field, us] : kTimes) {
    // Written so that NaN fails too.
    if (us >= 0 && us <= kMaxTermUs) continue;
    return InvalidArgument(field, ": ", us, "; expected microseconds, 0..", kMaxTermUs);
  }
  if (!(wire.exposed() >= 0 && wire.exposed() <= 1)) {
    return InvalidArgument("exposed: ", wire.exposed(), "; expected 0..1");
  }
  return CostTerms{.product_type = wire.product_type(),
                   .product_us = wire.product_us(),
                   .element_us = wire.element_us(),
                   .idle_us = wire.idle_us(),
                   .spill_us = wire.spill_us(),
                   .serial_us = wire.serial_us(),
                   .shared_us = wire.shared_us(),
                   .memory_us = wire.memory_us(),
                   .launch_us = wire.launch_us(),
                   .barrier_us = wire.barrier_us(),
                   .task_us = wire.task_us(),
                   .exposed = wire.exposed()};
}

}  // namespace fusion
