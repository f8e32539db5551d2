"""Redact passwords, keys and tokens, recognised by their form."""

import re
from itertools import pairwise

from remanence.notes.secret_keys import KEY_RULES
from remanence.notes.secret_numbers import NUMBER_RULES
from remanence.notes.substitution import MARK, Rule, apply_rules, substitute

__all__ = ["MARK", "redact"]

_KEY_BEGIN = "-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BLOCK = re.compile(rf"{_KEY_BEGIN}(?:[^-]|-(?!----))*+(?:-----END [A-Z ]{{0,40}}-----)?")
_HEADER = re.compile(r"\b((?:Bearer|Basic)\s{1,3})([\w.~+/-]{16,}=*)", re.IGNORECASE | re.ASCII)
_COOKIE_TEXT = r"""[^\s;"']{1,400}"""
_COOKIES = re.compile(
    rf"""\bcookie\b["']?[\s:=]{{1,3}}["']?(?:{_COOKIE_TEXT};\s?){{0,30}}{_COOKIE_TEXT}""",
    re.IGNORECASE,
)
_COOKIE = re.compile(
    r"""((?<![^\s;:="'])(?!(?:domain|path)=)[\w.-]{1,100}=)([\w.~+/%-]{16,}+=*)(?!\()""",
    re.ASCII | re.IGNORECASE,
)
"""A cookie with a long value, but neither a call in code nor a parameter of a URL."""
_URL_REST = r"[^\s/@]{1,200}(?:@[^\s/@?#,]{1,100}){0,3}"
_URL_PASSWORD = re.compile(
    rf"(\b[a-z][a-z0-9+.-]{{1,20}}://[^\s:/@]{{0,100}}:){_URL_REST}(?=@)", re.IGNORECASE
)
_KEY_NAMES = (
    *("secret", "token", "credential", "api[ _-]?key", "(?:access|auth|secret|private)[ _-]?key"),
    *("api[ -]?schlüssel", "clé api", "clave (?:de )?api", "chave (?:de )?api", "chiave api"),
)
_PASSWORD_NAMES = (
    *(
        "pass(?:word|wd|phrase|code)",
        "(?-i:(?<=[A-Z]_)(?<!(?:HIGH|BAND)_)(?<!(?:LOW|ALL)_)PASS)",
        "pwd?",
        "mdp",
    ),
    *("passwort", "kennwort"),
    *("mot de passe", "senha", "wachtwoord", "şifre(?:si|m)?"),
    *("contraseña", "clave", "lösenord(?:et)?", "heslo", "jelsz(?:ó|avam)"),
    *("adgangskoden?", "kodeord(?:et)?", "passord(?:et)?", r"(?:ה)?סיסמ[הא](?: של\w{0,3})?"),
    *("parol[aă](?: d'ordine| mea| noastră)?", "κωδικός(?: πρόσβασης)?(?: μου| μας)?"),
    "kata sandi(?:nya)?(?: saya| kami)?",
    r"mật khẩu(?: (?:của )?\w{1,20})?",
)
_OF = r"for|fürs?|zu[mr]?|vo[mn]|of|to|de[l]?|d[aou]|para|pour|per|voor|van|til|till|mot"
_WHAT = r"(?:\s[^\s:=,.;]{1,20}){1,4}?"
"""What a password is for: a few words."""
_NOW = "now|jetzt|nun|ahora|agora|adesso|nu|maintenant|désormais"
_VERBS = "is|was|ist|war|lautet|lautete|heißt|hieß|es|era|est|était|è|é|là|är|var|je|er|este"
_SIGN = "(?:[=-]>|[:=>：＝是為为은는は])"
_IS = rf"(?:\bc['’])?\b(?:{_VERBS}|είναι|ήταν|היא|הוא|adalah)\b(?:\s(?:{_NOW})\b)?"
_IS_OR_SIGN = rf"(?:{_SIGN}|{_IS}(?:\s{{0,3}}{_SIGN})?)"
_IS_SLAVIC = r"\s{0,3}(?:\b(?:to|jest|было?|był[oa]?|это|теперь|teraz)\b\s{0,3}[:=–—]?|[:=–—])"
_WORD_START = r"(?<![0-9a-zß-ӿ])|(?-i:(?<=[a-z])(?=[A-Z]))|(?=pass\w|kennwort|wachtwoord)"
_NAME = rf"(?:{'|'.join(_KEY_NAMES)})|(?:{'|'.join(_PASSWORD_NAMES)})(?:\s(?:{_OF}){_WHAT})?"
_NAMES = (
    rf"(?:{_WORD_START})(?:{_NAME})(?:\\{{0,3}}[\"'`])?\*{{0,2}}\s{{0,3}}{_IS_OR_SIGN}",
    rf"\b(?:hasło|пароль)(?:\s(?:do|dla|od|от|для){_WHAT})?(?:{_IS_SLAVIC}|(?=\s))",
    r"(?:كلمة (?:المرور|السر)|पासवर्ड)(?:\s(?:هي|هو)\b)?\s{0,3}:?",
    rf"\bsalasana(?:ni|mme)?\s{{0,3}}(?:\b(?:on|oli)\b\s{{0,3}}{_SIGN}?|{_SIGN})",
    r"--(?:password|token|api-key|secret)(?=\s)",
)
"""Names of secrets with what stands between them and their values."""
_QUOTED = (
    *(rf"{mark}([^{mark}\r\n]{{4,200}}){mark}" for mark in "\"'`"),
    r"[“„«]([^“”»\r\n]{4,200})[“”»]",
)
_VALUE = rf"{'|'.join(_QUOTED)}|([^\s\"'`,;\u3000-\uffff]{{4,200}})"
_NAMED = re.compile(
    rf"((?:{'|'.join(_NAMES)})\*{{0,2}}\s{{0,3}}(?:\\{{1,3}}(?=[\"']))?)(?:{_VALUE})", re.IGNORECASE
)
_NAMING = (
    *("pass", "pw", "mdp", "secret", "token", "credential", "key", "kennwort", "contrase"),
    *("mot de", "senha", "wachtwoord", "hasło", "пароль", "şifre", "mật khẩu", "clave", "chave"),
    *("chiave", "parol", "schlüssel", "clé api", "كلمة", "पासवर्ड", "lösenord", "salasana"),
    *("heslo", "jelsz", "adgangskode", "kodeord", "κωδικός", "סיסמ", "kata sandi"),
)
_NAME_CJK = (
    r"密码|密碼|密钥|金鑰|パスワード|(?:API\s?)?キー|비밀번호|API\s?키|รหัสผ่าน\s?(?:คือ|(?=[:=]))"
)
_IS_CJK = r"\s{0,3}(?:[:：=是為为은는は]\s{0,3}){0,2}"
_NAMED_CJK = re.compile(rf"((?:{_NAME_CJK}){_IS_CJK}[「『“‘\"'《]?)([!-~]{{4,200}})", re.IGNORECASE)
_NAMING_CJK = (
    *("密码", "密碼", "密钥", "金鑰", "パスワード", "キー", "비밀번호", "api키"),
    *("api 키", "รหัสผ่าน"),
)
_CALL = re.compile(r"\A(?:[A-Za-z](?=\w*[._]\w)(?:\w|\.(?=\w))*+|[a-z]+(?:[A-Z][a-z0-9]+)+)\(")
"""Code that fetches a value, such as `secrets.token_urlsafe(32)`, is not the value."""

