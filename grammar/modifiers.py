"""Adjectives, adverbs, prepositions and numbers.

Fixed phrases are split into corresponding parts: in `in the/morning = am/Morgen`, `am`
corresponds to `in the`.
"""

from typing import Final

ADJECTIVES: Final = """
    old = alt ; @person @animal @building @vehicle @furniture @clothing @device @text picture
        city village bridge tree
    young = jung ; @person @animal tree
    new = neu ; @building @vehicle @furniture @clothing @device @text @art @crockery @idea key
        bag umbrella ball ring picture bridge teacher student neighbour
    big = groß ; @animal @building @vehicle @furniture @thing @room @device @crockery @opening
        @fruit @area
    small = klein ; @animal @building @vehicle @furniture @thing @room @device @crockery
        @opening @fruit garden park village lake tree child boy girl
    good = gut ; @person @food @drink @dish @text @art @idea restaurant hotel school
    beautiful = schön ; @building @clothing @area @art @thing woman girl queen horse bird story
    red = rot ; @clothing @vehicle @furniture @opening @crockery apple house bag ball flower ;
        colour
    blue = blau ; @clothing @vehicle @furniture @opening @crockery house bag ball flower bird ;
        colour
    black = schwarz ; @clothing @vehicle @furniture bag dog cat horse umbrella bird coffee tea ;
        colour
    expensive = teuer/teur ; @clothing @vehicle @furniture @device hotel restaurant house ring
        picture wine cheese coffee chocolate
    warm = warm ; @clothing @room water milk soup bread lake
    cold = kalt ; @drink @room soup lake
    hot = heiß ; soup coffee tea water milk potato
    tired = müde ; @person dog horse ; passing
    hungry = hungrig ; @person @animal ; passing
    happy = glücklich ; @person ; passing
    sad = traurig ; @person story song film dog ; passing
    sick = krank ; @person dog cat horse cow ; passing
    friendly = freundlich ; @person dog letter answer ; passing
    rich = reich ; @person city
    poor = arm ; @person village
    clever = klug ; @person dog plan answer question
    long = lang ; @text @art street bridge coat train
    high = hoch/hoh ; mountain tree bridge castle church
    dark = dunkel/dunkl ; @room forest street house church coat
    interesting = interessant ; @text @art @idea museum city picture
"""
"""English and German, with the stem before endings if it differs; the nouns they describe; and a
mark: `passing` qualities may have a time, a `colour` has no degree."""

MANNERS: Final = """
    quickly = schnell, slowly = langsam, loudly = laut, quietly = leise, well = gut,
    carefully = vorsichtig
"""

ADVERBS: Final = {
    "present": "always = immer, often = oft, sometimes = manchmal, never = nie, rarely = selten",
    "progressive": "still = immer noch, already = schon",
    "past": "always = immer, often = oft, sometimes = manchmal, never = nie",
    "perfect": "already = schon, never = nie, often = oft",
    "future": "soon = bald, never = nie",
}
"""By tense. They are within the verb in English and before new objects in German."""

DAYS: Final = """
    Monday/Montag Tuesday/Dienstag Wednesday/Mittwoch Thursday/Donnerstag Friday/Freitag
    Saturday/Samstag Sunday/Sonntag
"""

MONTHS: Final = "January/Januar June/Juni December/Dezember"

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
    in = in dative ; @room house school church museum hotel restaurant shop castle garden park
        forest city village car bus train ; staying
    behind = hinter dative ; @building tree door car ; staying
    in front of = vor dative ; @building door window car tree ; staying
    next to = neben dative ; @building tree door window ; staying
    on = auf dative ; table chair bed bridge street mountain ; resting
    under = unter dative ; table bed tree bridge chair ; resting
    into = in accusative ; @room house church museum hotel restaurant shop castle garden park
        forest city village ; going
    to = zu dative ; school station lake bridge castle hotel church doctor neighbour teacher
        baker farmer friend aunt grandmother ; going
    through = durch accusative ; garden park forest city village street ; going
    out of = aus dative ; @room house church museum hotel shop castle school forest city ; going
    with = mit dative ; @person ; company
    without = ohne accusative ; @person ; company
    for = für accusative ; @person ; favour
"""
"""Where something happens, where something is, where it goes, with whom and for whom."""

NUMBERS: Final = """
    two/zwei three/drei four/vier five/fünf six/sechs seven/sieben eight/acht nine/neun ten/zehn
    eleven/elf twelve/zwölf
"""
