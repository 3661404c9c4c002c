#include "core/wire/basics/cost_terms.h"

#include <algorithm>

#include "core/wire/basics/scalars.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

// So that sums and products of terms are finite. Estimates of vast graphs may exceed it.
constexpr double kMaxTermUs = 1e100;

// What DecodeTerms takes, whatever an estimate came to.
double Sent(double us) { return us >= 0 ? std::min(us, kMaxTermUs) : 0; }

}  // namespace

void EncodeTerms(const CostTerms& terms, v1::CostTerms* out) {
  out->set_product_type(TextToWire(terms.product_type));
  out->set_product_us(Sent(terms.product_us));
  out->set_element_us(Sent(terms.element_us));
  out->set_idle_us(Sent(terms.idle_us));
  out->set_spill_us(Sent(terms.spill_us));
  out->set_serial_us(Sent(terms.serial_us));
  out->set_local_us(Sent(terms.local_us));
  out->set_shared_us(Sent(terms.shared_us));
  out->set_memory_us(Sent(terms.memory_us));
  out->set_launch_us(Sent(terms.launch_us));
  out->set_barrier_us(Sent(terms.barrier_us));
  out->set_task_us(Sent(terms.task_us));
  out->set_exposed(std::min(Sent(terms.exposed), 1.0));
}

absl::StatusOr<CostTerms> DecodeTerms(const v1::CostTerms& wire) {
  RETURN_IF_ERROR(CheckName("product_type", wire.product_type()));
  const std::pair<std::string_view, double> kTimes[] = {
      {"product_us", wire.product_us()}, {"element_us", wire.element_us()},
      {"idle_us", wire.idle_us()},       {"spill_us", wire.spill_us()},
      {"serial_us", wire.serial_us()},   {"shared_us", wire.shared_us()},
      {"memory_us", wire.memory_us()},   {"launch_us", wire.launch_us()},
      {"barrier_us", wire.barrier_us()}, {"task_us", wire.task_us()},
      {"local_us", wire.local_us()}};
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
                   .local_us = wire.local_us(),
                   .shared_us = wire.shared_us(),
                   .memory_us = wire.memory_us(),
                   .launch_us = wire.launch_us(),
                   .barrier_us = wire.barrier_us(),
                   .task_us = wire.task_us(),
                   .exposed = wire.exposed()};
}

}  // namespace fusion
