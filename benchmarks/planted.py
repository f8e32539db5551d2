"""Facts that the benchmarks plant in conversations, and the questions that ask for them later.

A question repeats the key of its fact, such as a name, and little else of the wording. The shapes
of `TUNING` may be looked at while rules are made; no rule is fitted to those of `UNSEEN`, and both
are measured and printed. `APART` has questions that share no telling word with their fact: words
alone cannot find those, so they are a figure of their own.
"""

import random
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple, TypeAlias

from benchmarks.words import FIRST_NAMES, LAST_NAMES

Part: TypeAlias = Literal["tuning", "unseen", "apart"]

START = date(2027, 1, 4)


class Planted(NamedTuple):
    """A fact as it is said, a question for it, and the words that an answer needs."""

    part: Part
    shape: str
    said: str
    asked: str
    needed: tuple[str, ...]
    speaker: Literal["user", "assistant"] = "user"

    def is_in(self, text: str) -> bool:
        """Whether a text has all the needed words, wherever they stand."""
        return all(word in text for word in self.needed)

    def is_on_a_line(self, lines: Sequence[str]) -> bool:
        """Whether one line has all the needed words."""
        return any(self.is_in(line) for line in lines)


class Shape(NamedTuple):
    """Sentences of one kind of fact. `{key}` is named by fact and question, `{value}` is asked."""

    name: str
    key: str
    value: str
    said: tuple[str, ...]
    asked: tuple[str, ...]
    speaker: Literal["user", "assistant"] = "user"


TUNING = (
    Shape(
        "allergy",
        "name",
        "food",
        (
            "{key} can't have {value} any more, it gives a rash within minutes.",
            "I was told that {key} reacts badly to {value}.",
        ),
        (
            "What should I leave out when I cook for {key}?",
            "I'm making dinner for {key} tonight. Anything to avoid?",
        ),
    ),
    Shape(
        "door code",
        "place",
        "code",
        ("By the way, the code of the {key} is {value} now.", "They changed the {key} to {value}."),
        ("I'm standing outside. How do I open the {key}?", "Remind me how to unlock the {key}."),
    ),
    Shape(
        "appointment",
        "name",
        "day",
        ("{key} moved our lunch to {value}.", "Put {value} in my calendar, lunch with {key}."),
        ("When am I having lunch with {key}?", "Which day did {key} and I agree on for lunch?"),
    ),
    Shape(
        "left behind",
        "object",
        "holder",
        ("I left my {key} at {value}'s place.", "{value} still has my {key}."),
        ("Where is my {key}?", "I can't find my {key}, do you know who has it?"),
    ),
    Shape(
        "price",
        "object",
        "amount",
        (
            "In the end the {key} set me back {value} euros.",
            "The invoice for the {key} says {value} euros.",
        ),
        ("What did I pay for the {key}?", "How much was the {key}?"),
    ),
    Shape(
        "pet",
        "name",
        "pet",
        ("{key}'s dog is called {value}.", "{key} got a puppy and named it {value}."),
        ("What's the name of {key}'s dog?", "What did {key} call the puppy?"),
    ),
    Shape(
        "work",
        "name",
        "company",
        ("{key} has started at {value} as an engineer.", "{key} signed with {value} last week."),
        ("Where does {key} work these days?", "Who is {key}'s new employer?"),
    ),
    Shape(
        "phone",
        "name",
        "phone",
        ("If it's urgent, {key} picks up at {value}.", "{key} has a new number, {value}."),
        ("How can I call {key}?", "Give me the phone number of {key}, please."),
    ),
    Shape(
        "badge",
        "full name",
        "code",
        ("The badge number of {key} is {value}.", "For the record, {key} booked under {value}."),
        ("Which reference do we have for {key}?", "Look up {key}'s number for me."),
    ),
    Shape(
        "choice",
        "project",
        "company",
        (
            "We settled on {value} for the {key} after all.",
            "For the {key} it's {value}, that's final.",
        ),
        ("What did we pick for the {key}?", "Who got the {key} in the end?"),
    ),
)

