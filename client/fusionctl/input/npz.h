#pragma once

#include <string>
#include <vector>

#include "core/onnx/test_data.h"

namespace fusion {

/// Whether `path` ends with .npz and is not a directory.
bool IsNpz(const std::string& path);

/// Reads the arrays of a .npz file (a ZIP archive of NAME.npy, as numpy.savez and
/// numpy.savez_compressed write it), in the order of the file. `check` is called for each array
/// when only its header has been read. NotFound: no such file. InvalidArgument, naming file and
/// member: it is not such an archive or has another member. ResourceExhausted: no memory. Else
/// errors of `check`.
absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path, const TensorCheck& check);

/// The names of the arrays only. Fails like LoadNpz.
absl::StatusOr<std::vector<std::string>> NamesInNpz(const std::string& path);

}  // namespace fusion
