#pragma once

#include "core/graph/program/program.h"

namespace fusion {

/// Leaves out ops of which nothing reads the result, and numbers values in the order in which ops
/// read and write them, as the text form has them. For passes that add ops in front of others or
/// lead readers past some: producers need not be right before.
void Tidy(Program* program);

}  // namespace fusion
