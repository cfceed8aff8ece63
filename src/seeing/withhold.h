// Removes data from an answer that its reader may not see. Pure.
#pragma once

#include "kube/object.h"
#include "recorder/story.h"
#include "seeing/find.h"
#include "seeing/uses.h"

#include <set>
#include <string>

namespace hangar::seeing {

// Adds the Secrets that are named in the turn's causes and requests, and those that their bodies
// may have something of; without a name: all of a namespace, or of all.
void add_secrets(const recorder::Story& story, std::set<kube::ObjectKey>& secrets);
// Replaces the names of all other Secrets; their requests and events remain visible. Of a body that
// may have something of another Secret, only that it was recorded.
void withhold_secrets(recorder::Story& story, const std::set<kube::ObjectKey>& shown);

// The guests whose turns led to the writes.
[[nodiscard]] std::set<kube::ObjectKey> guests_in(const WhyFindings& findings);
// Hides all other guests, except for their writes on the object of the request: its readers may see
// that it was written, and how.
void withhold_guests(WhyFindings& findings, const std::set<kube::ObjectKey>& shown);

// Replaces the names of all other namespaces that gave up records: one entry stands for them.
void withhold_namespaces(recorder::ReadDirectory& read, const std::set<std::string>& shown);

// The same for the uses of a guest.
[[nodiscard]] std::set<kube::ObjectKey> secrets_in(const FoundUses& found);
void withhold_secrets(FoundUses& found, const std::set<kube::ObjectKey>& shown);
// Replaces all other sharers by their number.
void withhold_sharers(FoundUses& found, const std::set<kube::ObjectKey>& shown);

}  // namespace hangar::seeing
