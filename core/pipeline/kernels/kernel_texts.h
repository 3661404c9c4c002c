#pragma once

#include "core/bundle/answer.h"

namespace fusion {

/// The texts of a kernel for display: those that are stored, and the SMG of its reference program.
/// If the SMG cannot be built, a line "# why" replaces it. Pure.
KernelTexts TextsOf(const KernelArtifact& kernel);

}  // namespace fusion
