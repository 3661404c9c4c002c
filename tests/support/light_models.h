#pragma once

#include <onnx/onnx_pb.h>

namespace fusion {

/// ONNX's light models are models without weights: ConstantOfShape nodes stand for them, and every
/// output comes out the same whatever a backend does. Replaces those nodes by initialisers of
/// seeded random numbers (MT19937 and the polar method, as numpy.random.RandomState draws them),
/// scaled by what reads them, so that the outputs say something.
void RandomiseLightWeights(onnx::ModelProto* model);

}  // namespace fusion
