#pragma once

namespace fusion {

#if defined(__has_feature)
#define FUSION_HAS_FEATURE(x) __has_feature(x)
#else
#define FUSION_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || FUSION_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitized = true;
#else
inline constexpr bool kAddressSanitized = false;
#endif

#if defined(__SANITIZE_THREAD__) || FUSION_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

#undef FUSION_HAS_FEATURE

/// True in builds with AddressSanitizer or ThreadSanitizer. They reserve terabytes of address
/// space, and turn a SIGSEGV into exit code 1 (address) or 66 (thread).
inline constexpr bool kSanitized = kAddressSanitized || kThreadSanitized;

}  // namespace fusion
