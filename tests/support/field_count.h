#pragma once

namespace fusion {

struct AnyField {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): must convert to every member type
};

/// Number of members of an aggregate, bases excluded.
template <typename T, typename... Fields>
consteval int FieldCount(Fields... fields) {
  if constexpr (requires { T{fields..., AnyField{}}; }) {
    return FieldCount<T>(fields..., AnyField{});
  } else {
    return static_cast<int>(sizeof...(Fields));
  }
}

}  // namespace fusion
