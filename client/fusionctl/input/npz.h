#pragma once

#include <string>
#include <vector>

#include "core/onnx/test_data.h"

namespace fusion {

/// Whether `path` names a .npz file: by its name, and no directory.
bool IsNpz(const std::string& path);

/// The arrays of a .npz file (a ZIP archive of NAME.npy, compressed or not, as numpy.savez and
/// numpy.savez_compressed write it), in its order. `check` is asked for each with its name, before
/// more than its header is read. NotFound if there is no such file; InvalidArgument, naming file
/// and member, if it is no such archive or holds something else; ResourceExhausted if there is no
/// memory; else what `check` says.
absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path, const TensorCheck& check);

/// Their names alone.
absl::StatusOr<std::vector<std::string>> NamesInNpz(const std::string& path);

}  // namespace fusion
