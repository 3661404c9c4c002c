#pragma once

#include <string>

#include "client/client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/hash.h"

namespace fusion {

/// Whether `word` may be a kernel's key, a prefix of it, or its symbol ("fk_" and digits), and is
/// not the name of a file.
bool IsKernelSubject(const std::string& word);

/// The key of the kernel with this prefix or symbol, among the kernels of all stored plans. A
/// complete key is not looked up. NotFound: there is none. InvalidArgument, naming them: there are
/// several. Else as Client::ListPlans and Client::GetStoredPlan.
absl::StatusOr<Digest> FindKernel(const std::string& word, const Client& client);

/// Prints source, schedule, SMG or program (the loop ops) of the stored kernel that
/// `arguments.model` names. Bad input: there is none, there are several, another form is requested,
/// or neither --server nor --store is given.
absl::StatusOr<ExitCode> ShowStoredKernel(const Arguments& arguments, Progress* progress);

}  // namespace fusion
