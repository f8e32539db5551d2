"""One table per language."""

from remanence.observing.dates.languages.chinese import CHINESE
from remanence.observing.dates.languages.english import ENGLISH
from remanence.observing.dates.languages.french import FRENCH
from remanence.observing.dates.languages.german import GERMAN
from remanence.observing.dates.languages.japanese import JAPANESE
from remanence.observing.dates.languages.korean import KOREAN
from remanence.observing.dates.languages.neutral import NEUTRAL
from remanence.observing.dates.languages.spanish import SPANISH

LANGUAGES = (NEUTRAL, ENGLISH, GERMAN, FRENCH, SPANISH, KOREAN, JAPANESE, CHINESE)
BY_NAME = {language.name: language for language in LANGUAGES}