UNSEEN = (
    Shape(
        "size",
        "name",
        "size",
        ("For the present: {key} wears {value}.", "{key} usually takes {value}, sometimes bigger."),
        ("I want to order a jacket as a gift for {key}. What fits?", "{key}'s size again?"),
    ),
    Shape(
        "rent",
        "name",
        "amount",
        (
            "I finally heard back from {key} about the flat. It would be {value} a month in all.",
            "Viewed the flat that {key} lets. They ask {value} a month.",
        ),
        ("How high is the rent if we take the flat from {key}?", "What does {key} want per month?"),
    ),
    Shape(
        "warranty",
        "object",
        "day",
        (
            "Note to self - {key}: guarantee runs out {value}.",
            "They'd repair the {key} for free until {value}.",
        ),
        ("Is the {key} still covered by the guarantee?", "Until when can I return the {key}?"),
    ),
    Shape(
        "train",
        "town",
        "train",
        (
            "ok so {key} it is. {value}, change once, seat by the window",
            "Train to {key} - {value}.",
        ),
        (
            "I'm at the station already, which train do I take to {key}?",
            "How do I get to {key} again?",
        ),
    ),
    Shape(
        "wifi",
        "place",
        "password",
        ("Wifi at the {key} -> {value}", "to get online in the {key} you type {value}"),
        ("The laptop has no network in the {key}. What do I enter?", "wifi password {key}?"),
    ),
    Shape(
        "booking",
        "town",
        "code",
        (
            "Done! The apartment in {key} is reserved; your confirmation is {value}.",
            "I have written down {value} as the reference of your stay in {key}.",
        ),
        (
            "The host in {key} wants our confirmation number.",
            "What was the booking code for {key}?",
        ),
        "assistant",
    ),
    Shape(
        "birthday",
        "name",
        "day",
        (
            "Turns out {key} was born the same day as my aunt, {value}!",
            "{key} turns forty on {value}, I must not forget.",
        ),
        ("When is {key}'s birthday?", "Do I still have time to get a card for {key}?"),
    ),
    Shape(
        "remedy",
        "name",
        "product",
        (
            "{key} swears by {value} against the moths.",
            "Against the moths? {key} says nothing beats {value}.",
        ),
        ("What was it that {key} recommended for the moths?", "Moths again. What did {key} use?"),
    ),
    Shape(
        "replaced",
        "project",
        "company",
        (
            "Scrap what I said about the {key}: {value} instead.",
            "New plan, {value} takes over the {key}.",
        ),
        ("Who is doing the {key} now?", "Remind me who we switched to for the {key}."),
    ),
    Shape(
        "login",
        "company",
        "handle",
        ("I signed up at {key} as {value}.", "{key} knows me as {value}, odd but true."),
        ("What's my user name at {key}?", "I can't log in to {key}, which account is it?"),
    ),
)

_SINGLE_TUNING = (
    ("I park the caravan behind Hollis Farm, bay 14.", "Where is the caravan?", "bay 14"),
    ("Mein Hausarzt ist Dr. Wendland in der Lindenstraße.", "Wie heißt mein Hausarzt?", "Wendland"),
    ("Notre plombier s'appelle Gaspard Morel.", "C'est qui, notre plombier ?", "Gaspard Morel"),
    ("El seguro del coche vence el 9 de octubre.", "¿Hasta cuándo vale el seguro?", "9 de octubre"),
    ("저는 땅콩 알레르기가 있어서 땅콩은 못 먹어요.", "저 무슨 알레르기 있다고 했죠?", "땅콩"),
    ("我的护照号码是E83920175。", "我的护照号码是多少?", "E83920175"),
    ("歯医者の予約は来月の17日15時に変わりました。", "歯医者はいつでしたっけ?", "17日15時"),
    ("The spare key hangs in the beehive.", "Where did I hide the spare key?", "beehive"),
)
_SINGLE_UNSEEN = (
    ("Our boiler man is Fergus Whitlow, always on time.", "The boiler broke. Who?", "Whitlow"),
    ("We keep the insulin in the green fridge.", "Which fridge has the insulin?", "green fridge"),
    ("Die Alarmanlage geht mit 7719 aus.", "Wie schalte ich die Alarmanlage ab?", "7719"),
    ("Unsere Vermieterin wohnt jetzt in Krefeld.", "Wo wohnt unsere Vermieterin?", "Krefeld"),
    ("Mon garagiste m'a demandé 840 euros.", "Combien voulait le garagiste ?", "840 euros"),
    ("La clave de la alarma es Quetzal.", "¿Cuál era la clave de la alarma?", "Quetzal"),
    ("Il mio dentista si chiama Bassani.", "Come si chiama il dentista?", "Bassani"),
    ("Mijn fietsslot heeft code 3381.", "Wat is de code van mijn fietsslot?", "3381"),
    ("우리 아들 담임 선생님은 오미란 선생님이에요.", "아들 담임 선생님 성함이 뭐였죠?", "오미란"),
    ("我女儿的钢琴老师姓欧阳。", "女儿的钢琴老师姓什么?", "欧阳"),
    ("猫の薬は一日二回、半錠ずつです。", "猫の薬はどのくらいあげるんだっけ?", "半錠"),
    ("Мой терапевт принимает в кабинете 412.", "В каком кабинете мой терапевт?", "412"),
)
_SINGLE_APART = (
    ("I come out in hives whenever I eat shrimp.", "What am I allergic to?", "shrimp"),
    ("We tied the knot in Ravello.", "Where did our wedding take place?", "Ravello"),
    ("I drive a Skoda these days.", "What kind of car do I have?", "Skoda"),
    (
        "Never before ten, I'm a night owl.",
        "What time should meetings start at the earliest?",
        "ten",
    ),
    ("My better half teaches chemistry.", "What is my wife's profession?", "chemistry"),
    ("The little one starts crawling, seven months!", "How old is our baby?", "seven months"),
    ("I grew up speaking Catalan at home.", "What's my mother tongue?", "Catalan"),
    ("Meat hasn't touched my plate since 2011.", "Since when am I a vegetarian?", "2011"),
)

