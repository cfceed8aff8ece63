// Keys, and signatures as cosign makes them of kCosignPayload, by OpenSSL's program. For tests.
#pragma once

#include <array>
#include <string_view>

namespace hangar::schematics {

// The payload for a manifest whose bytes are "manifest".
inline constexpr std::string_view kCosignPayload =
    R"({"critical":{"identity":{"docker-reference":"registry.example.com/team/web"},)"
    R"("image":{"docker-manifest-digest":)"
    R"("sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f"},)"
    R"("type":"cosign container image signature"},"optional":null})";

struct MadeByCosign {
  std::string_view name;
  std::string_view public_key;
  std::string_view signature;  // In base64.
};

inline constexpr std::array<MadeByCosign, 3> kMadeByCosign = {{
    {.name = "ecdsa",
     .public_key = R"(-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZYy5IdO8RoEsayhUdZ7HUPVw3vLy
QgWpdGPI3IUY3Lvjh1U7nBIKTUxqX2MhDOywDNEViPWLfaM5PxaCMxqSCA==
-----END PUBLIC KEY-----)",
     .signature = R"(MEQCIFmPODnUcSA7WpNse8SkmTDXccPJd6UU1uBhyuZEKAXfAiBopJDlzIBz5FG2B80kzmfh)"
                  R"(b3b9V1CJ1UJPvuWcHCDekw==)"},
    {.name = "rsa",
     .public_key = R"(-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtyie/BvVBestDot1wLNN
bt+MZg61zBDjqbhoeOChzEoI7bfA40DbSEdFep/0s4ld/nVWTwdHWX3ts/Gkjh69
RobQ0Y1AQHqKIcGtrnNINshGtMXPobkHeHXyV3/IxlsLZDAtBvlHoCFcqkHb4iRU
fe0y8Jvb1VRK6N8oLit7lSsfASi1K+06XLU6kjTats6OnyK0aAhEOzPbzfIzB90R
X/Zq04DuoxlebcqFKvzWOLQE1rmm9PLWSsjEo8bVbkvq1lixIqw1IsvgNK8bKDuF
GT1LUK3SY/EC2nWjj0Km0q76PugXYPKPnsTOdZv0VVKUg4U2PQDsypMAtxmdsxje
hQIDAQAB
-----END PUBLIC KEY-----)",
     .signature = R"(hQNwss6DwZMm69Y1AMCxhXc6G/m668FolRBnhF4Ytq3CYuNvs6QYRsNCoTN9ln4DdFCz0wI3)"
                  R"(Wgaz5N5ga5J66N7mLtC5OUiYSjC3rV7qEqlHyxalIfpJv/whxQ3Z+C8HF0IypwZeX+C6WUN3)"
                  R"(rfr/kErXrRU05GfXdKNGK8AlykkHYcpUeWc/JlAX6KkzG25rEPi67nKgIrWNHjpvTZpbuOVL)"
                  R"(Yr2xEr0T6TzY1h9rRqDkLSmpIr1qqI4t2OkzxPrfeQAG1PqIC4V8c8MgroAGn8Tab5PTVRmu)"
                  R"(ejsmi+udtXZCND41PMQnPmqmDkcuJx776SSxbhSln0YXIqXIhltuqw==)"},
    {.name = "ed25519",
     .public_key = R"(-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEArxSX3q82G5Pm7IsKziWFk9qLFNPtYw3JJoDG7+L85QY=
-----END PUBLIC KEY-----)",
     .signature = R"(oF0l8vpaV0MNbiDYY7DLfO6J4uI5oPun8lvD7gKHTG/6YLAlueCI8PsSjvN03cDWoUHHyR2s)"
                  R"(kydRodyyvVG8AQ==)"},
}};

}  // namespace hangar::schematics
