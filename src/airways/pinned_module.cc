#include "airways/pinned_module.h"

#include "airways/flight_modules.h"
#include "airways/flight_status.h"
#include "archive/copies.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "modules/pin.h"
#include "modules/reference.h"
#include "modules/supply.h"
#include "reconcile/event_log.h"

#include <fmt/format.h>

#include <expected>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::airways {

namespace {

// The reference without secrets.
std::string display_of(const std::string& reference) {
  const Result<modules::Reference> parsed = modules::Reference::parse(reference);
  return parsed ? parsed->display() : std::string("the source");
}

// There is no copy of the pinned module.
Error module_unavailable(const ModuleRole& role, const modules::Source& source,
                         const std::string& sha256, const Error& error) {
  return Error(error.kind(),
               fmt::format("cannot fetch the pinned {} sha256:{}: {}, and {}. Make {} serve it "
                           "again, or accept its present module: set {} to the sha256 of that",
                           role.name, sha256, role.no_copy, error.message(),
                           display_of(source.reference), role.checksum_field))
      .with_reason(std::string(kReasonModuleUnavailable));
}

modules::Upgrade upgrade_of(const modules::Source& source) {
  const Result<modules::Reference> reference = modules::Reference::parse(source.reference);
  // The supply reports a reference that does not parse.
  return reference ? modules::upgrade_of(*reference, source.sha256) : modules::Upgrade::Followed;
}

}  // namespace

Result<std::optional<FlightModule>> PinnedModule::ask(FlightModules& modules, Question question) {
  const modules::Source& source = question.source;
  HANGAR_TRY(modules.check_allowed(source.reference));
  const std::optional<modules::Supplied> supplied =
      asking.ask(modules.supply(), {.requester = std::move(question.requester), .module = source},
                 pin, question.definition, std::move(question.listener));
  if (supplied) {
    module = FlightModules::module_of(*supplied);
    module_of = question.definition;
    if (upgrade_of(source) == modules::Upgrade::Followed) {
      pin.reset();
    } else if (!asking.is_pinned()) {
      pin = modules::next_pin(pin, source, *supplied);
    }
  }
  if (const std::optional<Error> error = asking.error()) {
    if (asking.is_pinned()) {
      return std::unexpected(module_unavailable(question.role, source, pin->sha256, *error));
    }
    return std::unexpected(*error);
  }
  // Meanwhile the supply may ask for a newer module; the last one of this definition stays in use.
  if (module_of != question.definition) return std::nullopt;
  return module;
}

io::Task<Result<std::optional<reconcile::EventText>>> PinnedModule::keep_copy(
    archive::Copies& copies, const json::Value& object, const ModuleRole& role,
    std::stop_token stop) {
  if (!pin) co_return std::nullopt;
  const archive::ArchivedModule copy =
      copies.of(std::string(json::string_at(object, {"metadata", "namespace"})), pin->sha256);
  const Result<> kept = co_await copies.archive().keep(copy, std::move(stop));
  const ErrorKind kind = kept ? ErrorKind::NotFound : kept.error().kind();
  if (kind == ErrorKind::Cancelled) co_return std::unexpected(kept.error());
  if (kind == ErrorKind::Unavailable) {
    // A pin that the status already names stays in use, with or without a copy.
    if (pin_in(object, role) == pin) co_return std::nullopt;
    co_return std::unexpected(kept.error());
  }
  const std::string problem = kept ? std::string() : kept.error().message();
  if (std::exchange(not_kept, problem) == problem || kept) co_return std::nullopt;
  co_return reconcile::EventText{
      .type = reconcile::EventType::Warning,
      .reason = "ModuleNotKept",
      .message =
          fmt::format("cannot keep a copy of the module sha256:{} in namespace {}: {}. Until "
                      "there is one, only a host's cache or the source can supply the module",
                      copy.sha256, copy.namespace_, problem)};
}

void PinnedModule::describe(const modules::Source& source) {
  facts = ModuleFacts{.reference = display_of(source.reference),
                      .upgrade = upgrade_of(source),
                      .sha256 = module->sha256,
                      .resolved = module->resolved,
                      .pin = pin,
                      .offered_sha256 = asking.offered_sha256(),
                      .look_error = asking.look_error(),
                      .is_source_unasked = asking.is_unasked()};
}

bool PinnedModule::is_first_use() const {
  return facts && facts->upgrade == modules::Upgrade::Deliberate && pin && pin->replaces.empty();
}

}  // namespace hangar::airways