_LOGIN_NAME = "login|log-in|logins|credentials?|creds|zugangsdaten|anmeldedaten|identifiants"
_ARE = r"[:=：＝]|\b(?:is|are|was|were|ist|sind|lauten|sont|son)\b:?"
_AND = r"[/,:|]|\b(?:and|with|und|mit|et|y)\b"
_USER = rf"\b(?:{_LOGIN_NAME})\b\s{{0,2}}(?:{_ARE})\s{{0,3}}[^\s/,:]{{1,60}}"
_LOGIN = re.compile(rf"({_USER}\s{{0,2}}(?:{_AND})\s{{0,2}})([^\s\"'`,;]{{6,60}})", re.IGNORECASE)
"""A user's name and the password behind it."""
_LOGINS = ("login", "log-in", "credential", "creds", "zugangsdaten", "anmeldedaten", "identifiants")
_COMMAND = r"\b(?:curl|mysql\w{0,9}|mariadb(?:-\w{1,9})?)(?=\s)"
_COMMAND_REST = rf"(?:(?!{_COMMAND})[^\n]|(?<=\\)\n){{0,400}}?(?<!\S)"
"""What stands between a command and its option; behind another, it is searched from there."""
_CURL_USER = rf"\bcurl(?=\s){_COMMAND_REST}(?:-u|--user)[\s=][\"']?[^\s:/\"']{{1,60}}:(?!/)"
_MYSQL_PASSWORD = rf"\bm(?:ysql|ariadb)[\w-]{{0,10}}(?=\s){_COMMAND_REST}-p(?=\S)"
_OPTION = re.compile(
    rf"((?:{_CURL_USER}|{_MYSQL_PASSWORD}|\bsshpass\s-p\s?)[\"']?)([^\s\"'`]{{4,200}})"
)
_MYSQL_OPTIONS = r"(?:\s{1,3}-\S{1,60}(?:\s{1,3}[^\s-]\S{0,60})?){0,9}?"
_MYSQL_WORD = re.compile(
    rf"(\bm(?:ysql|ariadb)[\w-]{{0,10}}{_MYSQL_OPTIONS}\s{{1,3}}-p[\"']?)([^\W\d_][\w-]{{3,60}})"
)
"""A password of letters, perhaps joined by `-` or `_`, where nothing but options stands before it."""
_OPTIONS = ("curl", "sshpass", "mysql", "mariadb")
_AWS_SECRET = re.compile(r"(?<![\w/+=.-])[A-Za-z0-9/+]{40}(?![\w/+=-])", re.ASCII)
_CHANGES = 14
"""A random text of 40 letters and digits switches between lower case, upper case and digits about
23 times; words, paths and code identifiers rarely do so ten times."""

