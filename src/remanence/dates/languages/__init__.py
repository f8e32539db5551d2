"""One table per language."""

from remanence.dates.languages.chinese import CHINESE
from remanence.dates.languages.english import ENGLISH
from remanence.dates.languages.french import FRENCH
from remanence.dates.languages.german import GERMAN
from remanence.dates.languages.japanese import JAPANESE
from remanence.dates.languages.korean import KOREAN
from remanence.dates.languages.neutral import NEUTRAL
from remanence.dates.languages.spanish import SPANISH

LANGUAGES = (NEUTRAL, ENGLISH, GERMAN, FRENCH, SPANISH, KOREAN, JAPANESE, CHINESE)
BY_NAME = {language.name: language for language in LANGUAGES}
