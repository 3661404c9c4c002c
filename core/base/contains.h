#pragma once

#include <algorithm>
#include <vector>

namespace fusion {

template <typename T>
bool Contains(const std::vector<T>& list, const T& element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

}  // namespace fusion
