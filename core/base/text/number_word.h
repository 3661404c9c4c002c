#pragma once

#include <string>

namespace fusion {

/// What is wrong with `word` as the value of an option that takes a number; empty if nothing is.
/// Range checks of CLI11 let NaN through, which is what this refuses; other words that are no
/// number they refuse themselves.
std::string NumberError(const std::string& word);

}  // namespace fusion
