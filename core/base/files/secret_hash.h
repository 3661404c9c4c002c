#pragma once

#include <string_view>
#include <vector>

#include "core/base/hash.h"

namespace fusion {

/// A name of these bytes, behind each other, that is good in this process alone: equal bytes have
/// equal names, and of two different ones of at most L bytes the names are equal with a probability
/// of at most (8 ceil(L / 16) / 2^106)^2, whoever chose them: below 2^-160 for 64 MiB. That holds
/// as long as nobody sees a name, so none may leave the process, or be written.
///
/// Poly1305 as a universal hash, twice, under keys that each process draws (Bernstein: The
/// Poly1305-AES message-authentication code, FSE 2005, theorem 3.3); SHA-256 where libcrypto is set
/// up without it. Why not always SHA-256: on CPUs without instructions for that it is most of what
/// a request that is known costs. Any thread.
Digest SecretHash(const std::vector<std::string_view>& pieces);

}  // namespace fusion
