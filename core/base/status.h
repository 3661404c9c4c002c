#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/text/text.h"

namespace fusion {

/// Errors are absl::Status; the code says who must act:
///   caller    InvalidArgument (malformed), Unimplemented (well-formed, not supported), NotFound
///   operator  ResourceExhausted (with kRetryAfter: retry), FailedPrecondition,
///             DataLoss (stored or received bytes are damaged)
///   retry     Unavailable, DeadlineExceeded, Cancelled
///   us        Internal
/// Messages: lower case, no final period, what + where + got versus wanted, in the caller's words.
///
///   return InvalidArgument("node ", Quote(name), " (Softmax): axis ", axis, " out of range;
///   expected -3..2");
template <typename... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}
template <typename... Parts>
absl::Status Unimplemented(const Parts&... parts) {
  return absl::UnimplementedError(StrCat(parts...));
}
template <typename... Parts>
absl::Status NotFound(const Parts&... parts) {
  return absl::NotFoundError(StrCat(parts...));
}
template <typename... Parts>
absl::Status ResourceExhausted(const Parts&... parts) {
  return absl::ResourceExhaustedError(StrCat(parts...));
}
template <typename... Parts>
absl::Status FailedPrecondition(const Parts&... parts) {
  return absl::FailedPreconditionError(StrCat(parts...));
}
template <typename... Parts>
absl::Status Unavailable(const Parts&... parts) {
  return absl::UnavailableError(StrCat(parts...));
}
template <typename... Parts>
absl::Status DeadlineExceeded(const Parts&... parts) {
  return absl::DeadlineExceededError(StrCat(parts...));
}
template <typename... Parts>
absl::Status Cancelled(const Parts&... parts) {
  return absl::CancelledError(StrCat(parts...));
}
template <typename... Parts>
absl::Status DataLoss(const Parts&... parts) {
  return absl::DataLossError(StrCat(parts...));
}
template <typename... Parts>
absl::Status Internal(const Parts&... parts) {
  return absl::InternalError(StrCat(parts...));
}

/// The message of `status` as a std::string_view (Abseil's own view type does not convert by
/// itself).
inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

/// `status` with `context` in front of its message: "reading plan 12ab: block checksum mismatch".
absl::Status Annotate(const absl::Status& status, std::string_view context);

}  // namespace fusion

#define FUSION_CONCAT_INNER(a, b) a##b
#define FUSION_CONCAT(a, b) FUSION_CONCAT_INNER(a, b)

/// Returns from the enclosing function if `expr` is not OK.
#define RETURN_IF_ERROR(expr) \
  FUSION_RETURN_IF_ERROR(FUSION_CONCAT(fusion_status_, __COUNTER__), expr)
#define FUSION_RETURN_IF_ERROR(tmp, expr) \
  do {                                    \
    absl::Status tmp = (expr);            \
    if (!tmp.ok()) return tmp;            \
  } while (false)

/// `lhs = value of expr`, or returns its error from the enclosing function.
#define ASSIGN_OR_RETURN(lhs, expr) \
  FUSION_ASSIGN_OR_RETURN(FUSION_CONCAT(fusion_or_, __COUNTER__), lhs, expr)
#define FUSION_ASSIGN_OR_RETURN(tmp, lhs, expr) \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return tmp.status();           \
  lhs = std::move(tmp).value()
