"""Shapes of secrets as data: what a credential looks like in text.

Rules of this file: data and regular expressions over clean text (bytes without control sequences); `redaction` decides
what is done with a match. The value is redacted; what stands before it stays readable, so that a reader learns which
kind of secret was there.

Three things make a shape cheap and safe in a stream. A token begins with a literal that its maker chose to be
recognisable, and goes on in characters of one class, so a run of such characters is found first and its beginning is
looked at then. What has no such literal is named by a word before it (`password=`, `Authorization:`), and that word is
found first. And what a value is depends on nothing behind it but its end, so that only a value that reaches the end of
the text can change when more text comes: it is then `open`.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import regex


class TokenShape(NamedTuple):
    """A credential that begins with a literal of its maker.

    Attributes:
        name: what it is.
        prefix: a regular expression of how it begins; stays readable.
        chars: the class of what follows, inside brackets; least: how many of those make it one.
        value: what the value must look like, where the two do not say it all.
    """

    name: str
    prefix: str
    chars: str
    least: int
    value: str = ""


_WORD: Final = "A-Za-z0-9"
_URL: Final = "A-Za-z0-9_-"

TOKENS: Final = (
    TokenShape("aws access key id", "A(?:KIA|SIA|ROA|BIA|CCA)", "A-Z0-9", 16),
    TokenShape("github token", "gh[pousr]_", _WORD, 30),
    TokenShape("github fine-grained token", "github_pat_", "A-Za-z0-9_", 40),
    TokenShape("gitlab token", "gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-", "A-Za-z0-9_.-", 18),
    TokenShape("gitlab runner registration", "GR1348941", _URL, 18),
    TokenShape("slack token", "xox[abeoprs]-", "A-Za-z0-9-", 20),
    TokenShape("slack app token", "xapp-[0-9]-", "A-Za-z0-9-", 20),
    TokenShape("slack configuration token", "xoxe\\.xox[bp]-", "A-Za-z0-9-", 20),
    TokenShape("anthropic key", "sk-ant-", _URL, 24),
    TokenShape("openai key", "sk-(?:proj|svcacct|admin|None)-", _URL, 24),
    TokenShape("openrouter key", "sk-or-v1-", "a-f0-9", 32),
    TokenShape("openai style key", "sk-", _WORD, 32),
    TokenShape("stripe key", "[rs]k_(?:live|test)_", _WORD, 16),
    TokenShape("stripe webhook secret", "whsec_", "A-Za-z0-9+/=", 24),
    TokenShape("google api key", "AIza", _URL, 35),
    TokenShape("google oauth token", "ya29\\.", "A-Za-z0-9_.-", 20),
    TokenShape("google client secret", "GOCSPX-", _URL, 20),
    TokenShape("google refresh token", "1//0[0-9a-z]", _URL, 30),
    TokenShape("npm token", "npm_", _WORD, 30),
    TokenShape("pypi token", "pypi-AgE", _URL, 40),
    TokenShape("rubygems key", "rubygems_", "a-f0-9", 40),
    TokenShape("crates.io token", "cio", _WORD, 32),
    TokenShape("docker hub token", "dckr_(?:pat|oat)_", _URL, 20),
    TokenShape("hugging face token", "hf_", _WORD, 30),
    TokenShape("replicate token", "r8_", _WORD, 30),
    TokenShape("groq key", "gsk_", _WORD, 40),
    TokenShape("xai key", "xai-", _WORD, 60),
    TokenShape("perplexity key", "pplx-", _WORD, 40),
    TokenShape("digitalocean token", "do[opr]_v1_", "a-f0-9", 40),
    TokenShape("shopify token", "shp(?:at|ca|pa|ss)_", "a-fA-F0-9", 30),
    TokenShape("square token", "sq0[a-z]{3}-", _URL, 22),
    TokenShape("facebook token", "EAA[CG]", _WORD, 60),
    TokenShape("sendgrid key", "SG\\.", "A-Za-z0-9_.-", 40),
    TokenShape("mailgun key", "key-", "a-f0-9", 32),
    TokenShape("twilio key", "SK", "a-f0-9", 32),
    TokenShape("brevo key", "xkeysib-", "a-f0-9-", 40),
    TokenShape("telegram bot token", "[0-9]{8,10}:AA", _URL, 32),
    TokenShape(
        "discord bot token",
        "[MNO][A-Za-z0-9]{22,27}\\.",
        "A-Za-z0-9_.-",
        32,
        f"[{_URL}]{{6}}\\.[{_URL}]{{25,}}",
    ),
    TokenShape("databricks token", "dapi", "a-f0-9", 32),
    TokenShape("grafana token", "gl(?:sa|c)_", "A-Za-z0-9_+/=", 32),
    TokenShape("new relic key", "NR(?:AK|JS|II|AL)-", _WORD, 20),
    TokenShape("dynatrace token", "dt0c01\\.", "A-Z0-9.", 40),
    TokenShape("sentry token", "sntr[yu]s_", "A-Za-z0-9_+/=-", 40),
    TokenShape("linear key", "lin_(?:api|oauth)_", _WORD, 32),
    TokenShape("notion token", "ntn_", _WORD, 40),
    TokenShape("figma token", "fig[doru]_", _URL, 36),
    TokenShape("postman key", "PMAK-", "a-f0-9-", 40),
    TokenShape("pulumi token", "pul-", "a-f0-9", 40),
    TokenShape("terraform cloud token", "[A-Za-z0-9]{14}\\.atlasv1\\.", "A-Za-z0-9_=-", 50),
    TokenShape("vault token", "hv[sbr]\\.", _URL, 24),
    TokenShape("doppler token", "dp\\.(?:pt|st|ct|sa|scim|audit)\\.", "A-Za-z0-9_.-", 36),
    TokenShape("1password token", "ops_eyJ", "A-Za-z0-9_+/=-", 60),
    TokenShape("age secret key", "AGE-SECRET-KEY-1", "A-Z0-9", 40),
    TokenShape("fly.io token", "fo1_", _URL, 40),
    TokenShape("netlify token", "nfp_", _WORD, 36),
    TokenShape("supabase key", "sb(?:p|_secret)_", "A-Za-z0-9_", 30),
    TokenShape("planetscale token", "pscale_(?:tkn|pw|oauth)_", "A-Za-z0-9_.-", 30),
    TokenShape("atlassian token", "ATATT3x", "A-Za-z0-9_=-", 60),
    TokenShape("buildkite token", "bk(?:ua|ct|at)_", "a-f0-9", 32),
    TokenShape("tailscale key", "tskey-(?:auth|api|client|webhook|scim)-", "A-Za-z0-9-", 20),
    TokenShape("crypt hash", "[567y]\\$(?:[./A-Za-z0-9=,]{1,32}\\$){1,2}", "./A-Za-z0-9", 40),
    TokenShape("md5 crypt hash", "1\\$[./A-Za-z0-9]{1,16}\\$", "./A-Za-z0-9", 22),
    TokenShape("apache hash", "apr1\\$[./A-Za-z0-9]{1,16}\\$", "./A-Za-z0-9", 22),
    TokenShape("bcrypt hash", "2[abxy]\\$[0-9]{2}\\$", "./A-Za-z0-9", 50),
    TokenShape(
        "json web token",
        "eyJ",
        "A-Za-z0-9_.-",
        30,
        "[A-Za-z0-9_-]{10,}\\.{1,2}[A-Za-z0-9_-]{10,}[A-Za-z0-9_.-]*",
    ),
)

# Tokens are looked for where so many of these characters stand in a row (the shortest token with its prefix).
RUN_CHARS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
RUN_LEAST: Final = 20

# Those whose values may have other characters early, and these characters: where one of them is, they are in runs, too.
WIDE_RUN_CHARS: Final = RUN_CHARS + b"+/="
WIDE: Final = (
    (b"$1$", b"$5$", b"$6$", b"$7$", b"$y$", b"$apr1$", b"$2a$", b"$2b$", b"$2x$", b"$2y$"),
    (b"whsec_", b"glsa_", b"glc_"),
    (b"ops_eyJ",),
    (b"sntry",),
)

# A token is not the middle of a longer word, but it may stand behind a percent code of a URL, and behind the letter of
# an escape such as `\n` in JSON. It begins with a letter or digit, which spares the others a look at each.
_BEFORE: Final = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\[abfnrtv]))(?=[A-Za-z0-9])"


def _by_first() -> dict[str, list[TokenShape]]:
    """Return the tokens, those that begin with the same character together.

    So most places are turned down by a look at one character.
    """
    by_first: dict[str, list[TokenShape]] = {}
    for token in TOKENS:
        first = token.prefix if token.prefix.startswith("[") else token.prefix[0]
        by_first.setdefault(first, []).append(token)
    return by_first


_BY_FIRST: Final = _by_first()
# In the order of the groups of a pattern of all tokens.
_ORDERED: Final = tuple(token for tokens in _BY_FIRST.values() for token in tokens)


def _any(ending: Callable[[TokenShape], str], before: str = _BEFORE) -> re.Pattern[bytes]:
    """Return a pattern of all tokens."""
    several = [
        f"{first}(?:" + "|".join(f"{token.prefix[len(first) :]}({ending(token)})" for token in tokens) + ")"
        for first, tokens in _BY_FIRST.items()
    ]
    return re.compile(f"{before}(?:{'|'.join(several)})".encode())


# These patterns are slow to compile, and most processes never need them.


@functools.cache
def any_token() -> re.Pattern[bytes]:
    """Return the pattern of any token; the only group that matched is its value."""
    return _any(lambda token: token.value or f"[{token.chars}]{{{token.least},}}")


@functools.cache
def open_token() -> re.Pattern[bytes]:
    """Return the pattern of the beginning of a token at the end of a text."""
    return _any(lambda token: f"[{token.chars}]+\\Z")


@functools.cache
def glued_token() -> re.Pattern[bytes]:
    """As `any_token`, in the middle of a word: behind another token."""
    return _any(lambda token: token.value or f"[{token.chars}]{{{token.least},}}", "")


@functools.cache
def cut_token() -> re.Pattern[bytes]:
    """As `any_token`, but so short as one that was cut, for a title: too much in ordinary text looks like that."""
    return _any(lambda token: f"[{token.chars}]{{8,}}")


TOKEN_REST: Final = tuple(re.compile(f"[{token.chars}]*".encode()) for token in _ORDERED)
"""Matches the rest of a token's value, in the order of the groups of `any_token`."""

