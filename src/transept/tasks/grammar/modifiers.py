"""Everything but nouns and verbs: adjectives, adverbs, prepositions, numbers.

Phrases that do not vary are cut into the pieces that correspond: in `in the/morning = am/Morgen`,
`in the` is said by `am`.
"""

from typing import Final

ADJECTIVES: Final = """
    old/older = alt/älter ; @person @animal @building @vehicle @furniture @clothing @device @text
        picture map city village bridge tree
    young/younger = jung/jünger ; @person @animal tree
    new = neu ; @building @vehicle @furniture @clothing @device @text @art @crockery @idea key bag
        suitcase umbrella ball ring picture map bridge teacher student neighbour
    big/bigger = groß/größer ; @animal @building @vehicle @furniture @thing @room @device @crockery
        @opening @fruit @area city village problem
    small/smaller = klein/kleiner ; @animal @building @vehicle @furniture @thing @room @device
        @crockery @opening @fruit garden park village lake river tree child boy girl
    good/better = gut/besser ; @person @food @drink @dish @text @art question answer plan restaurant
        hotel school
    bad/worse = schlecht/schlechter ; @text @art @food @dish question answer plan restaurant hotel
        teacher student
    beautiful = schön/schöner ; @building @clothing @area @art @thing woman girl queen horse bird
        poem story city word
    red = rot ; @clothing @vehicle @furniture @opening @crockery apple house bag ball flower
    blue = blau ; @clothing @vehicle @furniture @opening @crockery house bag ball flower bird
    white = weiß ; @clothing @vehicle @furniture @opening @crockery house horse cat flower rabbit
    black = schwarz ; @clothing @vehicle @furniture bag dog cat horse umbrella box bird coffee tea
    expensive = teuer/teurer/teur ; @clothing @vehicle @furniture @device hotel restaurant house
        ring picture wine cheese coffee chocolate meat
    heavy/heavier = schwer/schwerer ; @furniture box bag suitcase book radio
    strong/stronger = stark/stärker ; man woman boy girl horse bear lion elephant coffee tea
    warm/warmer = warm/wärmer ; @clothing @room water milk soup bread lake
    cold/colder = kalt/kälter ; @drink @room soup meat lake river
    hot/hotter = heiß/heißer ; soup coffee tea water milk potato
    tired = müde/müder ; @person dog horse ; passing
    hungry/hungrier = hungrig/hungriger ; @person @animal ; passing
    happy/happier = glücklich/glücklicher ; @person ; passing
    sad/sadder = traurig/trauriger ; @person story song film poem dog ; passing
    sick/sicker = krank/kränker ; @person dog cat horse cow ; passing
    friendly/friendlier = freundlich/freundlicher ; @person dog letter answer ; passing
    rich/richer = reich/reicher ; @person city
    poor/poorer = arm/ärmer ; @person village
    clever/cleverer = klug/klüger ; @person dog plan answer question
    brave/braver = mutig/mutiger ; @person dog lion
    famous = berühmt/berühmter ; doctor lawyer singer king queen book poem film song picture castle
        museum church bridge hotel city
    long/longer = lang/länger ; @text @art street bridge river coat dress train word
    short/shorter = kurz/kürzer ; @text @art street bridge river dress train word
    high/higher = hoch/höher/hoh ; mountain tree bridge gate castle church
    dark/darker = dunkel/dunkler/dunkl ; @room forest street house church coat dress
    dirty/dirtier = schmutzig/schmutziger ; @clothing @crockery @vehicle @room @opening street dog
    interesting = interessant/interessanter ; @text @art @idea museum city picture guest
    difficult = schwierig/schwieriger ; question answer problem word book
    important = wichtig/wichtiger ; @idea @text guest man key bridge
"""
"""English with its comparative (else `more`), German with its comparative and, where it differs,
the stem that endings follow; what they are said of; `passing` qualities go with a time. Colours
are not compared."""

MANNERS: Final = """
    quickly = schnell, slowly = langsam, loudly = laut, quietly = leise, well = gut,
    carefully = vorsichtig
"""

ADVERBS: Final = {
    "present": "always = immer, often = oft, sometimes = manchmal, never = nie, rarely = selten",
    "progressive": "still = immer noch, already = schon",
    "past": "always = immer, often = oft, sometimes = manchmal, never = nie",
    "perfect": "already = schon, never = nie, often = oft",
    "future": "soon = bald, never = nie, probably = wahrscheinlich",
}
"""By tense: they stand within the verb in English and before what is new in German."""

DAYS: Final = """
    Monday/Montag Tuesday/Dienstag Wednesday/Mittwoch Thursday/Donnerstag Friday/Freitag
    Saturday/Samstag Sunday/Sonntag
"""

MONTHS: Final = """
    January/Januar March/März June/Juni August/August December/Dezember
"""

TIMES: Final = {
    "today": "today = heute",
    "now": "now = jetzt",
    "past": "yesterday = gestern, last/week = letzte/Woche, last/year = letztes/Jahr",
    "future": "tomorrow = morgen, next/week = nächste/Woche, next/year = nächstes/Jahr",
    "habit": "every/day = jeden/Tag, every/evening = jeden/Abend, every/week = jede/Woche",
    "part": "in the/morning = am/Morgen, in the/evening = am/Abend, at/night = in der/Nacht",
    "season": "in/summer = im/Sommer, in/winter = im/Winter",
}

HERE: Final = "here = hier, there = dort, at/home = zu/Hause, outside = draußen"
HOME: Final = "home = nach Hause"

PREPOSITIONS: Final = """
    in = in dative ; @room house school church museum hotel restaurant hospital shop castle garden
        park forest city village car bus train bed ; staying
    on = auf dative ; table chair bed bridge street mountain ship ; staying
    under = unter dative ; table bed tree bridge chair ; staying
    behind = hinter dative ; @building tree door car cupboard ; staying
    in front of = vor dative ; @building door window car tree gate ; staying
    next to = neben dative ; @building tree table bed car door window ; staying
    at = an dative ; window door gate lake river beach station ; staying
    into = in accusative ; @room house church museum hotel restaurant shop castle garden park forest
        city village ; going
    to = zu dative ; school station hospital lake beach bridge castle hotel church doctor neighbour
        teacher baker farmer friend aunt uncle grandmother ; going
    through = durch accusative ; garden park forest city village street ; going
    out of = aus dative ; @room house church museum hotel shop castle school forest city ; going
    with = mit dative ; @person ; company
    without = ohne accusative ; @person ; company
    for = für accusative ; @person ; favour
"""
"""Where something stays, where it goes, with whom and for whom it is done."""

NUMBERS: Final = {
    "small": """
        two/zwei three/drei four/vier five/fünf six/sechs seven/sieben eight/acht nine/neun
        ten/zehn eleven/elf twelve/zwölf
    """,
    "tens": "twenty/zwanzig thirty/dreißig forty/vierzig fifty/fünfzig",
}
