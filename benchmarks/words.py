"""The words and sentence frames that the made-up conversations are filled with."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("|"))


FIRST_NAMES = _words(
    "Ilse|Oskar|Marta|Dario|Jonna|Pavel|Amina|Tomas|Lucia|Henrik|Nadia|Bruno|Sofie|Karim|"
    "Elena|Matteo|Greta|Anton|Zofia|Rafael|Hanne|Milos|Clara|Yusuf|Petra|Nils|Irena|"
    "Samir|Judit|Luka"
)
LAST_NAMES = _words(
    "Brandt|Lind|Voss|Conti|Aalto|Novak|Haddad|Reyes|Moretti|Dahl|Petrov|Keller|Santos|"
    "Jansen|Kovacs|Ferrari|Olsen|Marek|Weiss|Ortega|Farkas|Lund|Costa|Becker|Horvat|"
    "Nowak|Silva|Berger|Toth|Andersen"
)

SLOTS: dict[str, tuple[str, ...]] = {
    "person": _words(
        "my sister|the neighbour|our gardener|the choir leader|an old colleague|the librarian|"
        "my grandfather|the baker|a friend from school|the caretaker|the drummer|our teacher|"
        "the postwoman|my cousin|the carpenter|a visitor|the coach|the ferryman|the pharmacist|"
        "my aunt|the tailor|a stranger on the tram|the beekeeper|our landlord|the cellist|"
        "a retired judge|the shepherd|my niece|the plumber|a student of botany|the watchmaker|"
        "our bus driver|the miller|a young apprentice|the curator|my uncle|the glazier|the usher|"
        "a travelling cook|the night porter|the potter|our dentist|the fencing master|my godmother"
    ),
    "thing": _words(
        "the bicycle|a wooden bench|the kitchen table|an old radio|the garden fence|a wool coat|"
        "the tin roof|a clay pot|the bookshelf|a paper kite|the sewing machine|a brass lamp|"
        "the rowing boat|a linen curtain|the stone oven|a straw hat|the wheelbarrow|a violin|"
        "the water barrel|a folding chair|the birdhouse|a rope ladder|the copper kettle|a telescope|"
        "the pantry door|an oil painting|the chess board|a felt slipper|the greenhouse|a globe|"
        "the typewriter|an enamel jug|the hammock|a leather satchel|the grindstone|a barometer|"
        "the picture frame|a cedar chest|the wine press|a pocket mirror|the canoe|a metronome|"
        "the spinning wheel|an umbrella stand|the coal stove|a porcelain cup|the trellis|a tripod|"
        "the mantelpiece|a harmonica|the gravel path|a snow shovel|the piano stool|a tapestry"
    ),
    "place": _words(
        "the harbour|the market square|the attic|a village in the hills|the lake|the back yard|"
        "the railway station|an orchard|the chapel|the cellar|the botanical garden|a mill|"
        "the library|the lighthouse|a clearing in the woods|the workshop|the town hall|the bakery|"
        "the ferry landing|a vineyard|the concert hall|the old quarry|a mountain hut|the laundry|"
        "the observatory|a courtyard|the fish market|the stables|a narrow lane|the canal bridge|"
        "the school gym|a meadow by the stream|the theatre foyer|the bus depot|a rooftop terrace|"
        "the castle gate|the swimming pool|a dairy farm|the print shop|the bandstand|a pine forest"
    ),
    "quality": _words(
        "quiet|stubborn|colourful|fragile|patient|heavy|cheerful|rough|elegant|dusty|gentle|"
        "crooked|bright|slow|generous|faded|warm|narrow|curious|sturdy|plain|restless|brittle|"
        "solemn|playful|murky|delicate|noisy|thorough|clumsy|graceful|damp|modest|vivid|hollow|"
        "careful|wild|tender|awkward|mellow|stern|airy|rustic|sober|lively|frugal|tidy|bitter|"
        "mild|sincere|shabby|bold|subtle|drowsy|crisp|lavish|steady|humble|peculiar|serene"
    ),
    "did": _words(
        "repaired|painted|borrowed|carried|forgot|measured|cleaned|admired|sold|sketched|moved|"
        "found|wrapped|polished|described|praised|hid|rebuilt|tested|photographed|varnished|"
        "dismantled|inspected|inherited|decorated|bought|dropped|returned|restored|weighed|lost|"
        "scrubbed|labelled|donated|unpacked|straightened|examined|rescued|copied|assembled|"
        "mended|ignored|exchanged|covered|lifted|guarded|trimmed|recognised|tuned|auctioned"
    ),
    "topic": _words(
        "the weather|music at dinner|the history of the valley|how bread rises|old maps|"
        "the habits of swallows|the art of mending|sailing knots|the price of timber|folk tales|"
        "the taste of rain water|train journeys|herb gardens|the design of chairs|night skies|"
        "letters from abroad|the mood of the team|long walks|the care of tools|theatre masks|"
        "the smell of fresh paint|card games|the shape of clouds|winter swimming|stage fright|"
        "pruning roses|the silence of libraries|village festivals|handwriting|lost recipes|"
        "the patience of anglers|street musicians|the meaning of proverbs|glass blowing|tides|"
        "childhood summers|learning an instrument|keeping a diary|the colour of autumn|puppetry|"
        "borrowed books|mushroom hunting|the rhythm of machines|slow cooking|wooden toys|echoes"
    ),
    "feeling": _words(
        "relieved|tired|amused|uneasy|grateful|hopeful|puzzled|content|impatient|calm|proud|moved|"
        "startled|nostalgic|eager|sceptical|delighted|embarrassed|thoughtful|homesick|bored|"
        "confident|worried|inspired|annoyed|speechless|cautious|exhausted|touched|bewildered"
    ),
    "way": _words(
        "slowly|with great care|without a plan|in the evening|before breakfast|after the rain|"
        "by hand|in silence|with a smile|against all advice|for the whole afternoon|once more|"
        "almost by accident|with borrowed tools|under the old lamp|in one sitting|half asleep|"
        "to everyone's surprise|with the window open|as if for the first time|on a whim|humming|"
        "in the shade|without complaint|between two showers|as carefully as ever|at full speed"
    ),
    "reason": _words(
        "it felt like the right moment|nobody else wanted to|the light was so good|"
        "the old way had stopped working|there was time to spare|it keeps the mind busy|"
        "a promise is a promise|the season was turning|it had been put off for too long|"
        "the wind had finally dropped|the children kept asking|habit is a strong thing|"
        "the shop was about to close|guests were on their way|curiosity won in the end|"
        "the instructions were missing|good company makes work light|the roof had begun to leak|"
        "someone had to go first|the river was rising|the rehearsal had been cancelled|"
        "patience pays in such matters|the key would not turn|every hand was needed"
    ),
    "verb": _words(
        "wait|begin again|ask around|keep it simple|compare the options|sleep on it|write it down|"
        "start with the edges|leave some room|trust the process|invite the others|try a sample|"
        "sharpen the tools|draw a sketch|read the label|change the order|take a break|"
        "open the windows|listen first|borrow a ladder|sort the pieces|check the corners|"
        "lower the heat|begin with the hard part|leave the rest for later|ask an expert|"
        "practise in private|share the work|admit the mistake|let it dry"
    ),
    "weekday": _words("Monday|Tuesday|Wednesday|Thursday|Friday|Saturday"),
    "nick": _words("Bea|Tim|Lou|Max|Ida|Ben|Mia|Leo|Kai|Eva|Sam|Zoe"),
    "town": _words("Bergen|Porto|Lyon|Graz|Turin|Ghent|Malmö|Cork|Split|Basel"),
}

PLAIN_FRAMES = (
    "{person} {did} {thing} {way}, because {reason}.",
    "I keep thinking about {topic}, and it makes me {feeling}.",
    "At {place} there was something {quality} about {thing}.",
    "It may be best to {verb}, since {reason}.",
    "{person} says that {topic} and {topic} have more in common than one would think.",
    "We talked about {topic} for a while, then {person} {did} {thing}.",
    "When {reason}, most people {verb}, and that is rarely wrong.",
    "The {quality} part is not {thing} itself but the way {person} looks at it.",
    "Have you ever wondered why {topic} can be so {quality}?",
    "Between {place} and {place} one learns a good deal about {topic}.",
    "A {quality} morning near {place} is worth more than a {quality} evening at home.",
    "If {thing} turns out to be too {quality}, it is fine to {verb}.",
    "{person} was {feeling} at first, yet {way} the mood changed.",
    "Perhaps we should {verb} and then look at {thing} again, {way}.",
    "Nothing about {topic} surprises me any more, although {person} still tries.",
    "You could describe {place} as {quality}, or even {quality}, depending on the season.",
    "{person} {did} {thing} near {place}, and everyone was {feeling} about it.",
    "That is one way to see it: {topic} calls for a {quality} hand.",
    "To get further with {topic}, {verb} first and {verb} afterwards.",
    "Some find {topic} {quality}; others, like {person}, call it {quality}.",
    "With {thing} at {place} the whole day felt {quality}.",
    "The trouble began when {person} {did} {thing} {way}.",
    "My own view is that {reason}, and so we should {verb}.",
    "For a {quality} result, {person} would {verb} {way}.",
    "I {did} {thing} {way}, and afterwards I was rather {feeling}.",
    "Did {person} really prefer {place} to {place}, or was that a joke?",
    "Until {person} {did} {thing}, nobody at {place} had cared about {topic}.",
    "There is a {quality} charm in {topic} that {person} never understood.",
    "As for {thing}, I would {verb}; anything more would be {quality}.",
    "{person} laughed, {did} {thing}, and went on about {topic} {way}.",
    "Yes, that makes sense: {reason}, and {thing} was {quality} anyway.",
    "In the end {person} and {person} {did} {thing} together at {place}.",
    "What I like about {place} is how {quality} it becomes {way}.",
    "Sometimes {topic} is only an excuse to {verb}.",
    "My advice is to {verb}, {verb}, and only then to touch {thing}.",
    "Of all the {quality} afternoons at {place}, that one left me most {feeling}.",
)

CHATTY_FRAMES = (
    "Haha, {nick} and I waited about {small} minutes at {place}, and {nick} was {feeling}!",
    "{nick} called on {weekday} and told me that {person} {did} {thing}.",
    "There were {small} people at {place} in {town}, which is more than {nick} expected.",
    "I bought {small} apples and {nick} took {small} of them, fair enough.",
    "Do you remember how {nick} {did} {thing} in {town}? I was so {feeling}.",
    "We drove to {town} with {nick}, it took {small} hours because {reason}.",
    "Honestly, I love {topic}, and {nick} does too, we could talk for {small} hours.",
    "Oh, and on {weekday} I am off to {town} with {nick} to see {thing}.",
    "Sounds great! How was {nick} on {weekday}, still {feeling} about {topic}?",
    "{nick} read {small} pages about {topic} and then {did} {thing}.",
)
