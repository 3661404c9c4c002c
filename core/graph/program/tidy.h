#pragma once

#include "core/graph/program/program.h"

namespace fusion {

/// Removes ops whose result nothing reads, and numbers values in the order in which ops read and
/// write them (the order of the text form). For passes that add ops in front of others or redirect
/// readers. Value::producer need not be right before; it is right afterwards.
void Tidy(Program* program);

}  // namespace fusion
