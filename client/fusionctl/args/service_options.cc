#include "client/fusionctl/args/service_options.h"

#include "client/fusionctl/args/help.h"
#include "client/fusionctl/args/option_words.h"
#include "core/base/text/number_word.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

// Credentials for the fusiond of --server, and how to verify the server.
void AddConnectionOptions(CLI::App* app, CLI::Option* server, Arguments* a) {
  CLI::Option* ca =
      app->add_option("--ca", a->ca,
                      "use TLS and verify the server's certificate with this CA (PEM)")
          ->check(CheckNotEmpty)
          ->type_name("FILE");
  CLI::Option* cert = app->add_option("--cert", a->certificate, "client certificate (PEM)")
                          ->needs(ca)
                          ->check(CheckNotEmpty)
                          ->type_name("FILE");
  CLI::Option* key = app->add_option("--key", a->key, "private key of --cert (PEM)")
                         ->needs(cert)
                         ->check(CheckNotEmpty)
                         ->type_name("FILE");
  cert->needs(key);
  CLI::Option* name =
      app->add_option("--server-name", a->server_name,
                      "name in the server's certificate; default: the host of the address")
          ->needs(ca)
          ->check(CheckNotEmpty)
          ->type_name("NAME");
  CLI::Option* token =
      app->add_option("--token-file", a->token_file,
                      "file with the caller's token; default: environment variable FUSION_TOKEN")
          ->check(CheckNotEmpty)
          ->type_name("FILE");
  CLI::Option* priority =
      app->add_option_function<std::string>(
             "--priority", [a](const std::string& word) { a->background = word == "background"; },
             "background yields to other calls; default: interactive")
          ->check(CLI::IsMember({"interactive", "background"}))
          ->type_name("{interactive,background}");
  CLI::Option* verify =
      app->add_option("--verify-key", a->verify_keys,
                      "accept only plans and kernels signed by this key: an Ed25519 public key "
                      "(PEM), or hex digits for HMAC-SHA256; may be given more than once")
          ->allow_extra_args(false)
          ->check(CheckNotEmpty)
          ->type_name("FILE");
  for (CLI::Option* option : {ca, cert, key, name, token, priority, verify}) {
    option->needs(server)->group("Connection");
  }
}

void AddServiceOptions(CLI::App* app, Arguments* a) {
  CLI::Option* server =
      app->add_option("--server", a->server,
                      "fusiond address, HOST:PORT or unix:/PATH; default: embedded fusiond")
          ->check(CheckAddresses)
          ->type_name("ADDRESS");
  CLI::Option* store = app->add_option("--store", a->store,
                                       "directory in which the embedded fusiond stores plans and "
                                       "kernels; default: none, every start is cold")
                           ->check(CheckNotEmpty)
                           ->type_name("DIR");
  for (CLI::Option* option :
       {store,
        app->add_option("--store-limit", a->store_limit_bytes,
                        "maximum bytes of plans and kernels in --store; the least used are evicted "
                        "first; default: 0, no limit")
            ->transform(CLI::AsSizeValue(false))
            ->check(CLI::NonNegativeNumber)
            ->needs(store),
        app->add_flag("--insecure-permissions", a->insecure_permissions,
                      "use --store even if other users can write it")
            ->needs(store),
        app->add_option("--fusiond", a->fusiond,
                        "program of the embedded fusiond; default: the one beside fusionctl")
            ->check(CheckNotEmpty)
            ->type_name("PROGRAM"),
        app->add_option("--workers", a->workers,
                        "compile workers of the embedded fusiond; default: one per core")
            ->check(CLI::Range(1, 1024))
            ->type_name("N")}) {
    option->excludes(server)->group("Embedded fusiond");
  }
  AddConnectionOptions(app, server, a);
  app->add_option("--deadline", a->deadline,
                  "maximum response time of the service in seconds; default: 300")
      ->check(CLI::Range(0.001, 86400.0))
      ->check(NumberError)
      ->type_name("S");
  app->add_flag("--json", a->json, "one JSON object on stdout");
  app->add_flag("--quiet", a->quiet, "no progress on stderr");
}

}  // namespace

CLI::App* AddLocalCommand(CLI::App* app, const char* name, const char* help, Arguments* a,
                          CommandKind kind) {
  CLI::App* command = app->add_subcommand(name, help);
  command->callback([a, kind] { a->command = kind; });
  command->footer(HelpFooter(name));
  return command;
}

CLI::App* AddCommand(CLI::App* app, const char* name, const char* help, Arguments* a,
                     CommandKind kind) {
  CLI::App* command = AddLocalCommand(app, name, help, a, kind);
  AddServiceOptions(command, a);
  return command;
}

}  // namespace fusion
