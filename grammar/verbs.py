"""The verbs, by their complements.

    english ; german ; subjects ; objects ; manner and marks

`take/took/taken off`: base, past and participle of an irregular verb (a fourth form is the one in
-ing), then the words that always follow it. `aus|ziehen/zieht/zog/gezogen`: infinitive with its
separable prefix, third person, past, participle. A regular verb has only its infinitive. (s)
forms the perfect with `sein`. Subjects and objects are nouns or kinds of nouns (`@person`). Marks:

    stative   has no progressive and no time
    state     has no perfect either
    command   has an imperative
    for       may be done for someone
    far       is used with cities and countries
    nowhere   is used without a place
    new       is used with things not mentioned before

No two entries share their English form and differ only in German, because one English sentence
would then have two translations.
"""

from typing import Final

ALONE: Final = """
    sleep/slept/slept ; schlafen/schläft/schlief/geschlafen ; @person @animal ; - ; command well
    work ; arbeiten ; @person ; - ; command quickly slowly carefully
    laugh ; lachen ; @person ; - ; loudly quietly
    cry ; weinen ; @person ; - ; loudly quietly
    sing/sang/sung ; singen/singt/sang/gesungen ; @person bird ; - ; command loudly quietly well
    dance ; tanzen ; @person bear ; - ; command slowly well
    play ; spielen ; @person @animal ; - ; command quietly
    wait ; warten ; @person dog horse ; - ; command quietly
    swim/swam/swum/swimming ; schwimmen/schwimmt/schwamm/geschwommen(s) ; @person @animal ; - ;
        slowly quickly well
    get/got/got/getting up ; auf|stehen/steht/stand/gestanden(s) ; @person ; - ; command slowly
    fall/fell/fallen asleep ; ein|schlafen/schläft/schlief/geschlafen(s) ; @person @animal ; - ;
    come/came/come back ; zurück|kommen/kommt/kam/gekommen(s) ; @person dog cat bus train ; - ;
        command nowhere
    arrive ; an|kommen/kommt/kam/gekommen(s) ; @person @vehicle ; - ;
"""

WITH_OBJECT: Final = """
    see/saw/seen ; sehen/sieht/sah/gesehen ; @person @animal ; @person @animal @vehicle
        @building @furniture tree lake mountain bridge ; stative
    find/found/found ; finden/findet/fand/gefunden ; @person ; @thing @clothing @animal book
        letter newspaper answer ; command quickly
    look for ; suchen ; @person ; @thing @clothing @animal @person book letter answer ; command
    buy/bought/bought ; kaufen ; @person ; @thing @clothing @fruit @dish @food @drink @device
        @furniture @crockery book newspaper house car bicycle boat ; command for
    sell/sold/sold ; verkaufen ; @person ; @thing @clothing @fruit @device @furniture book
        newspaper house car bicycle boat bread cheese ; command
    eat/ate/eaten ; essen/isst/aß/gegessen ; @person @animal ; @fruit @dish @food ; command
        quickly slowly
    drink/drank/drunk ; trinken/trinkt/trank/getrunken ; @person ; @drink ; command quickly
        slowly
    read/read/read ; lesen/liest/las/gelesen ; @person ; @text ; command carefully slowly
    write/wrote/written ; schreiben/schreibt/schrieb/geschrieben ; @person ; book letter story
        song ; command slowly for
    open ; öffnen ; @person ; @opening bag bottle letter present ; command carefully slowly
    close ; schließen/schließt/schloss/geschlossen ; @person ; @opening bag bottle ; command
        carefully quietly
    clean ; putzen ; @person ; @room @opening @furniture shoe lamp ; command quickly carefully
    wash ; waschen/wäscht/wusch/gewaschen ; @person ; @clothing @crockery @fruit car dog potato
        ; command quickly carefully
    cook ; kochen ; @person ; soup potato egg ; command quickly well for
    repair ; reparieren ; @person ; @vehicle @device @opening @furniture umbrella ; command
        quickly carefully for
    lose/lost/lost ; verlieren/verliert/verlor/verloren ; @person ; @thing @clothing letter dog
        cat ;
    visit ; besuchen ; @person ; @person museum castle city village ; command nowhere
    love ; lieben ; @person ; @person @animal city chocolate coffee ; state stative
    like ; mögen/mag/mochte/gemocht ; @person ; @person @animal @food @drink @fruit @clothing
        song film book picture plan ; state stative
    need ; brauchen ; @person ; @thing @clothing @device @furniture @vehicle doctor lawyer
        friend house answer plan water ; state stative
    have/had/had ; haben/hat/hatte/gehabt ; @person ; @thing @clothing @device @furniture
        @animal @fruit brother sister son daughter friend neighbour car bicycle boat house
        garden question plan ; state stative new
    know/knew/known ; kennen/kennt/kannte/gekannt ; @person ; @person @building story song film
        city village ; state stative
    meet/met/met ; treffen/trifft/traf/getroffen ; @person ; @person ; command
    invite ; ein|laden/lädt/lud/geladen ; @person ; @person ; command nowhere
    call ; an|rufen/ruft/rief/gerufen ; @person ; @person ; command nowhere
    pick up ; ab|holen ; @person ; @person letter car ; command
    turn on ; an|machen ; @person ; @device light ; command
    turn off ; aus|machen ; @person ; @device light ; command
    take/took/taken off ; aus|ziehen/zieht/zog/gezogen ; @person ; @clothing ; command quickly
        slowly
    throw/threw/thrown away ; weg|werfen/wirft/warf/geworfen ; @person ; @thing @clothing letter
        newspaper bottle ; command
    build/built/built ; bauen ; @person ; @building bridge boat table bed ; quickly for nowhere
    steal/stole/stolen ; stehlen/stiehlt/stahl/gestohlen ; @person ; @thing @fruit @vehicle
        horse cow coat computer radio ;
    explain ; erklären ; @person ; plan answer ; command well
    order ; bestellen ; @person ; @food @drink @dish book ; command for
"""

