#pragma once

#include <exception>

#include "core/base/status.h"

namespace fusion {

/// The message of programs that ran out of memory or threads.
inline constexpr char kShortage[] = "there is not enough memory, or no more threads can be started";

/// True if an exception reports too little memory or too few threads: std::bad_alloc,
/// std::length_error (a size beyond any memory), or a std::system_error of a thread that did not
/// start. Allocates nothing; false for null.
bool IsShortage(const std::exception_ptr& error);

/// OK if `count` more threads can run at once now; else ResourceExhausted with kShortage. Starts
/// and joins them, some 20 us each. Call it before using a library that hangs if it cannot start
/// its threads.
absl::Status CheckThreads(int count);

}  // namespace fusion
