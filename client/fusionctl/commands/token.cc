#include <openssl/rand.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/files/file.h"
#include "core/base/hash.h"

namespace fusion {
namespace {

// 256 random bits cannot be guessed.
absl::StatusOr<std::string> NewToken() {
  Digest random;
  if (RAND_bytes(random.bytes.data(), static_cast<int>(random.bytes.size())) != 1) {
    return Internal("the system gives no random bytes");
  }
  // The prefix lets scanners for leaked secrets identify it.
  return StrCat("fusion_", random.ToHex());
}

// As protobuf's text format has it.
std::string EntryOf(const Arguments& arguments, const std::string& token) {
  std::string out =
      StrCat("tokens { name: ", Quote(arguments.name), " sha256: ", Quote(Sha256(token).ToHex()));
  if (!arguments.tenant.empty()) out += StrCat(" tenant: ", Quote(arguments.tenant));
  for (const std::string& role : arguments.roles) out += StrCat(" roles: ", Quote(role));
  if (!arguments.expires.empty()) out += StrCat(" expires: ", Quote(arguments.expires));
  return out + " }";
}

}  // namespace

absl::StatusOr<ExitCode> RunToken(const Arguments& arguments, Progress* /*progress*/) {
  ASSIGN_OR_RETURN(std::string token, NewToken());
  if (!arguments.out.empty()) {
    // An existing file may be readable by other users.
    if (std::filesystem::exists(arguments.out)) {
      return InvalidArgument("--out: ", Quote(arguments.out), " exists; expected a new file");
    }
    RETURN_IF_ERROR(BadInput(WriteFile(arguments.out, token + "\n")));
  }
  const std::string entry = EntryOf(arguments, token);
  if (arguments.json) {
    Json json{{"name", arguments.name}, {"entry", entry}};
    if (arguments.out.empty()) json["token"] = token;
    PrintJson(json);
  } else if (arguments.out.empty()) {
    PrintAsItIs(
        StrCat("token, for the caller:  ", token, "\nentry, for --tokens:    ", entry, "\n"));
  } else {
    PrintAsItIs(entry + "\n");
  }
  return kExitOk;
}

}  // namespace fusion