# Of a prefix: alternatives, a class with how often, a character.
_ATOM: Final = re.compile(
    r"\(\?:(?P<either>[^()\[\]]*)\)"
    r"|\[(?P<any>[^]]*)\](?P<often>\{(?P<least>\d+)(?:,(?P<most>\d+))?\})?"
    r"|\\?(?P<one>[^(])|(?P<more>\()"
)


def _literals(prefix: str) -> Iterator[tuple[bytes, int, int]]:
    """Yield texts of which one stands in each text with a prefix, each with how much of it stands before that."""
    least = most = 0
    texts = [""]
    for atom in _ATOM.finditer(prefix):
        if atom["either"] is not None:
            texts = [text + one for text in texts for one in atom["either"].split("|")]
        elif atom["one"] is not None:
            texts = [text + atom["one"] for text in texts]
        elif atom["any"] is not None and not atom["often"] and "-" not in atom["any"]:
            texts = [text + one for text in texts for one in atom["any"]]
        elif len(texts[0]) > 1 or atom["any"] is None:
            break
        else:
            # A single character stands everywhere: what comes later is looked for.
            least, most, texts = least + len(texts[0]), most + len(texts[0]), [""]
            least += int(atom["least"] or 1)
            most += int(atom["most"] or atom["least"] or 1)
    return ((text.encode(), least, most) for text in texts)


