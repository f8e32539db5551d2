"""Facts that the benchmarks plant in conversations, and the questions that ask for them later.

A question repeats the key of its fact, such as a name, and little else of the wording. The shapes
of `TUNING` may be looked at while rules are made; no rule is fitted to those of `UNSEEN`, and both
are measured and printed. `APART` has questions that share no telling word with their fact: words
alone cannot find those, so they are a figure of their own.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from itertools import chain, islice
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

UNSEEN = (
    Shape(
        "port",
        "service",
        "port",
        (
            "The {key} listens on {value}, don't ask me why.",
            "Had a clash, so I moved the {key} to port {value}.",
        ),
        ("Which port is the {key} on?", "curl doesn't reach the {key}. What goes after the colon?"),
    ),
    Shape(
        "failure",
        "module",
        "cause",
        (
            "The {key} crashed because of {value}. I have fixed it and the tests pass.",
            "Found it! It was {value} that broke the {key}.",
        ),
        (
            "Why did the {key} fail last time?",
            "Trouble with the {key} again. What was wrong last time?",
        ),
        "assistant",
    ),
    Shape(
        "branch",
        "module",
        "branch",
        (
            "My work on the {key} sits on {value}, not merged yet.",
            "pushed the {key} stuff to {value}",
        ),
        ("Which branch has the {key}?", "I'd like to go on with the {key}. What do I check out?"),
    ),
    Shape(
        "deadline",
        "report",
        "day",
        (
            "The client wants to see the {key} by {value}.",
            "We got an extension for the {key}, until {value}.",
        ),
        ("How long do we still have for the {key}?", "When do I need to hand in the {key}?"),
    ),
    Shape(
        "homework",
        "name",
        "topic",
        (
            "{key} drew {value} for the class presentation.",
            "For school {key} has to write three pages about {value}.",
        ),
        (
            "What was {key}'s topic at school?",
            "I promised to help {key} with the homework. What is it about?",
        ),
    ),
    Shape(
        "lecture room",
        "course",
        "room",
        (
            "{key} is in {value} this term.",
            "They've moved {key} to {value}, the old hall has a leak.",
        ),
        ("Where do I have {key}?", "I'm late for {key}! Which room?"),
    ),
    Shape(
        "dose",
        "medicine",
        "dose",
        (
            "The doctor has put me on {value} of {key}.",
            "{key}: {value}, in the morning, after food.",
        ),
        ("How much {key} do I take?", "I'm filling my pill box. What do I need of the {key}?"),
    ),
    Shape(
        "hotel",
        "town",
        "hotel",
        (
            "In {key} we sleep at the {value}, two nights.",
            "Got us a room at the {value} for {key}!",
        ),
        (
            "Where are we staying in {key}?",
            "Just landed in {key}, which hotel do I tell the driver?",
        ),
    ),
    Shape(
        "opening hours",
        "museum",
        "time",
        (
            "According to its website, the {key} opens at {value} on Sundays.",
            "You can get into the {key} from {value}; tickets are sold at the door.",
        ),
        ("Opening hours of the {key}?", "We want to see the {key}. When can we get in?"),
        "assistant",
    ),
    Shape(
        "parcel",
        "object",
        "tracking",
        (
            "The parcel with the {key} is on its way, tracking number {value}.",
            "I checked with the carrier: {value}, that's the {key}, arrives this week.",
        ),
        (
            "Where's the parcel with the {key}? I need its number.",
            "Tracking number of the {key}, please.",
        ),
        "assistant",
    ),
    Shape(
        "oven",
        "dish",
        "degrees",
        (
            "The {key} came out best at {value}.",
            "Next time I'll bake the {key} at {value}, too pale this time.",
        ),
        (
            "How hot does the oven have to be for the {key}?",
            "Making {key} again. What temperature was it?",
        ),
    ),
    Shape(
        "borrowed book",
        "name",
        "title",
        (
            "{key} lent me {value} and wants it back some day.",
            "I'm reading {value} at the moment, it belongs to {key}.",
        ),
        (
            "Which book did I borrow from {key}?",
            "I'm seeing {key} tonight. What did I have to give back?",
        ),
    ),
    Shape(
        "race",
        "name",
        "finish",
        (
            "{key} ran the half marathon in {value}!",
            "{value} for {key} at the half marathon, a personal best.",
        ),
        ("How fast was {key} at the half marathon?", "What was {key}'s time in the race?"),
    ),
    Shape(
        "bed",
        "plant",
        "spot",
        ("I put the {key} {value}, more sun there.", "This year I'm growing the {key} {value}."),
        (
            "Where did I plant the {key}?",
            "I can't see the {key} coming up. Which spot was that?",
        ),
    ),
    Shape(
        "paint",
        "furniture",
        "colour",
        (
            "I painted the {key} in {value}, two coats.",
            "The {key}? That's {value}, straight from the tin.",
        ),
        (
            "What colour did I use for the {key}?",
            "I need to touch up the {key}. Which paint was it?",
        ),
    ),
    Shape(
        "moved",
        "full name",
        "town",
        (
            "{key} has moved to {value} for good.",
            "Had a card from {key}, lives in {value} now with the kids.",
        ),
        ("Where does {key} live now?", "I'd like to visit {key}. What town was that?"),
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
_SINGLE_UNSEEN = (
    (
        "Die Reifen lasse ich immer bei Pröll wechseln.",
        "Wo lasse ich die Reifen wechseln?",
        "Pröll",
    ),
    ("Oma liegt auf Station 6, Zimmer 14b.", "In welchem Zimmer liegt Oma?", "14b"),
    ("La nounou finit à 18 h 45 le mardi.", "Jusqu'à quelle heure reste la nounou ?", "18 h 45"),
    (
        "J'ai rangé les passeports dans la boîte à couture.",
        "Où sont les passeports ?",
        "boîte à couture",
    ),
    ("Mi hija va a natación en Ruzafa.", "¿Dónde tiene natación mi hija?", "Ruzafa"),
    ("La moto lleva aceite 10W-40.", "¿Qué aceite le pongo a la moto?", "10W-40"),
    (
        "Al gatto diamo mezza pastiglia di Felimazole.",
        "Che medicina prende il gatto?",
        "Felimazole",
    ),
    ("Di bollo quest'anno ho pagato 213 euro.", "Quanto ho pagato di bollo?", "213 euro"),
    ("O oftalmologista ficou para 23 de março.", "Quando é o oftalmologista?", "23 de março"),
    ("O encanador cobrou 350 reais pela torneira.", "Quanto custou a torneira?", "350 reais"),
    ("De oppas van donderdag heet Marijke.", "Wie past er donderdag op?", "Marijke"),
    ("Kluczyki do piwnicy wiszą za lodówką.", "Gdzie są kluczyki do piwnicy?", "za lodówką"),
    ("Nasz mechanik to pan Kwaśniewicz z Radomia.", "Jak się nazywa nasz mechanik?", "Kwaśniewicz"),
    ("Собаку мы стрижём у Ларисы на Садовой.", "Где мы стрижём собаку?", "Садовой"),
    ("Маме поставили домофон, код 58К2210.", "Какой код домофона у мамы?", "58К2210"),
    ("Бабуся не їсть грибів, їй від них зле.", "Чого не можна бабусі?", "грибів"),
    ("Kombinin servisine Yalçın Usta bakıyor.", "Kombi bozuldu, kimi arıyorduk?", "Yalçın"),
    ("Kızımın okul numarası 1847.", "Kızımın okul numarası kaçtı?", "1847"),
    ("Förskolan stänger 16.30 på fredagar.", "När stänger förskolan på fredag?", "16.30"),
    ("Chalupu jsme pronajali paní Doležalové.", "Komu jsme pronajali chalupu?", "Doležalové"),
    ("Mökin avain on kukkaruukun alla.", "Missä se mökin avain on?", "kukkaruukun"),
    ("A fogorvosom dr. Szentirmai.", "Hogy hívják a fogorvosomat?", "Szentirmai"),
    ("Το γκαράζ ανοίγει με το 4406.", "Πώς ανοίγει το γκαράζ;", "4406"),
    ("طبيبة الأطفال اسمها هالة منصور.", "ما اسم طبيبة الأطفال؟", "هالة منصور"),
    ("دفعت إيجار المحل 4200 ريال.", "كم كان إيجار المحل؟", "4200"),
    ("לנועם יש שחייה ביום רביעי.", "באיזה יום השחייה של נועם?", "רביעי"),
    ("मेरी बहन का जन्मदिन 14 फ़रवरी को है।", "मेरी बहन का जन्मदिन कब है?", "14 फ़रवरी"),
    ("Con trai tôi học lớp cô Hạnh.", "Con trai tôi học cô nào?", "Hạnh"),
    ("Tukang AC langganan kami Pak Suryadi.", "AC rusak, siapa tukangnya?", "Suryadi"),
    ("ร้านซ่อมจักรยานชื่อพี่หนุ่ม", "ร้านซ่อมจักรยานชื่ออะไรนะ", "พี่หนุ่ม"),
    ("어머니 무릎 수술은 3월 12일로 잡혔어요.", "어머니 수술이 언제였죠?", "3월 12일"),
    ("회사 프린터 비밀번호는 7240이에요.", "프린터 비밀번호 뭐였지?", "7240"),
    ("息子の水泳教室は木曜の四時半からです。", "息子の水泳は何時からだっけ?", "四時半"),
    ("車検は山口モータースに頼みました。", "車検、どこに頼んだっけ?", "山口モータース"),
    ("洗衣机的保修到明年六月底。", "洗衣机还能保修到什么时候?", "六月底"),
    ("快递柜的取件码是50-3-8816。", "取件码是多少来着?", "50-3-8816"),
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
_SERVICES = (
    "billing-api|mailer|auth-proxy|image-resizer|search-index|scheduler|geocoder|webhook-relay|"
    "thumbnailer|ledger-sync|chat-gateway|metrics-collector|pdf-renderer|feature-flags|"
    "session-store|inventory-feed|translator-bot|log-shipper|payments-mock|map-tiles|"
    "backup-agent|status-page|rate-limiter|price-watcher|form-backend|video-encoder|"
    "ticket-importer|dns-updater|preview-server|license-checker"
)
_MODULES = (
    "invoice parser|checkout page|avatar upload|nightly export|password reset|tax calculator|"
    "onboarding tour|coupon engine|address lookup|dark mode|seat map|calendar sync|spell checker|"
    "audit trail|loyalty points|barcode scanner|push notifications|csv import|comment threads|"
    "currency converter|drag handle|offline cache|undo stack|invitation links|retry queue|"
    "map clustering|voice memos|time zones picker|shipping labels|receipt printer"
)
_REPORTS = (
    "grant proposal|tender|floor plans|logo drafts|budget estimate|press kit|safety audit|"
    "user survey|packaging mock-ups|contract review|trade fair booth|product video|"
    "menu redesign|energy certificate|tasting notes|brochure|staff handbook|site inspection|"
    "privacy policy|casting list|pricing sheet|market study|training slides|app screenshots|"
    "shareholder letter|recipe cards|lighting concept|subtitles|acoustics memo|soil analysis"
)
_COURSES = (
    "Statistics|Organic Chemistry|Roman Law|Linear Algebra|Phonetics|Macroeconomics|Zoology|"
    "Music Theory|Thermodynamics|Old Norse|Art History|Compilers|Anatomy|Ethics|Cartography|"
    "Film Studies|Genetics|Accounting|Logic|Hydraulics|Pottery|Rhetoric|Astronomy|Sanskrit|"
    "Robotics|Pedagogy|Geology|Creative Writing|Epidemiology|Typography"
)
_MEDICINES = (
    "metformin|ramipril|ibuprofen|levothyroxine|pantoprazole|cetirizine|prednisolone|sertraline|"
    "bisoprolol|amoxicillin|magnesium|folic acid|simvastatin|melatonin|naproxen|loratadine|"
    "candesartan|doxycycline|torasemide|zinc|iron tablets|lamotrigine|methotrexate|"
    "allopurinol|vitamin B6|codeine|fluconazole|tamsulosin|apixaban|sumatriptan"
)
_MUSEUMS = (
    "toy museum|aquarium|salt mine|railway museum|planetarium|botanical garden|castle|"
    "puppet theatre|glassworks|lighthouse|maritime museum|butterfly house|cathedral tower|"
    "heritage village|brewery tour|sculpture park|clock collection|zoo|Roman baths|print gallery|"
    "flea market|windmill|dinosaur hall|tapestry room|cable car|submarine|ice cave|"
    "folklore collection|thermal spa|porcelain palace"
)
_DISHES = (
    "lasagne|cheesecake|focaccia|quiche|banana bread|moussaka|shortbread|roast duck|pavlova|"
    "granola|sourdough loaf|plum tart|cinnamon buns|stuffed peppers|meringues|cornbread|"
    "salmon parcels|apple strudel|brownies|cauliflower gratin|lebkuchen|empanadas|challah|"
    "macaroons|leek pie|baklava|gingerbread|frittata|rhubarb crumble|baked pears"
)
_PLANTS = (
    "dahlias|rhubarb|garlic|sweet peas|blueberries|hollyhocks|asparagus|tulips|leeks|lupins|"
    "currants|peonies|pumpkins|thyme|snowdrops|beetroot|foxgloves|artichokes|crocuses|fennel|"
    "raspberries|gladioli|parsnips|lavender|sunflowers|horseradish|irises|kale|zinnias|sorrel"
)
_FURNITURE = (
    "pantry|hallway|bookcase|garden bench|bathroom ceiling|front door|cot|shutters|staircase|"
    "wardrobe|kitchen stools|attic|doll's house|balcony railing|desk|picture frames|skirting|"
    "radiator|chest of drawers|playroom|mantelpiece|letterbox|porch|sideboard|garage door|"
    "hen coop|guest room|piano stool|coat rack|rowing boat"
)
_CAUSES = (
    "a stale lock file|an expired certificate|a missing index|a null in the price column|"
    "a circular import|a trailing comma|a wrong byte order|an off-by-one error|a full disk|"
    "a race in the teardown|a renamed environment variable|a leap year|a deadlock|"
    "an unescaped quote|an infinite redirect|a typo in the Dockerfile"
)
_TOPICS = (
    "beavers|the Hanseatic League|volcanoes|Ada Lovelace|the water cycle|Vikings|bees|"
    "the Silk Road|black holes|Frida Kahlo|the printing press|earthworms|Antarctica|owls|"
    "the French Revolution|recycling|Marie Curie|glaciers|sign language|Pompeii"
)
_HOTELS = (
    "Golden Pheasant|Hotel Meridiana|Old Customs House|Pension Edelweiss|Villa Serafina|"
    "Harbour Inn|Blue Lantern|Casa do Poço|Grand Bristol|Lime Tree Hostel|Hotel Astoria|"
    "Three Crowns|Monastery Guesthouse|Station Hotel|Albergo Nuovo|Mariner's Rest"
)
_TITLES = (
    "Middlemarch|The Leopard|Beloved|Stoner|Dune|The Magic Mountain|Austerlitz|Kindred|"
    "The Summer Book|Pale Fire|Kokoro|The Radetzky March|Gilead|Solaris|The Sea|Momo|"
    "Wide Sargasso Sea|The Master and Margarita|Piranesi|Nervous Conditions"
)
_SPOTS = (
    "behind the compost heap|next to the water butt|under the quince|along the south wall|"
    "by the gate|between the beehives|in the old bathtub|beside the greenhouse|"
    "on the slope|in front of the kitchen window|around the birdbath|at the foot of the pear tree"
)
_COLOURS = (
    "Harbour Fog|Burnt Fig|Celadon|Oxblood|Duck Egg|Wet Slate|Marigold|Old Ivory|Petrol|"
    "Smoked Paprika|Pistachio Cream|Midnight Ink|Terracotta|Mushroom|Lemon Sorbet|Moss"
)


def planted(count: int, *, seed: int = 1) -> list[Planted]:
    """*count* facts in a random order: those apart, then half for tuning and half unseen.

    The singles of a part come before its shapes, so a count of 600 has all of them.
    """
    source = random.Random(seed)
    chosen = list(_singles("apart", _SINGLE_APART))[:count]
    half, odd = divmod(count - len(chosen), 2)
    tuning = chain(_singles("tuning", _SINGLE_TUNING), _shaped("tuning", TUNING, source))
    unseen = chain(_singles("unseen", _SINGLE_UNSEEN), _shaped("unseen", UNSEEN, source))
    chosen += [*islice(tuning, half + odd), *islice(unseen, half)]
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


_POOLS: dict[str, tuple[str, ...]] = {
    "name": FIRST_NAMES,
    **{
        kind: tuple(words.split("|"))
        for kind, words in {
            "place": _PLACES,
            "object": _OBJECTS,
            "project": _PROJECTS,
            "town": _TOWNS,
            "company": _COMPANIES,
            "service": _SERVICES,
            "module": _MODULES,
            "report": _REPORTS,
            "course": _COURSES,
            "medicine": _MEDICINES,
            "museum": _MUSEUMS,
            "dish": _DISHES,
            "plant": _PLANTS,
            "furniture": _FURNITURE,
            "food": _FOODS,
            "pet": _PETS,
            "product": _PRODUCTS,
            "handle": _HANDLES,
            "cause": _CAUSES,
            "topic": _TOPICS,
            "hotel": _HOTELS,
            "title": _TITLES,
            "spot": _SPOTS,
            "colour": _COLOURS,
        }.items()
    },
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
    if kind in _RANDOM_VALUES:
        return _RANDOM_VALUES[kind](source)
    return source.choice(_POOLS[kind])


def _code(source: random.Random) -> str:
    letters = "".join(source.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=2))
    return f"{letters}-{source.randint(1000, 9999)}"


def _amount(source: random.Random) -> str:
    return f"{source.randint(1, 98)},{source.randint(100, 999)}.{source.randint(10, 99)}"


def _day(source: random.Random) -> str:
    day = START + timedelta(days=source.randint(60, 3_000))
    return f"{day.day} {day:%B %Y}"


def _train(source: random.Random) -> str:
    return f"IC {source.randint(100, 999)} at {source.randint(5, 22)}:{source.randint(10, 59)}"


def _room(source: random.Random) -> str:
    return f"{source.choice('ABCEFH')}{source.randint(0, 4)}.{source.randint(10, 39)}"


def _finish(source: random.Random) -> str:
    return f"{source.randint(1, 2)}:{source.randint(10, 59)}:{source.randint(10, 59)}"


_RANDOM_VALUES: dict[str, Callable[[random.Random], str]] = {
    "code": _code,
    "amount": _amount,
    "day": _day,
    "train": _train,
    "room": _room,
    "finish": _finish,
    "phone": lambda source: f"0{' '.join(str(source.randint(100, 999)) for _ in range(3))}",
    "size": lambda source: source.choice(
        ("a medium", "XXL", "a 38", "a 44 long", "size 52", "an S")
    ),
    "password": lambda source: f"{source.choice(_POOLS['handle'])}{source.randint(100, 999)}!",
    "holder": lambda source: f"{source.choice(FIRST_NAMES)} {source.choice(LAST_NAMES)}",
    "port": lambda source: str(source.randint(1025, 9999)),
    "branch": lambda source: f"{source.choice(('wip', 'fix', 'feat'))}/{source.randint(100, 9999)}",
    "dose": lambda source: f"{source.choice((2.5, 5, 12.5, 20, 37.5, 40, 75, 150, 400))} mg",
    "time": lambda source: f"{source.randint(8, 12)}:{source.choice(('15', '30', '45'))}",
    "tracking": lambda source: str(source.randint(10**11, 10**12 - 1)),
    "degrees": lambda source: f"{source.randrange(135, 255, 5)} degrees",
}
