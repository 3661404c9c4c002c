#pragma once

#include <string>
#include <vector>

#include "core/pipeline/families/family.h"
#include "core/pipeline/families/family_points.h"

namespace fusion {

/// The symbols that `numbers` (one value for each of `points`) depend on; all symbols of the family
/// if that is unknown.
std::vector<std::string> DecidingNames(const ShapeFamily& family, const std::vector<Units>& points,
                                       const std::vector<double>& numbers);

}  // namespace fusion
