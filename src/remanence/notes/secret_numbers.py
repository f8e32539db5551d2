"""Forms of secret numbers: payment cards, bank accounts, identity numbers, PINs and one-time codes."""

import re

from remanence.notes.substitution import MARK, Rule

_ANY_DIGIT = tuple("0123456789")
_CARD_DIGITS = r"[2-6]\d(?:[ -]?\d){12,17}|[2-6]\d{3}(?:\.\d{4}){3}(?!\.\d)"
_CARD = re.compile(rf"(?<![\w.-])(?:{_CARD_DIGITS})(?![\w-])", re.ASCII)
_CARD_LENGTHS = {"2": {16}, "3": {14, 15, 16}, "4": {16, 19}, "5": {16}, "6": {16, 19}}
"""Lengths of card numbers by their first digit."""

_CARD_CODE_NAME = r"cvv2?|cvc2?|csc|card (?:security|verification) code|Prüfziffer"
_CARD_CODE = re.compile(
    rf"\b(?:{_CARD_CODE_NAME})\b\W{{0,3}}(?:(?:is|was|ist|war|es|est)\W{{1,3}})?(\d{{3,4}})\b",
    re.IGNORECASE,
)
_US_NUMBER = r"(?<![\w.-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-])"
_US_NAME = r"(?i:\b(?:ssn|social security(?: number)?)\b\W{0,3}(?:is\W{1,3})?)"
_SOCIAL_SECURITY = re.compile(rf"{_US_NUMBER}|{_US_NAME}\d{{9}}\b", re.ASCII)
_IBAN = re.compile(
    r"(?<!\w)[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?!\w)",
    re.ASCII | re.IGNORECASE,
)
_IBAN_LENGTHS = range(15, 35)
_MIN_IBAN_DIGITS = 10
_HEXADECIMAL = re.compile(r"[a-z]{2}\d*[a-f][0-9a-f]*")
"""A hash or a UUID, of whose forms one in 97 has the check digits of an account."""
_BIRTH_DATE = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_CHINESE_IDENTITY = re.compile(
    rf"(?<![\w.-])[1-9]\d{{5}}{_BIRTH_DATE}\d{{3}}[\dX](?![\w-])", re.ASCII | re.IGNORECASE
)
"""A region, a date of birth, a number and a check character."""
_NAMED_IDENTITY = re.compile(
    r"(?:aadhaa?r|आधार|kimlik)[^\d\n]{0,30}(\d{4}[ -]?\d{4}[ -]?\d{4}|\d{11})(?![\w-])",
    re.ASCII | re.IGNORECASE,
)
"""Aadhaar, of India, and the Turkish number: of others of their length a tenth and a hundredth fit, too."""

_CODE_USE = "one[- ]time|verification|authentication|login|2fa|sms|security"
_CODE_NAME_FORMS = (
    *("pin", "otp", rf"(?:{_CODE_USE})[ -](?:pass)?(?:code|word|pin)", "einmalcode"),
    *("einmalpasswort", "bestätigungscode", "sicherheitscode", "pin[- ]?code", "geheimzahl"),
    *("code de vérification", "code pin", "codice pin", "código de verifica(?:ción|ção)"),
    *("código pin", "пин-?код", "رمز التحقق"),
)
_CODE_NAME = rf"(?:{'|'.join(_CODE_NAME_FORMS)})"
_FOR = "for|of|to|fürs?|zu[mr]?|vo[mn]|de[l]?|d[aou]|di|para|pour|per|voor|van|dla|od|для|от"
_FOR_WHAT = rf"(?: (?:{_FOR}) [^\d\n.!?,;:]{{1,30}}?)?"
_IS = r"[:=：＝]|\b(?:is|was|ist|lautet|war|es|est|è|é|to|jest)\b:?"
_BETWEEN = rf"(?:\*\*)?\s{{0,2}}(?:{_IS})?(?:\*\*)?\s{{0,3}}[\"'`*]{{0,2}}"
_OF_YEAR = rf"\s(?:19|20)\d\d\s(?!(?:{_FOR}|is|was|and|or)\b)[^\W\d_]"
"""A year of something, as in “the PIN 2024 conference”."""
_DIGITS = r"(\d{3}[ -]\d{3}|\d{4,8})"
_CODE_WORDS = rf"\b{_CODE_NAME}(?:[ -](?:code|number|nummer))?\b(?!{_OF_YEAR}){_FOR_WHAT}"
_CODE = re.compile(
    rf"{_CODE_WORDS}{_BETWEEN}{_DIGITS}(?![\w%]|\.\w)",
    re.IGNORECASE,
)
_CODE_FIRST = re.compile(
    rf"(?<![\w.-])(?:[A-Z]-)?{_DIGITS}(?= is (?:your|my|the) (?:\w{{1,20}} ){{0,3}}{_CODE_NAME}\b)",
    re.IGNORECASE,
)
_CODE_NAMES = ("pin", "otp", "code", "word", "einmalpasswort", "código", "geheimzahl", "пин", "رمز")
_ZH_CODE = re.compile(
    r"((?:验证码|驗證碼|認証コード|暗証番号|인증번호)\W{0,3}[是为はは은는]?\W{0,2})(\d{4,8})(?!\d)"
)
_ZH_CODE_NAMES = ("验证码", "驗證碼", "認証コード", "暗証番号", "인증번호")


def _card(match: re.Match[str]) -> str:
    digits = [int(character) for character in match[0] if character.isdigit()]
    fits = len(digits) in _CARD_LENGTHS[match[0][0]]
    return MARK if fits and _luhn(digits) and len(set(digits)) > 1 else match[0]


def _luhn(digits: list[int]) -> bool:
    """Return whether the check digit of a card number is right (Luhn, ISO/IEC 7812)."""
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _iban(match: re.Match[str]) -> str:
    """Redact the longest prefix with a valid checksum, as a word in capitals may follow."""
    words = match[0].split(" ")
    for count in range(len(words), 0, -1):
        number = "".join(words[:count]).replace("-", "")
        if _HEXADECIMAL.fullmatch(number) or sum(map(str.isdigit, number)) < _MIN_IBAN_DIGITS:
            continue
        digits = "".join(str(int(character, 36)) for character in number[4:] + number[:4])
        if len(number) in _IBAN_LENGTHS and int(digits) % 97 == 1:  # ISO 13616
            return " ".join([MARK, *words[count:]])
    return match[0]


def _chinese_identity(match: re.Match[str]) -> str:
    total = 0
    for character in match[0]:
        total = 2 * total + (10 if character in "Xx" else int(character))
    return MARK if total % 11 == 1 else match[0]  # ISO 7064 MOD 11-2


def _without_code(match: re.Match[str]) -> str:
    return match[0].replace(match[1], MARK)


NUMBER_RULES = (
    Rule(_CARD, _card, _ANY_DIGIT),
    Rule(_IBAN, _iban, _ANY_DIGIT),
    Rule(_CHINESE_IDENTITY, _chinese_identity, _ANY_DIGIT),
    Rule(_NAMED_IDENTITY, _without_code, ("aadha", "आधार", "kimlik")),
    Rule(
        _SOCIAL_SECURITY,
        lambda match: match[0].rstrip("0123456789-") + MARK,
        ("-", "ssn", "social"),
    ),
    Rule(_CARD_CODE, _without_code, ("cvv", "cvc", "csc", "card", "prüfziffer")),
    Rule(_CODE, _without_code, _CODE_NAMES),
    Rule(_CODE_FIRST, _without_code, _CODE_NAMES),
    Rule(_ZH_CODE, lambda match: match[1] + MARK, _ZH_CODE_NAMES),
)
