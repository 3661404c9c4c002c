#pragma once

#include <vector>

#include "core/op/forms/recurrent.h"

namespace fusion {

/// The cell of an LSTM: c = f . c' + i . g(x Wc + h' Rc), h = o . h(c). c' and h' are the previous
/// states; i, o, f are the gates. With attribute "input_forget" f = 1 - i.
RecurrentCell LstmCell(const AttrMap& attrs);
/// The attributes of an LSTM.
std::vector<ParamSpec> LstmParams();

}  // namespace fusion
