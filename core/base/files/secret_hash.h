#pragma once

#include <string_view>
#include <vector>

#include "core/base/hash.h"

namespace fusion {

/// A keyed hash of the concatenation of `pieces`, valid within this process only. Equal bytes have
/// equal hashes. Two different inputs of at most L bytes collide with a probability of at most
/// (8 ceil(L / 16) / 2^106)^2, even if an attacker chose them: below 2^-160 for 64 MiB. This
/// requires that hashes stay secret: do not send, log or store them.
///
/// Poly1305 as a universal hash, twice, with keys drawn at random per process (Bernstein: The
/// Poly1305-AES message-authentication code, FSE 2005, theorem 3.3); SHA-256 if libcrypto is
/// configured without Poly1305. Why not always SHA-256: on CPUs without SHA instructions it is most
/// of the cost of a request whose answer is cached. Thread-safe.
Digest SecretHash(const std::vector<std::string_view>& pieces);

}  // namespace fusion
