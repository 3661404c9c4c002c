#pragma once

#include <vector>

#include "core/op/forms/recurrent.h"

namespace fusion {

/// The cell of an LSTM: c = f . c' + i . g(x Wc + h' Rc), h = o . h(c) with gates i, o, f;
/// attribute "input_forget" couples i and f.
RecurrentCell LstmCell(const AttrMap& attrs);
/// Its attributes.
std::vector<ParamSpec> LstmParams();

}  // namespace fusion
