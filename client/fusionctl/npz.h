#pragma once

#include <string>
#include <vector>

#include "core/onnx/test_data.h"

namespace fusion {

/// The arrays of a .npz file (a ZIP archive of NAME.npy, compressed or not, as numpy.savez and
/// numpy.savez_compressed write it), in its order. NotFound if there is no such file;
/// InvalidArgument, naming file and member, if it is no such archive or holds something else;
/// ResourceExhausted for members larger than any tensor may be.
absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path);

}  // namespace fusion