WITH_DATIVE: Final = """
    help ; helfen/hilft/half/geholfen ; @person ; @person ; command
    thank ; danken ; @person ; @person ; command
    follow ; folgen(s) ; @person @animal ; @person @animal car bus ; command slowly nowhere
    trust ; vertrauen ; @person ; @person ; state stative
    listen to ; zu|hören ; @person ; @person ; command quietly carefully
    belong to ; gehören ; @thing @clothing @furniture @vehicle book house garden dog cat horse ;
        @person ; state stative
"""

WITH_RECIPIENT: Final = """
    give/gave/given ; geben/gibt/gab/gegeben ; @person ; @thing @fruit @crockery @text water
        milk tea ; command
    show/showed/shown ; zeigen ; @person ; @thing @text @room @clothing garden house school city
        horse film ; command
    send/sent/sent ; schicken ; @person ; @text present flower picture key ; command
    bring/brought/brought ; bringen/bringt/brachte/gebracht ; @person ; @thing @fruit @crockery
        @drink @clothing book newspaper chair soup ; command
    offer ; an|bieten/bietet/bot/geboten ; @person ; @fruit @drink @food @dish chair ; command
"""
"""Verbs of giving: the recipient is in the dative, the thing in the accusative."""

WITH_PREPOSITION: Final = """
    wait + for ; warten + auf accusative ; @person ; @person bus train letter answer ; command
    think/thought/thought + of ; denken/denkt/dachte/gedacht + an accusative ; @person ; @person
        @animal question story plan ;
    speak/spoke/spoken + with ; sprechen/spricht/sprach/gesprochen + mit dative ; @person ;
        @person ; command quietly loudly
    dream + of ; träumen + von dative ; @person ; @person lake castle chocolate horse ;
    play + with ; spielen + mit dative ; @person @animal ; ball dog cat child baby ; command
    look + after ; auf|passen + auf accusative ; @person ; @person @animal bag house garden ;
        command
"""

GOING: Final = """
    go/went/gone ; gehen/geht/ging/gegangen(s) ; @person @animal ; - ; command slowly quickly
    run/ran/run/running ; laufen/läuft/lief/gelaufen(s) ; @person @animal ; - ; command quickly
    drive/drove/driven ; fahren/fährt/fuhr/gefahren(s) ; @person ; - ; command far slowly
    travel/travelled/travelled/travelling ; reisen(s) ; @person ; - ; far
"""

COMING: Final = """
    come/came/come ; kommen/kommt/kam/gekommen(s) ; @person ; - ; stative
"""

STAYING: Final = """
    live ; wohnen ; @person ; - ; state stative far
    stay ; bleiben/bleibt/blieb/geblieben(s) ; @person @animal ; - ; command
    sit/sat/sat/sitting ; sitzen/sitzt/saß/gesessen ; @person @animal ; - ; quietly
    stand/stood/stood ; stehen/steht/stand/gestanden ; @person @animal @furniture @vehicle ; - ;
    lie/lay/lain/lying ; liegen/liegt/lag/gelegen ; @thing @clothing book letter newspaper ; - ;
"""

KNOWING: Final = """
    know/knew/known ; wissen/weiß/wusste/gewusst ; @person ; - ; stative
    think/thought/thought ; denken/denkt/dachte/gedacht ; @person ; - ; stative
    say/said/said ; sagen ; @person ; - ; stative
    believe ; glauben ; @person ; - ; stative
"""

ASKING: Final = """
    ask ; fragen ; @person ; - ; stative
"""

TRYING: Final = """
    try ; versuchen ; @person ; - ;
    begin/began/begun/beginning ; beginnen/beginnt/begann/begonnen ; @person ; - ;
    forget/forgot/forgotten/forgetting ; vergessen/vergisst/vergaß/vergessen ; @person ; - ;
        stative
    promise ; versprechen/verspricht/versprach/versprochen ; @person ; - ; stative
"""
