#pragma once

#include <vector>

#include "core/schedule/ir/schedule.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// Interprets a schedule, slowly and literally: the oracle for code generators. Arithmetic is in
/// double. Stored values are rounded to the element type of their buffer. Layouts do not matter:
/// `params[i]` is the dense tensor of param i, and those of outputs are overwritten.
/// InvalidArgument for params of another number, type or shape. Internal for an element index
/// outside its buffer, so a read past a tile is found.
absl::Status Interpret(const Schedule& schedule, std::vector<HostTensor>* params);

}  // namespace fusion