TOKEN_LITERALS: Final = tuple(dict.fromkeys(found for token in TOKENS for found in _literals(token.prefix)))
"""Texts of which one stands in each token, each with how far before it at least and at most the token begins."""

TOKEN_IS_WIDE: Final = tuple("/" in token.chars for token in _ORDERED)
"""Which values may have the characters early that are in wide runs alone, in the same order."""


class NamedShape(NamedTuple):
    """A secret that a word before it names.

    Attributes:
        word: what is looked for, in lower case.
        expression: matches from the word on; one of its groups is the value.
        is_secret: whether the value of a match in a text is a secret; asked only where the text goes on behind it.
        least: bytes of the shortest value that can be one.
        may_be: whether what stands around the word allows it; most words are turned down by a look at one byte.
        is_named: whether what stands before the word allows a secret that ends before the text does.
    """

    word: bytes
    expression: bytes
    is_secret: Callable[[bytes, re.Match[bytes], bytes], bool]
    least: int = 1
    may_be: Callable[[bytes, int], bool] | None = None
    is_named: Callable[[bytes, int], bool] | None = None

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """The expression compiled, when it is asked for: few texts have its word, and `re` remembers it."""
        return re.compile(self.expression)


_IGNORED: Final = re.compile(
    rb"""(?ix) ^ (?: [*x.\-_=#?\\]+ | none | null | nil | true | false | undefined | string | str | int | bool | bytes
    | any | object | optional | required | password\d? | passwd | passphrase | pass | secret | token | key | value
    | example | default | hidden | redacted | masked | removed | empty | unset | prompt | file | stdin | env | changeme
    | your[-_].* | my[-_]?(?:password|secret|token|key) | .*(?:example|placeholder|redacted).* ) $"""
)
_CODE: Final = re.compile(rb"[(){}\[\]<>]|\$|^[%@&*!]|^[A-Za-z_]+\d?(?:\.[A-Za-z_]+\d?)+$|^[./~]|://|\\[nrt]$")
_PLAIN_WORDS: Final = re.compile(rb"[A-Za-z]+(?:[-_.:/][A-Za-z]+)*[-_.:,;]?")
_NUMBERED: Final = re.compile(rb"[a-z_]+\d{1,2}|v?[\d.]+|0x[0-9a-fA-F]+|[A-Z_]+\d{0,2}", re.ASCII)


