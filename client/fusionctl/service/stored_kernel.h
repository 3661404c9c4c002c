#pragma once

#include <string>

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/hash.h"

namespace fusion {

/// True if `word` may be the key of a kernel, its beginning, or the symbol of its code: "fk_" and
/// digits; and there is no file of this name.
bool IsKernelSubject(const std::string& word);

/// The kernel whose key begins with `word`, of the plans that the service has stored; a whole key
/// is not looked up. NotFound, or InvalidArgument, naming them, if there are several.
absl::StatusOr<Digest> FindKernel(const std::string& word, const Client& client);

/// Shows source, schedule, SMG or program (the loop ops) of the stored kernel that
/// `arguments.model` names. Bad input: there is none, or several, or other forms are asked for.
absl::StatusOr<ExitCode> ShowStoredKernel(const Arguments& arguments, Progress* progress);

}  // namespace fusion
