#pragma once

#include <exception>

#include "core/base/status.h"

namespace fusion {

/// What a program says when memory or threads ran out.
inline constexpr char kShortage[] = "there is not enough memory, or no more threads can be started";

/// Whether an exception says that: std::bad_alloc, std::length_error (a size beyond any memory), or
/// a std::system_error of a thread that did not start. Takes no memory; null is none.
bool IsShortage(const std::exception_ptr& error);

/// Whether `count` threads can run beside this one now; ResourceExhausted with kShortage if not.
/// Starts and joins them, some 20 us each. For what is about to start threads in a library that
/// waits for ever where it cannot.
absl::Status CheckThreads(int count);

}  // namespace fusion