# Of a declaration: the name of a type, an empty assignment before the next one, the rest of a name in C++.
_NO_VALUE: Final = re.compile(
    rb"[A-Za-z0-9_.]*[a-z0-9](?:Password|TokenShape|Secret|PrivateKey|PublicKey)|[A-Za-z_][A-Za-z0-9_]*=|:.*", re.DOTALL
)


def _bits(value: bytes) -> float:
    """Return the entropy of the characters, in bits a character."""
    # In the same order, so that no sum is another one.
    counts = map(value.count, dict.fromkeys(value)) if len(value) > 256 else Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _digits(value: bytes) -> int:
    return len(value) - len(value.translate(None, b"0123456789"))


def _mixed(value: bytes) -> bool:
    """Whether a value has more than words in it: it is not the name of something."""
    words = _PLAIN_WORDS.fullmatch(value) or _NUMBERED.fullmatch(value)
    return not (words or _IGNORED.match(value) or _CODE.search(value))


def _random(value: bytes) -> bool:
    """Whether a value looks like nothing that a person would have made up."""
    # What costs little comes first: a line may hold thousands of words with a value of thousands of bytes behind each.
    if len(value) < 16 or not value.isascii():
        return False
    digits = _digits(value)
    upper, lower = value != value.lower(), value != value.upper()
    if digits < (2 if upper and lower else 4) or not (upper or lower):
        return False
    return _bits(value) >= 3.0 and _mixed(value)


