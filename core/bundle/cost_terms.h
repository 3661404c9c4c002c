#pragma once

#include <string>

namespace fusion {

/// The terms of an Estimate (core/benefit/estimate.h), one for each constant of the device that it
/// is proportional to (core/benefit/terms.h). Microseconds.
struct CostTerms {
  std::string product_type;  // whose rates apply (DeviceSpec::Rates); empty: no products
  double product_us = 0;
  double element_us = 0;
  double idle_us = 0;    // tiling loss: grows with product_us + element_us
  double spill_us = 0;   // scratch beyond the private caches: grows in the same way
  double serial_us = 0;  // arithmetic of one phase and memory of another do not overlap: grows with
                         // the sum of all arithmetic and memory
  double local_us = 0;   // bytes that a private cache holds, by what ran before
  double shared_us = 0;
  double memory_us = 0;
  double launch_us = 0;
  double barrier_us = 0;
  double task_us = 0;
  double exposed = 0;  // part of the shorter of arithmetic and memory that does not overlap: 0..1

  bool operator==(const CostTerms&) const = default;
};

}  // namespace fusion
