"""Made-up secrets of every shape, as they are printed: what stands before, the secret itself, what stands behind."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Shape(NamedTuple):
    """A text with a secret in it."""

    name: str
    before: str
    secret: str
    after: str

    @property
    def text(self) -> str:
        """As it is printed."""
        return self.before + self.secret + self.after


def _made(length: int, chars: str) -> str:
    """Return characters that look drawn by lot and are the same every time; no key stands in the source."""
    drawn, number = "", 0
    while len(drawn) < length:
        digest = hashlib.sha256(f"{length}{chars}{number}".encode()).digest()
        drawn += "".join(chars[one % len(chars)] for one in digest)
        number += 1
    return drawn[:length]


_LOWER, _UPPER, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_WORD = _LOWER + _UPPER + _DIGITS
_URL = _WORD + "-_"
_HEX = _DIGITS + "abcdef"
_BASE64 = _WORD + "+/"


def _key(kind: str, lines: int) -> Shape:
    body = "\n".join(_made(64, _BASE64)[number:] + _made(number, _WORD) for number in range(lines)) + "\nq83Ab7w==\n"
    return Shape(f"private key {kind}", f"-----BEGIN {kind}-----\n", body, f"-----END {kind}-----\n")


def _token(name: str, prefix: str, length: int, chars: str = _WORD) -> Shape:
    return Shape(name, f"printed {prefix}", _made(length, chars), " and more\n")


_TOKENS = (
    _token("aws", "AKIA", 16, _UPPER + "234567"),
    _token("aws temporary", "ASIA", 16, _UPPER + "234567"),
    _token("github", "ghp_", 36),
    _token("github oauth", "gho_", 36),
    _token("github server", "ghs_", 36),
    _token("github fine-grained", "github_pat_", 82, _WORD + "_"),
    _token("gitlab", "glpat-", 20, _URL),
    _token("slack bot", "xoxb-", 50, _DIGITS + _LOWER + "-"),
    _token("slack user", "xoxp-", 60, _DIGITS + _LOWER + "-"),
    _token("slack app", "xapp-1-", 60, _WORD + "-"),
    Shape("anthropic", "printed sk-ant-", "api03-" + _made(95, _URL), " and more\n"),
    _token("openai", "sk-", 48),
    _token("openai project", "sk-proj-", 74, _URL),
    _token("openrouter", "sk-or-v1-", 64, _HEX),
    _token("stripe", "sk_live_", 24),
    _token("stripe restricted", "rk_test_", 24),
    _token("stripe webhook", "whsec_", 32),
    _token("google api", "AIza", 35, _URL),
    _token("google oauth", "ya29.", 60, _URL),
    _token("google client", "GOCSPX-", 28, _URL),
    _token("npm", "npm_", 36),
    _token("pypi", "pypi-AgE", 150, _URL),
    _token("rubygems", "rubygems_", 48, _HEX),
    _token("docker", "dckr_pat_", 27, _URL),
    _token("hugging face", "hf_", 34),
    _token("replicate", "r8_", 37),
    _token("groq", "gsk_", 52),
    _token("digitalocean", "dop_v1_", 64, _HEX),
    _token("shopify", "shpat_", 32, _HEX),
    _token("sendgrid", "SG.", 66, _URL),
    _token("mailgun", "key-", 32, _HEX),
    _token("twilio", "SK", 32, _HEX),
    _token("telegram", "123456789:AA", 33, _URL),
    Shape("discord", "bot MTk4NjIyNDgzNDcxOTI1MjQ4.", "Cl2FMQ." + _made(27, _WORD), " up\n"),
    _token("databricks", "dapi", 32, _HEX),
    _token("grafana", "glsa_", 41, _WORD + "_"),
    _token("new relic", "NRAK-", 27, _UPPER + _DIGITS),
    _token("linear", "lin_api_", 40),
    _token("notion", "ntn_", 46),
    _token("figma", "figd_", 40, _URL),
    _token("postman", "PMAK-", 59, _HEX),
    _token("terraform", "abcDEF12345678.atlasv1.", 67, _URL),
    _token("vault", "hvs.", 90, _URL),
    _token("doppler", "dp.pt.", 43),
    _token("age", "AGE-SECRET-KEY-1", 58, _UPPER + _DIGITS),
    _token("netlify", "nfp_", 40),
    _token("supabase", "sbp_", 40, _HEX),
    _token("planetscale", "pscale_tkn_", 43, _URL),
    _token("atlassian", "ATATT3x", 180, _URL),
    _token("tailscale", "tskey-auth-", 45, _WORD),
    Shape("json web token", "token eyJ", f"{_made(20, _WORD)}.eyJ{_made(40, _URL)}.{_made(43, _URL)}", "\n"),
)

_NAMED = (
    Shape("environment", "export DB_PASSWORD=", "correcthorse", "\n"),
    Shape("environment, mixed", "PGPASSWORD=", "p4ss,w0rd!;x", " psql\n"),
    Shape("yaml", "  password: ", "hunter2x!", "\n"),
    Shape("json", '{"user": "me", "password": "', "correct-horse", '"}\n'),
    Shape("json in json", 'body: "{\\"password\\": \\"', "s3cr3tPa55", '\\"}"\n'),
    Shape("code", "connect(host, password='", "Tr0ub4dor", "')\n"),
    Shape("not ascii", "password = ", "pässwörd9", "\n"),
    Shape("connection string", "Server=db;User Id=sa;Password=", "Pa55w.rd", ";\n"),
    Shape("xml", "<password>", "hunter22!", "</password>\n"),
    Shape("aws secret key", "aws_secret_access_key = ", _made(40, _BASE64), "\n"),
    Shape("client secret", '"client_secret": "', _made(32, _URL), '",\n'),
    Shape("api key", "API_KEY=", _made(32, _HEX), "\n"),
    Shape("account key", "AccountName=x;AccountKey=", _made(86, _BASE64) + "==", "\n"),
    Shape("access token", '"access_token":"', _made(40, _WORD), '"}\n'),
    Shape("header", "> Authorization: Bearer ", _made(40, _URL), "\n"),
    Shape("basic header", "'Authorization: Basic ", "bWU6aHVudGVyMg==", "'\n"),
    Shape("flag", "login --user me --password ", "hunter2x", " --host db\n"),
    Shape("netrc", "machine h.example.org login me password ", "hunter2x", "\n"),
    Shape("url", "postgres://me:", "hunter2x", "@db.internal:5432/app\n"),
    Shape("url without name", "redis://:", "S3cret-Pass", "@cache:6379\n"),
    Shape("signed url", "https://b.s3.amazonaws.com/k?X-Amz-Signature=", _made(64, _HEX), "\n"),
    Shape("url parameter", "GET https://api.internal/v1?access_token=", _made(40, _WORD), "&x=1\n"),
    Shape("slack webhook", "https://hooks.slack.com/services/", "T0ABCDEFG/B0ABCDEFG/" + _made(24, _WORD), "\n"),
    Shape("npmrc", "//registry.internal/:_authToken=", _made(36, _HEX), "\n"),
    Shape("docker", '"auth": "', "bWU6aHVudGVyMnh4", '"\n'),
)

_ALSO = (
    Shape("curl", "curl -sS -u bob:", "hunter2x", " https://h/\n"),
    Shape("curl, long", "curl https://h/ --user 'bob:", "correct-horse", "'\n"),
    Shape("mysql", "mysql -u root -p", "hunter2x", " db\n"),
    Shape("mysqldump", "mysqldump --all -h db -p'", "correcth0rse", "' > x\n"),
    Shape("sshpass", "sshpass -p ", "hunter2x", " ssh me@host\n"),
    Shape("cookie", "> Cookie: sessionid=", "4f2a9c0be11d4f2a9c0be11d", "\n"),
    Shape("set-cookie", "< Set-Cookie: sid=", "4f2a9c0be11d4f2a9c0be11d", "; Path=/; HttpOnly\n"),
    Shape("shadow", "me:$6$saltOfMineIsHere$", _made(86, _WORD), ":19000:0:99999:7:::\n"),
    Shape("yescrypt", "me:$y$j9T$saltOfMineIsHere2/.x$", _made(43, _WORD), ":19000:0:99999:7:::\n"),
    Shape("htpasswd", "me:$apr1$saltHere$", _made(22, _WORD), "\n"),
    Shape("bcrypt", "me:$2y$10$", _made(53, _WORD), "\n"),
    Shape("shadow, slashes early", "me:$6$salt/OfMine$", ("a/b.Z9" * 15)[:86], ":19000:0:99999:7:::\n"),
    Shape("apache, slash early", "me:$apr1$sa/tHere$", "a/b.Z9c/d.Y8e/f.X7g/h.", "\n"),
    Shape("webhook secret, slashes early", "STRIPE whsec_", "a+b/Z9" * 6, "\n"),
    Shape("pgpass", "db.internal:5432:app:me:", "hunter2x", "\n"),
    Shape("pgpass, any", "*:*:*:postgres:", "correct-horse", "\n"),
    Shape("pgpass, escaped", "db:5432:*:me:", "tr\\:oub\\\\4dor", "\n"),
    Shape("pgpass, another port", "echo 'db.internal:6543:app:me:", "hunter2x!", "' >> .pgpass\n"),
    Shape("token in an encoded url", "https://h/cb?next=%2Fx%3Ftoken%3Dghp_", _made(36, _WORD), "&x=1\n"),
    Shape(
        "json web token in a url",
        "https://h/cb#id_token%3DeyJ",
        f"{_made(20, _WORD)}.eyJ{_made(40, _URL)}.{_made(43, _URL)}",
        "&state=1\n",
    ),
    Shape(
        "encrypted json web token", "https://h/t/eyJ", f"{_made(30, _WORD)}..{_made(16, _URL)}.{_made(43, _URL)}", "\n"
    ),
    Shape("passphrase in a sentence", "your passphrase is ", "hunter2-horse", "\n"),
)

_KEYS = (
    _key("RSA PRIVATE KEY", 5),
    _key("PRIVATE KEY", 3),
    _key("OPENSSH PRIVATE KEY", 4),
    _key("PGP PRIVATE KEY BLOCK", 4),
    Shape(
        "private key in json", '"private_key": "-----BEGIN PRIVATE KEY-----\\n',
        _made(64, _BASE64) + "\\n" + _made(40, _BASE64), '\\n-----END PRIVATE KEY-----\\n",\n',
    ),
    Shape(
        "encrypted private key",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n",
        _made(64, _BASE64) + "\n", "-----END RSA PRIVATE KEY-----\n",
    ),
)  # fmt: skip

SHAPES = (*_TOKENS, *_NAMED, *_ALSO, *_KEYS)

HARMLESS = (
    "password: incorrect",
    "Password for user1: ",
    "password = getpass.getpass()",
    "def login(user, password=None):",
    "self.password = settings.DATABASE_PASSWORD",
    "PASSWORD=$DB_PASSWORD ./run",
    "passed=12 failed=0",
    "PWD=/home/me/src OLDPWD=/tmp",
    "token = tokens[index + 1]",
    "token: expected ';' before 'return'",
    "key: value",
    "key = sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "secretName: my-app-tls-2",
    "https://example.org:8443/path?key=value&x=1",
    "git clone https://github.com/org/repo.git",
    "postgres://user:password@localhost/db",
    "Authorization: Bearer <token>",
    "scikit-learn sk-learn sk-SK.utf8 ghp_short AKIAtoo",
    "-----BEGIN PRIVATE KEY----- is how a private key begins, and this is only about it",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n",
    "eyJhbGci is how a token begins",
    "drwxr-xr-x 2 root root 4096 keyrings passwd shadow- token_list",
    "gpg: key 0123456789ABCDEF: public key imported",
    "docker.io/library/nginx@sha256:0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31",
    "123e4567-e89b-12d3-a456-426614174000",
    "monkey=1234567890abcdef1234 turkey: 3",
    "gcc: pass_waccess::check_alloca (gimple *)",
    'PASS = "python"',
    "typeset -g __bp_pwd= __bp_fd= __bp_m=",
    "__bp_y=${PWD:__bp_i:1}",
    "containing login and password for ftp.  Example:",
    "private_key: Ed25519PrivateKey | Ed448PrivateKey",
    'CHALLENGE_PASSWORD: "challengePassword",',
    "the password is required, and the passphrase is empty",
    "mysql -u root -p db; mysql -P 3306 --protocol=tcp",
    "src/main.c:1234:static:int:count1",
    "cpe:2.3:a:vendor:product:1.0:*:*:*:*:*:*:* urn:*:*:a:b arn:aws:iam::1234:role/x",
    "hostname:port:database:username:password localhost:5432:db:user:password",
    "0.0.0.0:8080:80 fe80:1234:5678:9abc:def0 12:34:56:78:9a:bc 2026:11:22:17:00:01",
    "std::chrono::duration a::b:c:d 10:1024:50:x:y12345",
    "$(echo $1$2) $$ $6$ cost 5$/month/per/user/in/total/and/more/of/it",
    "curl -u user https://example.org:8443/; Cookie: name=value",
)