_STOPS = ".!?…"
"""Marks behind a value without quotes, which end its sentence."""

_PLACEHOLDERS = (MARK, "$", "%", "{", "(", "<")
_DIGIT_OR_SYMBOL = re.compile(r"[0-9!@#$%^&*+=?~]")
_KEYS = ("secret", "token", "credential", "key")
_SHORTEST_KEY = 6
"""A value of `_KEYS`, unlike a password, is no shorter: "his secret: 10km a day" names none."""

_ZEROS = "٠۰०০๐０"
_DIGITS = {chr(ord(zero) + value): str(value) for zero in _ZEROS for value in range(10)}
_HIDDEN = "\xad\u200b-\u200f\u2060\ufeff"
_DISGUISED = re.compile(
    f"[{''.join(_DIGITS)}{_HIDDEN}](?:(?<![{_HIDDEN}])|(?<=[ -ӿ{_HIDDEN}].)(?=[ -ӿ{_HIDDEN}]))"
)
"""Digits of other scripts, and invisible characters where no script joins letters by them."""


def redact(text: str) -> str:
    """Replace each secret with `[secret]`; doubtful values are kept."""
    plain = text if text.isascii() else substitute(_DISGUISED, _plain, text)
    redacted = apply_rules(_RULES, _KEY_BLOCK.sub(MARK, plain))
    return text if redacted == plain else redacted


def _plain(match: re.Match[str]) -> str:
    return _DIGITS.get(match[0], "")


def _is_mixed(word: str) -> bool:
    return bool(_DIGIT_OR_SYMBOL.search(word)) and any(map(str.isalpha, word))


def _without_password(match: re.Match[str]) -> str:
    """Redact a value with letters and digits or symbols that is not an address."""
    value = match[2].rstrip(_STOPS)
    is_address = "://" in value or re.fullmatch(r"[^@]{1,60}@[\w-]{1,60}(?:\.\w{1,60}){1,5}", value)
    if is_address or value.startswith(_PLACEHOLDERS) or not _is_mixed(value):
        return match[0]
    return match[1] + match[2].replace(value, MARK)


def _without_random(match: re.Match[str]) -> str:
    kinds = ["digit" if c.isdigit() else "upper" if c.isupper() else "lower" for c in match[0]]
    changes = sum(one != other for one, other in pairwise(kinds))
    return MARK if changes >= _CHANGES and len(set(kinds)) > 2 else match[0]


def _without_token(match: re.Match[str]) -> str:
    """Redact what follows `Bearer`, `Basic` or the name of a cookie, unless it is a long word."""
    is_word = re.fullmatch(r"[A-Za-z]?[a-z/.-]+", match[2])
    return match[0] if is_word else match[1] + MARK


def _without_value(match: re.Match[str]) -> str:
    """Redact a value unless it is words (`password: required`) or a call in code."""
    quoted = match[2] or match[3] or match[4] or match[5]
    value = (quoted or match[6].rstrip(_STOPS)).rstrip("\\")
    rest = match[0][len(match[1]) :]
    if match[6] and _CALL.match(value):
        return match[0]
    if len(value) < _SHORTEST_KEY and any(word in match[1].lower() for word in _KEYS):
        return match[0]
    if not _DIGIT_OR_SYMBOL.search(value) or value.startswith(_PLACEHOLDERS):
        return match[0]
    words = value.split()
    mixed = sum(_is_mixed(word.rstrip(_STOPS)) for word in words)
    if len(words) > 1 and 2 * mixed <= len(words):
        return match[1] + _NAMED.sub(_without_value, rest)
    return match[1] + rest.replace(value, MARK)


_RULES = (
    *KEY_RULES,
    Rule(_HEADER, _without_token, ("bearer", "basic")),
    Rule(_COOKIES, lambda match: _COOKIE.sub(_without_token, match[0]), ("cookie",)),
    Rule(_URL_PASSWORD, lambda match: match[1] + MARK, ("://",)),
    Rule(_NAMED, _without_value, _NAMING),
    Rule(_LOGIN, _without_password, _LOGINS),
    Rule(_OPTION, _without_password, _OPTIONS),
    Rule(_MYSQL_WORD, lambda match: match[1] + MARK, ("mysql", "mariadb")),
    Rule(_AWS_SECRET, _without_random),
    Rule(_NAMED_CJK, lambda match: match[1] + MARK, _NAMING_CJK),
    *NUMBER_RULES,
)
