#pragma once

#include "core/bundle/answer.h"

namespace fusion {

/// What a kernel is, for people: its texts as they are stored, and the space-mapping graph of the
/// ops that it was compared with; where that cannot be built, a line "# why". Pure.
KernelTexts TextsOf(const KernelArtifact& kernel);

}  // namespace fusion
