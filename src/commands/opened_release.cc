#include "commands/opened_release.h"

#include "airways/ownership.h"
#include "base/result.h"
#include "commands/release_session.h"
#include "io/task.h"

#include <utility>

namespace hangar::commands {

io::Task<Result<OpenedRelease>> open_release(ReleaseSession& session, ReleaseName named) {
  OpenedRelease opened{.name = {.name = std::move(named.name),
                                .namespace_ = session.namespace_or_default(named.namespace_)}};
  const airways::Release unknown{.name = opened.name.name,
                                 .namespace_ = opened.name.namespace_,
                                 .history_name = opened.name.name};
  opened.memory.history.emplace(session.workers, session.client, unknown);
  HANGAR_CO_TRY(co_await opened.history().load(session.stop()));
  opened.release = airways::recorded_release(opened.name.name, opened.name.namespace_,
                                             opened.history().inventory());
  co_return opened;
}

}  // namespace hangar::commands