def _password(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    """Words are a password where they are quoted, or assigned as a shell assigns: `DB_PASSWORD=correcthorse`."""
    if len(value) < 5 or _IGNORED.match(value) or _CODE.search(value) or _NO_VALUE.fullmatch(value):
        return False
    if found["sep"] == b":" and text[found.start() - 2 : found.start()] == b"${":
        return False  # a substring, in a shell
    if _mixed(value):
        return len(value) > 5 and any(not 97 <= one <= 122 for one in value)
    if found["quote"]:
        # PASS is as well what a test did, or what is passed on.
        plain = found[0][4:5] in b" \t=:" and value.isalpha() and value.islower()
        return len(value) > 5 and not plain and not _NUMBERED.fullmatch(value)
    word = text[found.start() : found.start() + 3]
    return found["sep"] == b"=" and len(value) > 7 and word.isupper() and value != value.upper()


def _secret(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    if found["rest"].lower().endswith((b"name", b"ref", b"id", b"version", b"path", b"file")):
        return False
    return len(value) >= 8 and _digits(value) > 0 and _mixed(value) and _bits(value) >= 2.5


def _token(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    return _random(value) and text[max(0, found.start() - 9) : found.start()].lower() != b"publickey"


_KEY_OF: Final = re.compile(
    rb"(?i)(?:api|access|secret|private|account|auth|encryption|encrypt|signing|master|license|storage|shared|app|"
    rb"service|subscription|client|consumer|deploy|webhook|admin|host|session|cookie|hmac|jwt|aes)[_ .-]?\Z"
)


def _key(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    """A key without a word that says which is any key of any table."""
    of = _KEY_OF.search(text, max(0, found.start() - 16), found.start())
    return of is not None and not _NO_VALUE.fullmatch(value) and _random(value)


def _may_be_key_of(text: bytes, at: int) -> bool:
    return at > 0 and text[at - 1] in _BEFORE_KEY


def _auth(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    """`"auth": "dXNlcjpwYXNz"` of a docker configuration, `_auth=` of npm's."""
    plain = not found["rest"] and (found["quote"] or text[found.start() - 1 : found.start()] == b"_")
    if plain and len(value) >= 12 and re.fullmatch(rb"[A-Za-z0-9+/]+={0,2}", value):
        return value != value.lower() and value != value.upper() and not _PLAIN_WORDS.fullmatch(value.rstrip(b"="))
    return _random(value)


def _given(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    """Whether a value that stands where nothing but a secret does is one, and not its place in a manual."""
    return not _IGNORED.match(value) and not re.search(rb"[<>{}()]|\$[A-Za-z{(]|^%|\.\.\.", value)


_OPTION: Final = re.compile(rb"(?:^|[\s'\"])--?[A-Za-z0-9-]*\Z").search
_NETRC: Final = re.compile(rb"login\s+(?!and\s|or\s)\S+\s+\Z").search
_OF_OPTIONS: Final = frozenset(b"-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_BEFORE_KEY: Final = frozenset(b"_ .-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def _is_flag(text: bytes, at: int) -> bool:
    """Whether a word may be the end of an option's name, or stand behind a login."""
    before = text[max(0, at - 120) : at]
    if before and before[-1] in _OF_OPTIONS:
        return b"-" in before and _OPTION(before) is not None
    return b"login" in before and _NETRC(before) is not None


def _flag(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    """`--password hunter2`, and `login me password hunter2` in a .netrc."""
    if text[found.start() - 1 : found.start()].isspace():
        return _given(text, found, value)
    return _given(text, found, value) and not value.startswith((b"-", b"/", b"[", b"=")) and _mixed(value)


def _credentials(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    """`scheme://name:password@host`."""
    return text[found.end("value") : found.end("value") + 1] == b"@" and _given(text, found, value)


def _after(*before: bytes) -> Callable[[bytes, int], bool]:
    """Return whether one of these, in lower case, stands right before a word."""
    longest = max(map(len, before))
    return lambda text, at: text[max(0, at - longest) : at].lower().endswith(before)


def _not_after(before: bytes) -> Callable[[bytes, int], bool]:
    return lambda text, at: not text[max(0, at - len(before)) : at].lower().endswith(before)


_COOKIE: Final = re.compile(rb"(?=.*[0-9]).{8}", re.DOTALL)


def _cookies(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    """Whether one of them, of which the first has its name before the value, has a digit and eight characters."""
    return any(_COOKIE.match(one.partition(b"=")[2]) is not None for one in (b"=" + value).split(b";"))


def _argument(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    return len(value) >= 3 and _given(text, found, value) and not value.startswith((b"$", b"-", b"["))


def _stated(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    """`the passphrase is hunter2`, and not `the password is required`."""
    value = value.rstrip(b".!?")
    return len(value) >= 5 and _digits(value) > 0 and _mixed(value)


def _bearer(text: bytes, found: re.Match[bytes], value: bytes) -> bool:
    return len(value) >= 16 and _digits(value) > 0 and _mixed(value)


_ASSIGNED: Final = (
    rb"(?P<rest>[A-Za-z0-9_.-]{0,32}+)(?:\\?[\"'])?\]?(?P<sep>[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}|>)"
    rb"(?:(?P<quote>\\?[\"'])(?P<quoted>(?:\\[^\"'\s]|(?!(?P=quote))[^\s\\]){1,4096})|(?P<bare>[^\s\"'`\\<]{1,4096}))"
)
_SPACED: Final = rb"(?P<rest>[A-Za-z-]{0,16}+)[ \t]{1,4}(?P<quote>[\"']?)(?P<value>[^\s\"']{1,4096})"


_IsSecret = Callable[[bytes, re.Match[bytes], bytes], bool]


def _assigned(
    name: bytes,
    is_secret: _IsSecret,
    least: int,
    word: bytes = b"",
    is_named: Callable[[bytes, int], bool] | None = None,
) -> NamedShape:
    # In any case only the word: with the flag each character of the rest would be looked up twice.
    return NamedShape(word or name, b"(?i:" + name + b")" + _ASSIGNED, is_secret, least, is_named=is_named)


def _spaced(name: bytes, is_secret: _IsSecret, word: bytes = b"") -> NamedShape:
    return NamedShape(word or name, b"(?i:" + name + b")" + _SPACED, is_secret, may_be=_is_flag)


NAMED: Final = (
    _assigned(b"pass(?:w|phrase|code|[_0-9-]|(?![a-z]))", _password, 5, word=b"pass"),
    _spaced(b"pass(?:w|phrase|code|(?![a-z]))", _flag, word=b"pass"),
    NamedShape(
        b"pass",
        rb"(?i:pass(?:word|phrase|code))[ \t]{1,4}is:?[ \t]{1,4}(?P<value>[^\s\"']{1,256})",
        _stated,
    ),
    NamedShape(
        b"pass",
        rb"(?i:pass)[ \t]{1,4}-p[ \t]{0,4}[\"']?(?P<value>[^\s\"']{1,256})",
        _argument,
        may_be=_after(b"ssh"),
    ),
    NamedShape(
        b"cookie",
        (
            rb"(?i:cookie):[ \t]{0,4}[^\s=;]{1,128}="
            rb"(?P<value>[^\s;\"']{1,4096}(?:;[ \t]?[^\s=;]{1,128}=[^\s;\"']{0,4096}){0,32})"
        ),
        _cookies,
        may_be=_not_after(b"set-"),
    ),
    NamedShape(
        b"cookie",
        rb"(?i:cookie):[ \t]{0,4}[^\s=;]{1,128}=(?P<value>[^\s;\"']{1,4096})",
        _cookies,
        may_be=_after(b"set-"),
    ),
    _assigned(b"pwd", _password, 5),
    _assigned(b"secret", _secret, 8),
    _spaced(b"secret", _flag),
    _assigned(b"token", _token, 16),
    _spaced(b"token", _flag),
    _assigned(b"key", _key, 16, is_named=_may_be_key_of),
    _spaced(b"key(?![a-z])", lambda text, found, value: _flag(text, found, value) and _random(value), word=b"key"),
    _assigned(b"auth", _auth, 12),
    NamedShape(
        b"auth",
        (
            rb"(?i:authorization(?:\\?[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\?[\"'])?(?:basic|bearer|token|apikey|key|"
            rb"oauth|negotiate|ntlm|digest|aws4-hmac-sha256))[ \t]{1,4}(?P<value>[^\s\"'\\]{1,8192})"
        ),
        lambda text, found, value: len(value) >= 5 and _given(text, found, value),
    ),
    NamedShape(b"bearer", rb"(?i:bearer)[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/=-]{1,8192})", _bearer),
    NamedShape(b"://", rb"://[^\s/:@\"'<>]{0,128}:(?P<value>[^\s/@\"'<>]{1,256})", _credentials),
    NamedShape(
        b"://",
        (
            rb"(?i)://(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|(?:ptb\.|canary\.)?"
            rb"discord(?:app)?\.com/api/webhooks/[0-9]+/|[a-z0-9-]+\.webhook\.office\.com/webhookb2/)(?P<value>[A-Za-z0-9/@_-]{1,512})"
        ),
        lambda text, found, value: len(value) >= 20,
    ),
)
"""Secrets that a word names, the words in lower case."""


class FollowingShape(NamedTuple):
    """A secret that a word further before it in the same line names: an argument of a command, a field of a URL.

    Attributes:
        words: what is looked for, in lower case.
        opening: an expression that matches from the word on.
        least, most: so many bytes may stand between that and the match.
        breaks: bytes that may not stand there.
        expression: what has the value; matches nowhere else but where its first byte is.
        is_secret: as of a `NamedShape`.
    """

    words: tuple[bytes, ...]
    opening: bytes
    least: int
    most: int
    breaks: bytes
    expression: bytes
    is_secret: _IsSecret

    @property
    def opener(self) -> re.Pattern[bytes]:
        """The opening compiled, when it is asked for."""
        return re.compile(self.opening)

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """The expression compiled, when it is asked for."""
        return re.compile(self.expression)


FOLLOWING: Final = (
    FollowingShape(
        (b"curl ",),
        rb"(?i:curl)(?= )",
        0, 512, b"\r\n|;",
        rb"[ \t](?:-u|-U|--user|--proxy-user)[ \t=]{0,4}[\"']?[^\s:\"'/]{1,128}:(?P<value>[^\s\"']{1,256})",
        _argument,
    ),
    # Of `mysql`, `mysqldump` and `mysqladmin` what has no `m` in it, and overlaps no other word.
    FollowingShape(
        (b"ql ", b"qldu", b"qlad"),
        rb"(?i:(?<=mys)(?:qldu|qlad|ql))[a-z]{0,8}(?<=[a-z]) ",
        0, 256, b"\r\n|;",
        rb"(?<=[ \t])-p[\"']?(?P<value>[^\s\"']{1,256})",
        _argument,
    ),
    FollowingShape(
        (b"://",),
        rb"://",
        1, 2048, b" \t\n\r\f\v\"'<>",
        (
            rb"(?i)[?&](?:sig|signature|x-amz-signature|x-goog-signature|x-amz-security-token)="
            rb"(?P<value>[A-Za-z0-9%/+=_-]{1,2048})"
        ),
        lambda text, found, value: len(value) >= 16,
    ),
)  # fmt: skip
"""Secrets that stand further behind what names them."""


def _begun(name: bytes, least: int, before: bytes = b"") -> bytes:
    """Return a pattern of what is assigned: a match of `_ASSIGNED` whose value has so many bytes is one of this."""
    half = (least + 1) // 2  # a backslash and a quote may be one
    return before + b"(?i:" + name + b")" + (
        rb"[A-Za-z0-9_.-]{0,32}+(?:\\?[\"'])?\]?(?:[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}|>)"
        rb"(?:[^\s\"'`\\<]{%d}|\"(?:\\[^\"'\s]|[^\s\\\"]){%d}|'(?:\\[^\"'\s]|[^\s\\']){%d}"
        rb"|\\[\"'](?:\\[^\"'\s]|[^\s\\]){%d})" % (least, half, half, half)
    )  # fmt: skip


def _flagged(name: bytes) -> bytes:
    """Return a pattern of a flag with its value; what stands behind a login has a blank before the word."""
    return (
        rb"(?:(?<=[-A-Za-z0-9])(?i:%s)[A-Za-z-]{0,16}+[ \t]{1,4}(?:[\"']|(?![-/\[=])[^\s\"'])"
        rb"|(?<![-A-Za-z0-9])(?i:%s)[A-Za-z-]{0,16}+[ \t]{1,4}[^\s])" % (name, name)
    )


_PASS: Final = b"pass(?:w|phrase|code|[_0-9-]|(?![a-z]))"

_BEGUN: Final = {
    b"pass": (
        _begun(_PASS, 5),
        _flagged(b"pass(?:w|phrase|code|(?![a-z]))"),
        rb"(?i:pass(?:word|phrase|code))[ \t]{1,4}is:?[ \t]{1,4}[^\s\"']{5}",
        rb"(?i:(?<=ssh)pass)[ \t]{1,4}-p[ \t]{0,4}[\"']?[^\s\"']{3}",
    ),
    b"pwd": (_begun(b"pwd", 5),),
    b"secret": (_begun(b"secret", 8), _flagged(b"secret")),
    b"token": (_begun(b"token", 16), _flagged(b"token")),
    b"key": (_begun(b"key", 16, b"(?<=[_ .A-Za-z-])"), _flagged(b"key(?![a-z])")),
    b"auth": (
        _begun(b"auth", 12),
        rb"(?i:authorization(?:\\?[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\?[\"'])?[a-z])",
    ),
    b"bearer": (rb"(?i:bearer)[ \t]{1,4}[A-Za-z0-9._~+/=-]{16}",),
    b"cookie": (rb"(?i:cookie):[ \t]{0,4}[^\s=;]{1,128}=[^\s;\"']",),
    b"://": (
        rb"://[^\s/:@\"'<>]{0,128}:[^\s/@\"'<>]{1,256}@",
        rb"(?i:://(?:hooks|(?:ptb\.|canary\.)?discord|[a-z0-9-]+\.webhook))",
    ),
}  # fmt: skip
NAMING: Final = tuple(_BEGUN)
"""The words of `NAMED`."""


@functools.cache
def begun_of(word: bytes) -> Callable[[bytes, int], re.Match[bytes] | None]:
    """Return what matches at a word where a secret can begin at it that ends before the text does."""
    return re.compile(b"|".join(_BEGUN[word])).match


ASSIGNED: Final = frozenset((b"pass", b"pwd", b"secret", b"token", b"key", b"auth"))
"""Words behind which a value is assigned."""

CHECKED_BYTES: Final = 512
"""So much of an assigned value is checked, however long it is."""

CROWD: Final = 8
CROWDED: Final = 512
"""A value without quotes in which so many more are assigned within so many bytes is a secret, whatever they are."""


FRAGMENTS: Final = {
    b"pass": b"pass", b"pwd": b"pwd", b"secret": b"ecret", b"token": b"oken", b"key": b"key", b"auth": b"auth",
    b"bearer": b"bearer", b"://": b"://", b"ql ": b"ql ", b"qldu": b"qldu", b"qlad": b"qlad",
    b"curl ": b"curl ", b"cookie": b"ooki",
}  # fmt: skip
"""What of each word is looked for: fragments of which none can overlap another, as `passecret` has two of the words."""

_PORTS: Final = (b"*", b"5432", b"5433", b"6432", b"6543", b"15432", b"54322")

PASSWORD_LINE: Final = re.compile(
    rb":(?:\*|%s)(?::(?![0-9;?]+:)[^\s:\"'`]{1,64}){2}:(?P<value>(?:\\(?:[^\s]|\Z)|[^\s:\\\"'`]){1,256})"
    rb"(?=[\s\"'`]|\Z)" % b"|".join(_PORTS[1:])
)
"""From the port on, a line of a `.pgpass`: `host:port:database:user:password`; names have more in them than digits."""

PASSWORD_PORTS: Final = tuple(b":%s:" % port for port in _PORTS)
"""What stands in each such line."""

_PASSWORD_HOST: Final = re.compile(rb"(?:^|[\s\"'`>(=])[^\s:\"'`]{1,255}\Z")


def is_password_line(text: bytes, found: re.Match[bytes], *, whole: bool = True) -> bool:
    """Whether a match of `PASSWORD_LINE` has a host before it and, where it is `whole`, a password at its end."""
    if _PASSWORD_HOST.search(text, max(0, found.start() - 256), found.start()) is None:
        return False
    return not whole or (len(found["value"]) >= 3 and _given(text, found, found["value"]))


_BETWEEN: Final = r"(?:\\[nr]|[\s>|+#\"',])*+"
_LINE: Final = r"(?:[A-Za-z0-9+/=]{16,}+|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\r\n]{0,120})"
_SHORT_LINE: Final = r"[A-Za-z0-9+/=]{1,15}+"


@functools.cache
def private_key() -> regex.Pattern[bytes]:
    """Return the pattern of a private key in text form, also without its end (yet), also in a JSON string."""
    # What `re` makes of a possessive group is wrong before Python 3.11.5.
    import regex

    return regex.compile(
        rf"-----BEGIN[ A-Z0-9]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?P<value>(?:{_BETWEEN}{_LINE})++(?:{_BETWEEN}{_SHORT_LINE}(?=\\|[\s\"']|-----|\Z)){{0,2}}"
        rf"|{_BETWEEN}{_SHORT_LINE}\Z)".encode()
    )


PRIVATE_KEY_PIECE: Final = re.compile(rb"\\[nr]|^[A-Z][A-Za-z-]+:[^\r\n]*|([A-Za-z0-9+/=]+)", re.MULTILINE)
"""What the body of a private key is made of; the group is the secret in it."""

PRIVATE_KEY_WORD: Final = b"PRIVATE KEY"
