"""The nouns, in dictionary notation: `child/children = das Kind Kindes Kinder`.

Irregular English plurals follow the slash. German entries have the article, the nominative, the
genitive and the plural. A feminine noun has no separate genitive. A noun without a plural (`-`)
is a mass noun and takes no article. A masculine noun whose genitive ends in -n is weak: it has
that form in every case except the nominative.

No English noun has the same form in singular and plural (`sheep`), as the number must be clear.
"""

from typing import Final

NOUNS: Final = {
    "person": """
        man/men = der Mann Mannes Männer
        woman/women = die Frau Frauen
        child/children = das Kind Kindes Kinder
        boy = der Junge Jungen Jungen
        girl = das Mädchen Mädchens Mädchen
        baby/babies = das Baby Babys Babys
        mother = die Mutter Mütter
        father = der Vater Vaters Väter
        brother = der Bruder Bruders Brüder
        sister = die Schwester Schwestern
        son = der Sohn Sohnes Söhne
        daughter = die Tochter Töchter
        aunt = die Tante Tanten
        grandmother = die Großmutter Großmütter
        friend = der Freund Freundes Freunde
        neighbour = der Nachbar Nachbarn Nachbarn
        teacher = der Lehrer Lehrers Lehrer
        student = der Student Studenten Studenten
        doctor = der Arzt Arztes Ärzte
        lawyer = der Anwalt Anwalts Anwälte
        thief/thieves = der Dieb Diebes Diebe
        farmer = der Bauer Bauern Bauern
        baker = der Bäcker Bäckers Bäcker
        king = der König Königs Könige
        queen = die Königin Königinnen
    """,
    "animal": """
        dog = der Hund Hundes Hunde
        cat = die Katze Katzen
        bird = der Vogel Vogels Vögel
        horse = das Pferd Pferdes Pferde
        cow = die Kuh Kühe
        mouse/mice = die Maus Mäuse
        wolf/wolves = der Wolf Wolfes Wölfe
        bear = der Bär Bären Bären
        lion = der Löwe Löwen Löwen
    """,
    "fruit": """
        apple = der Apfel Apfels Äpfel
        orange = die Orange Orangen
    """,
    "dish": """
        egg = das Ei Eies Eier
        potato = die Kartoffel Kartoffeln
        cake = der Kuchen Kuchens Kuchen
        pizza = die Pizza Pizzas
    """,
    "food": """
        bread = das Brot Brotes -
        cheese = der Käse Käses -
        soup = die Suppe -
        chocolate = die Schokolade -
    """,
    "drink": """
        water = das Wasser Wassers -
        milk = die Milch -
        coffee = der Kaffee Kaffees -
        tea = der Tee Tees -
        wine = der Wein Weines -
    """,
    "text": """
        book = das Buch Buches Bücher
        letter = der Brief Briefes Briefe
        newspaper = die Zeitung Zeitungen
        story = die Geschichte Geschichten
    """,
    "art": """
        song = das Lied Liedes Lieder
        film = der Film Filmes Filme
    """,
    "clothing": """
        coat = der Mantel Mantels Mäntel
        hat = der Hut Hutes Hüte
        shirt = das Hemd Hemdes Hemden
        shoe = der Schuh Schuhes Schuhe
    """,
    "crockery": """
        cup = die Tasse Tassen
        glass = das Glas Glases Gläser
        bottle = die Flasche Flaschen
    """,
    "thing": """
        key = der Schlüssel Schlüssels Schlüssel
        bag = die Tasche Taschen
        umbrella = der Regenschirm Regenschirms Regenschirme
        ball = der Ball Balles Bälle
        ring = der Ring Ringes Ringe
        present = das Geschenk Geschenkes Geschenke
        flower = die Blume Blumen
        picture = das Bild Bildes Bilder
    """,
    "device": """
        lamp = die Lampe Lampen
        radio = das Radio Radios Radios
        computer = der Computer Computers Computer
    """,
    "light": """
        light = das Licht Lichtes Lichter
    """,
    "furniture": """
        table = der Tisch Tisches Tische
        chair = der Stuhl Stuhles Stühle
        bed = das Bett Bettes Betten
    """,
    "opening": """
        door = die Tür Türen
        window = das Fenster Fensters Fenster
    """,
    "vehicle": """
        car = das Auto Autos Autos
        bicycle = das Fahrrad Fahrrades Fahrräder
        boat = das Boot Bootes Boote
        bus = der Bus Busses Busse
        train = der Zug Zuges Züge
    """,
    "building": """
        house = das Haus Hauses Häuser
        school = die Schule Schulen
        church = die Kirche Kirchen
        museum = das Museum Museums Museen
        hotel = das Hotel Hotels Hotels
        restaurant = das Restaurant Restaurants Restaurants
        shop = das Geschäft Geschäftes Geschäfte
        castle = das Schloss Schlosses Schlösser
        station = der Bahnhof Bahnhofs Bahnhöfe
    """,
    "room": """
        room = das Zimmer Zimmers Zimmer
        kitchen = die Küche Küchen
    """,
    "area": """
        garden = der Garten Gartens Gärten
        park = der Park Parks Parks
        forest = der Wald Waldes Wälder
        city = die Stadt Städte
        village = das Dorf Dorfes Dörfer
        street = die Straße Straßen
        bridge = die Brücke Brücken
        lake = der See Sees Seen
        mountain = der Berg Berges Berge
        tree = der Baum Baumes Bäume
    """,
    "idea": """
        question = die Frage Fragen
        answer = die Antwort Antworten
        plan = der Plan Planes Pläne
    """,
}
"""The nouns by kind. Verbs, adjectives and prepositions refer to a kind (`@person`) or a noun."""

RELATIONS: Final = """
    mother father brother sister son daughter aunt grandmother friend neighbour
"""
"""Relations: used with an owner more often than with `a`."""

NOT_OWNED: Final = """
    man woman boy girl thief farmer baker king queen wolf bear lion mouse bus train church museum
    castle station forest bridge lake mountain park street city village
"""
"""Nouns that never have an owner."""

PEOPLE: Final = """
    Anna Maria Emma Julia Clara Peter Paul Martin Simon Karl
"""
"""First names, the same in both languages. None ends in -s, so the genitive is regular."""

CITIES: Final = """
    Berlin London Munich/München Vienna/Wien Cologne/Köln
"""

COUNTRIES: Final = """
    Germany/Deutschland Italy/Italien Austria/Österreich
"""
