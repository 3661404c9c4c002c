#pragma once

#include <string>
#include <vector>

#include "core/pipeline/families/family.h"
#include "core/pipeline/families/family_points.h"

namespace fusion {

/// The symbols that these numbers, by point, depend on; all of them where that is not known.
std::vector<std::string> DecidingNames(const ShapeFamily& family, const std::vector<Units>& points,
                                       const std::vector<double>& numbers);

}  // namespace fusion
