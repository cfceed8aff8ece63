// What is taken out of an answer because its reader may not see it. Pure.
#pragma once

#include "kube/object.h"
#include "recorder/story.h"
#include "seeing/find.h"
#include "seeing/uses.h"

#include <set>

namespace hangar::seeing {

// Secrets that the turn's causes and requests name.
void add_secrets(const recorder::Story& story, std::set<kube::ObjectKey>& secrets);
// The names of all others are withheld; that there was one is told.
void withhold_secrets(recorder::Story& story, const std::set<kube::ObjectKey>& shown);

// Those whose turns led to the writes.
[[nodiscard]] std::set<kube::ObjectKey> guests_in(const WhyFindings& findings);
// Of all others nothing is told, but for their writes on the object that the question is about: its
// reader may see that it was written, and how.
void withhold_guests(WhyFindings& findings, const std::set<kube::ObjectKey>& shown);

// The same of what a guest has used.
[[nodiscard]] std::set<kube::ObjectKey> secrets_in(const FoundUses& found);
void withhold_secrets(FoundUses& found, const std::set<kube::ObjectKey>& shown);
// All but these are counted only.
void withhold_sharers(FoundUses& found, const std::set<kube::ObjectKey>& shown);

}  // namespace hangar::seeing
