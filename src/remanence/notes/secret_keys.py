"""Forms of keys and tokens: known prefixes, and random values behind names of secrets."""

import re
from collections.abc import Mapping
from typing import Final

from remanence.notes.substitution import MARK, Rule

PREFIXES: Final[Mapping[str, str]] = {
    "model providers": "sk- xai- gsk_ nvapi- pplx- r8_ hf_ api_org_ tgp_v1_ csk- fw_ jina_ AQ.Ab",
    "vectors, search, tracing": "pcsk_ tvly- lsv2_pt_ lsv2_sk_ apify_api_ e2b_ phx_ sgp_",
    "Amazon Bedrock": "ABSKQmVkcm9ja0FQSUtleS",
    "this service": "rk_",
    "Google": "AIza GOCSPX- ya29.",
    "GitHub": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    "GitLab": "glpat- glrt- gldt- glft- glsoat- glimt- glagent- glcbt- glptt- gloas-",
    "Atlassian": "ATATT3 ATCTT3 ATBB",
    "Slack": "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- xoxe.xoxp- xoxe.xoxb-",
    "Linear, Notion, Figma": "lin_api_ lin_oauth_ ntn_ figd_ figo_",
    "Vercel, Netlify": "vercel_blob_rw_ vcp_ vci_ vca_ vcr_ vck_ nfp_",
    "packages": "npm_ pypi- rubygems_ dckr_pat_ dckr_oat_",
    "payments": "sk_ sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sq0atp- sq0csp- shippo_live_",
    "Shopify": "shpat_ shpca_ shppa_ shpss_",
    "mail": "SG. xkeysib- xsmtpsib- mlsn.",
    "HashiCorp Vault": "hvs. hvb. hvr.",
    "DigitalOcean": "dop_v1_ doo_v1_ dor_v1_",
    "databases": "pscale_tkn_ pscale_pw_ pscale_oauth_ sbp_ sb_secret_",
    "secrets of other vaults": "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. ops_eyJ",
    "machines": "pul- fo1_ tskey- bkua_ CCIPAT_ dt0c01. dt0s16.",
    "monitoring": "NRAK- glsa_ glc_eyJ sntrys_eyJ sntryu_ PMAK-",
    "age": "AGE-SECRET-KEY-1",
}
"""How the keys of services begin, as these publish it; longer texts follow."""

_SWITCH = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
"""From lower case to capitals, or between letters and digits."""
_CAMEL_CASE = re.compile(r"(?<=[a-z])[A-Z](?=[a-z]{2})")
"""The beginning of a word within a name, such as `RandomForest`."""
_SWITCHES = 2
"""Fewer of them are in words and numbers, such as `hf_hub_download_function` or `rk_model_v2_final`."""

_PREFIX = "|".join(map(re.escape, " ".join(PREFIXES.values()).split()))
_REST = r"(?:[\w-]|\.(?=[\w-])){16,}"
_PREFIXED = re.compile(rf"(?<![\w-])(?:{_PREFIX})({_REST})", re.ASCII)
_FORMS = (
    *("(?:AKIA|ASIA)[0-9A-Z]{16}", r"(?:bot)?[0-9]{8,10}:AA[\w-]{32,}"),
    *("dapi[0-9a-f]{32}(?:-[0-9])?", "(?:SK|AC)[0-9a-f]{32}", "secret_[A-Za-z0-9]{43}"),
    *(r"fm2_[\w+/]{40,}={0,2}", r"pat\w{14}\.[0-9a-f]{64}", r"\w{14}\.atlasv1\.[\w-]{60,}"),
    *("re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,}",
    r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[\w-]{60,}",
)
"""Databricks, Twilio, Notion, Fly, Airtable, Terraform and Resend, among others."""
_KNOWN = re.compile(rf"(?<![\w-])(?:{'|'.join(_FORMS)})(?!\w)", re.ASCII)

_IS = r"""["'`]?(?:\s{0,3}(?:=>|->|[:=])\s{0,3}|\s{1,3})["'`]?"""
_NAMES = (
    rf"(?<=[A-Z0-9]_)(?<!PUBLIC_)(?:KEY|TOKEN|SECRET|PASSWORD){_IS}",
    r"(?<![\w-])(?:sig|(?:X-(?:Amz|Goog)-)?Signature|X-Amz-Security-Token)=",
    r"(?:Account|SharedAccess)Key=",
    rf"(?i:-key|\bauthorization){_IS}(?:[A-Za-z]{{1,20}}\s{{1,3}})?",
)
_NAMED = re.compile(rf"({'|'.join(_NAMES)})([\w+/.~%-]{{16,}}+={{0,2}}+)(?!\()", re.ASCII)
"""An environment variable, the signature of an address, a part of a connection string, a header."""
_NAMING = ("key", "_token", "_secret", "_password", "sig", "x-amz-", "authorization")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PER_SWITCH = 4
"""Characters of a random text for one switch, at most; in hexadecimal it has about two."""


def _switches(text: str) -> int:
    return len(_SWITCH.findall(text))


def _without_key(match: re.Match[str]) -> str:
    words = _CAMEL_CASE.sub("_", match[1])
    return MARK if _switches(words) >= _SWITCHES else match[0]


def _without_random(match: re.Match[str]) -> str:
    value = match[2]
    is_random = any(map(str.isdigit, value)) and _switches(value) * _PER_SWITCH >= len(value)
    return match[1] + MARK if is_random and not _UUID.fullmatch(value) else match[0]


KEY_RULES = (
    Rule(_PREFIXED, _without_key),
    Rule(_KNOWN, lambda _match: MARK),
    Rule(_NAMED, _without_random, _NAMING),
)
