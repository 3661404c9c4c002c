#pragma once

#include <string_view>

#include "core/base/check.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// The schedule that a test writes as text.
inline Schedule ScheduleOf(std::string_view text) {
  auto schedule = ParseSchedule(text);
  FUSION_CHECK(schedule.ok(), Message(schedule.status()));
  return *std::move(schedule);
}

}  // namespace fusion
