#include "client/fusionctl/args/operator_commands.h"

#include "client/fusionctl/args/command_words.h"
#include "client/fusionctl/args/option_words.h"
#include "client/fusionctl/args/service_options.h"
#include "core/base/files/access_limits.h"
#include "core/base/text/number_word.h"
#include "core/base/text/text.h"

namespace fusion {

void AddToken(CLI::App* app, Arguments* a) {
  CLI::App* token = AddLocalCommand(
      app, "token", "creates a token and its entry for the file of fusiond --tokens", a,
      CommandKind::kToken);
  const auto name_of = [](size_t most) {
    return [most](const std::string& word) { return CheckCallerName(word, most); };
  };
  token->add_option("NAME", a->name, "its name in the server's log")
      ->required()
      ->check(name_of(kMaxCallerNameBytes))
      ->type_name("NAME");
  token->add_option("--tenant", a->tenant, "tenant of its calls; default: default")
      ->check(name_of(kMaxTenantBytes))
      ->type_name("NAME");
  token
      ->add_option("--role", a->roles,
                   "its permission; may be given more than once; default: plan and report")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"plan", "report", "trusted-report", "admin"}))
      ->type_name("{plan,report,trusted-report,admin}");
  token->add_option("--expires", a->expires, "expiry time: 2027-01-31 or 2027-01-31T18:00:00Z")
      ->check(CheckTime)
      ->type_name("TIME");
  token
      ->add_option("--out", a->out,
                   "write the token to this new file, readable by its owner only; stdout then has "
                   "only the entry")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  token->add_flag("--json", a->json, "one JSON object on stdout");
}

void AddStore(CLI::App* app, Arguments* a) {
  CLI::App* store =
      AddCommand(app, "store",
                 "manages the stored plans and kernels of a service: sizes, checks, pins, copies",
                 a, CommandKind::kStore);
  AddChoice(store, "ACTION", &a->action, kStoreActions, "action")->required();
  store
      ->add_option("PLAN", a->plan_keys,
                   "plan keys (8 digits or more) for pin, unpin, invalidate and export; export "
                   "without any: every plan")
      ->check(CheckNotEmpty)
      ->type_name("KEY");
  store
      ->add_option("--kernel", a->kernel_keys,
                   "invalidate this kernel, by key or symbol (8 digits or more); may be given more "
                   "than once")
      ->allow_extra_args(false)
      ->check(CheckNotEmpty)
      ->type_name("KEY");
  store->add_flag("--all", a->all, "invalidate everything, including pinned plans");
  store->add_option("--reason", a->reason, "reason for invalidate, for the log of the service")
      ->type_name("TEXT");
  store->add_option("-o,--out", a->out, "export to this file")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  store
      ->add_option("--from", a->from,
                   "import this file of export. Entries not signed by an --import-key are rebuilt "
                   "here and compared, or refused")
      ->check(CheckNotEmpty)
      ->type_name("FILE");
  CLI::Option* directory = store->get_option("--store");
  for (CLI::Option* option :
       {store
            ->add_option("--import-key", a->import_keys,
                         "import with --store: accept entries signed by this key as they are, like "
                         "fusiond --import-key; may be given more than once")
            ->allow_extra_args(false),
        store->add_option("--signing-key", a->signing_key,
                          "export with --store: sign the entries, like fusiond --signing-key")}) {
    option->needs(directory)->check(CheckNotEmpty)->type_name("FILE")->group("Embedded fusiond");
  }
}

void AddEpochs(CLI::App* app, Arguments* a) {
  CLI::App* epochs = AddCommand(
      app, "epochs", "the constants that measured latencies have corrected, and their history", a,
      CommandKind::kEpochs);
  epochs->add_option("--limit", a->limit, "maximum number of epochs and of decisions; default: 10")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  CLI::Option* train = epochs->add_flag(
      "--train", a->train, "fit constants to what was measured until now, without waiting");
  CLI::Option* back = epochs->add_option("--roll-back", a->roll_back, "take this epoch back")
                          ->excludes(train)
                          ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
                          ->type_name("NUMBER");
  epochs->add_option("--reason", a->reason, "reason for --roll-back, for the log of the service")
      ->needs(back)
      ->type_name("TEXT");
}

}  // namespace fusion
