#pragma once

#include <google/protobuf/message.h>

#include <cstdint>

namespace fusion {

/// Changes a message of any type in a few random places, keeping it well-formed: numbers become
/// interesting ones, strings other strings of the same message (so that names keep meeting),
/// elements of lists are copied, moved and removed, sub-messages appear and go. `seed` decides
/// everything. `max_bytes`: no element is added beyond this size.
void MutateMessage(google::protobuf::Message* message, uint32_t seed, size_t max_bytes);

}  // namespace fusion