_FOODS = (
    "hazelnuts|celery|buckwheat|sesame|lupin flour|mustard seeds|crayfish|kiwi|rye bread|papaya|"
    "coriander|quinoa|cashews|squid|goat cheese|paprika|chickpeas|pistachios|mango|oysters"
)
_PLACES = (
    "boathouse|rehearsal room|bike cellar|allotment gate|darkroom|ceramics studio|laundry room|"
    "climbing hall|roof terrace|seed vault|mountain hut|choir room|sauna|workshop in Barth Street|"
    "archive|tool shed|co-working loft|ski depot|community kitchen|observatory"
)
_OBJECTS = (
    "tripod|cello bow|tent pegs|pasta machine|drill|sleeping bag|label printer|sewing kit|"
    "snowshoes|accordion|telescope|wetsuit|breadmaker|cargo bike|espresso grinder|chess clock|"
    "sandblaster|microscope|dehumidifier|loom|kayak|metronome|projector|turntable|anvil|"
    "fondue set|barometer|unicycle|bookbinding press|rain barrel"
)
_PETS = "Biscuit|Waffles|Odin|Pippa|Taco|Mochi|Ruffles|Nimbus|Fennel|Borscht|Kiki|Tuba|Zorro|Plum"
_COMPANIES = (
    "Halvorsen|Brightwell|Ondato|Kestrel Labs|Tidewater|Mirelle|Quarzwerk|Larkfield|Vantora|"
    "Osprey Works|Pennyroyal|Dunmore|Castelan|Fjordline|Sablewood|Norrbyte|Ibarra|Millrace|"
    "Steinhart|Calloway|Zephyra|Rookwood|Altamira|Grindstone"
)
_PROJECTS = (
    "garden fence|newsletter|roof repair|wedding music|school website|kitchen floor|annual report|"
    "summer fair|heat pump|photo book|ferry charter|sound system|stage lights|catering|archive scan|"
    "bike shelter|window frames|translation|farm shop sign|museum audio guide"
)
_TOWNS = (
    "Kotor|Sopron|Évora|Bamberg|Ystad|Piran|Olomouc|Girona|Narva|Bergerac|Tartu|Viborg|Matera|"
    "Zadar|Kalmar|Leuven|Ronda|Sighisoara|Lindau|Trogir"
)
_PRODUCTS = (
    "cedar shavings|lavender soap|a bay leaf|clove oil|Zirbenholz|peppermint wax|neem spray|"
    "juniper smoke|orange peel|patchouli|rosemary bundles|camphor"
)
_HANDLES = (
    "moss_eater|kettle77|tinfoilhat|owlery|drizzle.b|nine_lives|paperboat|foghorn42|ghee|zaftig"
)


