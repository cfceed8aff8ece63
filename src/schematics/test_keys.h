// Keys, and signatures of kPlain, that yoke's own program has made.
#pragma once

#include <array>
#include <string_view>

namespace hangar::schematics {

inline constexpr std::string_view kPlain("\0asm\1\0\0\0\0\5\3abcd", 15);

struct MadeByYoke {
  std::string_view name;
  std::string_view public_key;
  std::string_view payload;
};

// The RSA key has 2048 bits, the elliptic curve is P-256.
inline constexpr std::array<MadeByYoke, 3> kMadeByYoke = {{
    {.name = "rsa",
     .public_key = R"(-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAiRnnjjINYlgWz2xmPAjv
5o66q2RbW88fXrSgsPieEax5xNxp0wMbNidQPzTr5aNbSjiu+S2AmO3C8RuqFsAX
m/z6QEIDo24EqxNZ9Ov+pYnoa2YoI+B/xZv9SWYAcIA/gOEfV1ctWWV0eZYfgG0Y
oRxMA1IecM5tiw7Pxw80ywHpfINv993fjtuz51Waj4hOdau7Mcb1yGUznsO77Ncp
YusCMxKXM3ILXDzxrxBcMZYl0YHujm7DG1USIUD/Ch/opGMAZXbWvpGWJ+5dVuNZ
6cL40te2yn1p1VK6iTLGkG4Ynw9fjbZcCfNd2JD14JvPfCa0SKd8IkL9vUwN45QH
EQIDAQAB
-----END PUBLIC KEY-----)",
     .payload =
         R"({"Fingerprint":"a11008d3d2624c6f2077c5bd4aa580e56ec4c55034733ea7b8390754a5a2ae6d)"
         R"(","Signature":"RfVe/QNLUbogLIbwVNTjAbWfhSXcX5bkoPZLcDHV9Ju6UQnCRj9yiQCIj2Jc0srTM)"
         R"(/LccgHN+5P1MICKXl11aq4znk6eER/oF4AqSGCsz8/S9xw9lWLI1oBiFmkWLM8V/e8RvwkWYb/kUOEjq)"
         R"(Ga0NgrPdQ2uCOUdSAGIZwRzr4OH9s6Xh1yhxtZQvEqq0JSzlH2fCPmBee55RPHfhPhYVFBFW+HvaSx03)"
         R"(cGe2OB2rH/dn3Uu7WMvDPIvmwbon0rqPE+xvGN6jApcsIBe4KumPJ2y6B48btRusRQu6vBfXVFRAMmLX)"
         R"(6VwhBS2el4knlStt5yr6a4rxmATrSv6THPKmw=="})"},
    {.name = "ecdsa",
     .public_key = R"(-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEGMAeGfV7VJZOtl5oFktxpICKVeQp
aJuIKslfoHNAYJSQymV0NZfnyD7EoC9x9K2JC9QGihxN3Y4oRdPzxrJjEg==
-----END PUBLIC KEY-----)",
     .payload =
         R"({"Fingerprint":"5daa22076b2f9de56303669c50429fde85cc273c0b68bf4a4216a53995f8d602)"
         R"(","Signature":"MEUCIQCS6fjLHv89VKwbv/yaIi4VpTcCOT1OaGDElwGK7GeKTgIgJjPCmnNJOui9e)"
         R"(yDME0TdaP7ZEm+8FTJd6VNhyb2kLmo="})"},
    {.name = "ed25519",
     .public_key = R"(-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA37mI2qInKMp2WmobQSC0ETebm/C1IsRBJzNWhlerwwQ=
-----END PUBLIC KEY-----)",
     .payload =
         R"({"Fingerprint":"6928ea18e8fce42b49b061e157ac1665bea10365798435dc43b419a7f8f070e2)"
         R"(","Signature":"/jJVghULKU6za2Kxr+J3v5gpMFYjTmJACRASpyTFbvLrcScTCnZri5O93sS1gE1SU)"
         R"(h0LQInThdFXczOqIPAbAA=="})"},
}};

inline constexpr std::string_view kEd25519Private = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIFEaLLt3rjdUS+JpMhR9eeaD54UVUw9SAzDs0ZQDWCTC
-----END PRIVATE KEY-----)";
inline constexpr std::string_view kEcPrivate = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgz4/2bfKCiCFTr12B
dhtzAJ2Rp/d/Ni4Kqk9pJtN+SNihRANCAAQYwB4Z9XtUlk62XmgWS3GkgIpV5Clo
m4gqyV+gc0BglJDKZXQ1l+fIPsSgL3H0rYkL1AaKHE3djihF0/PGsmMS
-----END PRIVATE KEY-----)";
inline constexpr std::string_view kP384Private = R"(-----BEGIN PRIVATE KEY-----
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDDwtwIbbWXcB/5dF4u/
tEvZknzlxZGEwnN8qzas1OVk7ZvIq1+ftm4uHwlqbV/THhyhZANiAAR4wfLUizHT
+LaDCuAKk2H0Q7T6iCU7yete6Yy3IHepDnV2uM8PSgMeBc6sTw3v4ru7amKe9Mnl
xAcu/3oHBsDEBTDKfd1qtWqTA813W+2qOlTXWdH/0/QAdYAwwL5/Erw=
-----END PRIVATE KEY-----)";

// Keys that are refused: another curve, too few bits, a type of PEM that yoke does not take.
inline constexpr std::string_view kSecp256k1Private = R"(-----BEGIN PRIVATE KEY-----
MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQgmZz5HkAJuWZMAJPxYv3e
M3ZTkxVtIA1EW6IYJNsxwkChRANCAAQhvnGzp6RpaQDahzqaKI50MSbCVNywtGMA
o7rKY76uiYFDJHFZ2+EhRE99V0oK0K69LywszNUIQhmpF9me5oZD
-----END PRIVATE KEY-----)";
inline constexpr std::string_view kRsa512Private = R"(-----BEGIN RSA PRIVATE KEY-----
MIIBOgIBAAJBALW82VWaG3PBsImRQYd6ftYjcaLDm+ZoNxGHKLHJtRxnt5zzj3p5
l9HC9+ChnMYYKRmXCXpo5GaG5qXQzqmNNckCAwEAAQJAJyiGx6wJ6Do+uJWEwhVB
yRAgBwsQx2eDHhK6UPx+Op09APliRHwPacFBoTFThj719zXm6VRUIIqVuP2L80fG
kQIhAO79n9GvfevI2Ovu9BIuc5SRBSCrznt0UtlW/h9N5OytAiEAwqwVOmVmdC7B
aZvNLoEwu1zc/2RBAecvpE/xLdjvFQ0CIQDhCeNG4DfzIPHZ3+zlfeYJvDCW3hCV
QSiOTRMHSSLKFQIgU4HgBVHUFkisPTJRXP6cOfNG9eM6o6dZX4HPcpxZSs0CIBVX
LhstdTzKxjXNPCsBr6zfyuHfn85BISIryEoEOh0B
-----END RSA PRIVATE KEY-----)";
inline constexpr std::string_view kSec1Private = R"(-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIJrcNKNtWgR+yWM/czQyeZ56/s+Kpv88iBNeZaOcSlBMoAoGCCqGSM49
AwEHoUQDQgAEha2os1DpU8LD8wUeqyT9FFBGeNqrObJLoMhfJKre0DMyEajaQ5km
eUrh2i/mVMTxUfl9awPE3vJ0rsbAeVg8xQ==
-----END EC PRIVATE KEY-----)";

}  // namespace hangar::schematics
