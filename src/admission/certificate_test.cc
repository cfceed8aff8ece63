#include "admission/certificate.h"

#include "base/result.h"
#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hangar::admission {
namespace {

using std::chrono::days;
using std::chrono::hours;

const std::vector<std::string> kNames = {"hangar.ns.svc", "127.0.0.1"};
const WallTime kNow = std::chrono::system_clock::from_time_t(1'800'000'000);

Issued made() {
  return renew({}, Renewal::All, kNames, kNow).value();
}

TEST(Certificate, IsForItsNamesAndByItsAuthority) {
  const Issued issued = made();

  EXPECT_TRUE(is_for(issued.server.certificate_pem, kNames, issued.authorities_pem));
  EXPECT_FALSE(is_for(issued.server.certificate_pem, {"other.ns.svc"}, issued.authorities_pem));
  EXPECT_FALSE(is_for(issued.server.certificate_pem, kNames, made().authorities_pem));
  EXPECT_TRUE(has_key(issued.server.certificate_pem, issued.server.key_pem));
  EXPECT_FALSE(has_key(issued.server.certificate_pem, issued.authority_key_pem));
}

TEST(Certificate, IsRenewedBeforeItExpires) {
  const Issued issued = made();

  EXPECT_EQ(renewal_of(issued, kNames, kNow), Renewal::None);
  EXPECT_EQ(renewal_of(issued, kNames, kNow + kServerLife - kRenewBefore - days(1)), Renewal::None);
  EXPECT_EQ(renewal_of(issued, kNames, kNow + kServerLife - kRenewBefore + days(1)),
            Renewal::Server);
  EXPECT_EQ(renewal_of(issued, kNames, kNow + kServerLife + days(1)), Renewal::Server);
  EXPECT_EQ(renewal_of(issued, kNames, kNow + kAuthorityLife + days(1)), Renewal::All);
}

TEST(Certificate, IsMadeAnewWhenItIsOfNoUse) {
  Issued other_key = made();
  other_key.server.key_pem = made().server.key_pem;
  Issued other_authority = made();
  other_authority.authorities_pem = made().authorities_pem;

  EXPECT_EQ(renewal_of({}, kNames, kNow), Renewal::All);
  EXPECT_EQ(renewal_of(other_key, kNames, kNow), Renewal::All);
  EXPECT_EQ(renewal_of(other_authority, kNames, kNow), Renewal::All);
  EXPECT_EQ(renewal_of(made(), {"new.name"}, kNow), Renewal::Server);
  EXPECT_EQ(renewal_of(made(), kNames, kNow - days(1)), Renewal::All);  // Not valid yet.
}

// A client that trusts the authorities from before or after a step trusts the server at every
// moment.
TEST(Certificate, ServerStaysTrustedWhileTheAuthorityChanges) {
  const WallTime late = kNow + kAuthorityLife - kServerLife - days(1);
  Issued before = made();
  before = renew(before, Renewal::Server, kNames, late - days(10)).value();
  ASSERT_EQ(renewal_of(before, kNames, late), Renewal::Authority);

  const Issued during = renew(before, Renewal::Authority, kNames, late).value();

  EXPECT_TRUE(is_for(during.server.certificate_pem, kNames, before.authorities_pem));
  EXPECT_TRUE(is_for(during.server.certificate_pem, kNames, during.authorities_pem));
  const WallTime later = late + kServerLife - days(20);
  ASSERT_EQ(renewal_of(during, kNames, late + hours(1)), Renewal::None);
  ASSERT_EQ(renewal_of(during, kNames, later), Renewal::Server);
  const Issued after = renew(during, Renewal::Server, kNames, later).value();
  EXPECT_TRUE(is_for(after.server.certificate_pem, kNames, during.authorities_pem));
  EXPECT_FALSE(is_for(after.server.certificate_pem, kNames, before.authorities_pem));
}

TEST(Certificate, RefusesNamesThatWouldSaySomethingElse) {
  const KeyPair authority = make_authority(kNow).value();

  EXPECT_FALSE(issue(authority, {}, kNow));
  EXPECT_FALSE(issue(authority, {"a,DNS:b"}, kNow));
}

}  // namespace
}  // namespace hangar::admission