def planted(count: int, *, seed: int = 1) -> list[Planted]:
    """*count* facts in a random order: half of shapes for tuning, half of the unseen ones.

    The first hundred and more of a count of 600 include the singles of all parts.
    """
    source = random.Random(seed)
    facts = [
        *_singles("tuning", _SINGLE_TUNING),
        *_singles("unseen", _SINGLE_UNSEEN),
        *_singles("apart", _SINGLE_APART),
    ]
    pairs = zip(_shaped("tuning", TUNING, source), _shaped("unseen", UNSEEN, source), strict=True)
    facts += [fact for pair in pairs for fact in pair]
    chosen = facts[:count]
    source.shuffle(chosen)
    return chosen


def _singles(part: Part, rows: Sequence[tuple[str, str, str]]) -> Iterator[Planted]:
    for said, asked, value in rows:
        yield Planted(part, "single", said, asked, (value,))


def _shaped(part: Part, shapes: Sequence[Shape], source: random.Random) -> Iterator[Planted]:
    """Facts of the shapes by turns; none has the key of another one of its shape."""
    keys = {shape.name: _keys(shape.key, source) for shape in shapes}
    for _ in range(30):
        for shape in shapes:
            key, value = next(keys[shape.name]), _value(shape.value, source)
            fill = {"key": key, "value": value}
            yield Planted(
                part,
                shape.name,
                source.choice(shape.said).format(**fill),
                source.choice(shape.asked).format(**fill),
                (_core(key), value),
                shape.speaker,
            )


def _core(key: str) -> str:
    """The word of a key that notes and quotes have to name."""
    words: list[str] = re.findall(r"[^\W\d_]+", key)
    return max(words, key=len)


_POOLS = {
    "name": FIRST_NAMES,
    "place": tuple(_PLACES.split("|")),
    "object": tuple(_OBJECTS.split("|")),
    "project": tuple(_PROJECTS.split("|")),
    "town": tuple(_TOWNS.split("|")),
    "company": tuple(_COMPANIES.split("|")),
}
_RELATIONS = ("my sister", "my boss", "our neighbour", "my coach", "aunt", "Dr.", "cousin", "young")


def _keys(kind: str, source: random.Random) -> Iterator[str]:
    """Thirty keys, each once: where a pool is smaller, with an adjective or a relation."""
    if kind == "full name":
        names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    else:
        names = list(_POOLS[kind])
        extra = ("old", "second", "northern") if kind != "name" else _RELATIONS
        if kind in ("company", "town"):
            names += [f"{name}-{part}" for name in names for part in ("Nord", "Sud")]
        else:
            names += [f"{word} {name}" for name in names for word in extra]
        if len(_POOLS[kind]) >= 30:
            names = list(_POOLS[kind])
    pool = len(_POOLS.get(kind, names))
    head, rest = names[:pool], names[pool:]
    source.shuffle(head)
    source.shuffle(rest)
    yield from [*head, *rest][:30]


def _value(kind: str, source: random.Random) -> str:
    match kind:
        case "code":
            letters = "".join(source.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=2))
            return f"{letters}-{source.randint(1000, 9999)}"
        case "amount":
            return f"{source.randint(1, 98)},{source.randint(100, 999)}.{source.randint(10, 99)}"
        case "day":
            day = START + timedelta(days=source.randint(60, 3_000))
            return f"{day.day} {day:%B %Y}"
        case "phone":
            return f"0{' '.join(str(source.randint(100, 999)) for _ in range(3))}"
        case "size":
            return source.choice(("a medium", "XXL", "a 38", "a 44 long", "size 52", "an S"))
        case "train":
            return (
                f"IC {source.randint(100, 999)} at {source.randint(5, 22)}:{source.randint(10, 59)}"
            )
        case "password":
            return f"{source.choice(_HANDLES.split('|'))}{source.randint(100, 999)}!"
        case "holder":
            return f"{source.choice(FIRST_NAMES)} {source.choice(LAST_NAMES)}"
        case _:
            pool: dict[str, str] = {
                "food": _FOODS,
                "pet": _PETS,
                "company": _COMPANIES,
                "product": _PRODUCTS,
            }
            return str(source.choice(pool.get(kind, _HANDLES).split("|")))
