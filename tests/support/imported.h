#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "core/import/import.h"
#include "tests/support/test_model.h"

namespace fusion {

/// The nodes and outputs of the imported and verified graph in one line, or the error.
std::string Import(TestModel& m, const ImportOptions& options = {});

/// The same with each node's name before it: "neg=Neg exp=Exp y:f32[2]".
std::string ImportNamed(TestModel& m, const ImportOptions& options = {});

std::vector<double> DoublesOf(const HostTensor& tensor);

/// Elements of output 0 of the imported graph by the evaluator; empty if either fails.
std::vector<double> ResultOf(TestModel& m, const std::vector<HostTensor>& inputs);

/// An f32 tensor.
HostTensor F(Dims dims, std::initializer_list<float> values);

/// y = op(inputs), node "n"; x: f32[2,3] is its input.
TestModel OneNode(const std::string& op, const std::vector<std::string>& inputs, int opset = 17);

}  // namespace fusion
