"""The nouns, as a dictionary has them: `child/children = das Kind Kindes Kinder`.

English plurals stand behind the slash where they are irregular. German has the article, the
nominative, the genitive and the plural; a feminine noun has no genitive of its own, and a noun
without plural (`-`) is a mass: it goes without article. A masculine whose genitive ends in -n is
weak: it has that form in every case but the nominative.

No noun has one form for both numbers in English (`sheep`): a sentence must say which is meant.
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
        uncle = der Onkel Onkels Onkel
        aunt = die Tante Tanten
        grandmother = die Großmutter Großmütter
        friend = der Freund Freundes Freunde
        neighbour = der Nachbar Nachbarn Nachbarn
        guest = der Gast Gastes Gäste
        teacher = der Lehrer Lehrers Lehrer
        student = der Student Studenten Studenten
        doctor = der Arzt Arztes Ärzte
        lawyer = der Anwalt Anwalts Anwälte
        judge = der Richter Richters Richter
        policeman/policemen = der Polizist Polizisten Polizisten
        thief/thieves = der Dieb Diebes Diebe
        farmer = der Bauer Bauern Bauern
        baker = der Bäcker Bäckers Bäcker
        singer = der Sänger Sängers Sänger
        king = der König Königs Könige
        queen = die Königin Königinnen
    """,
    "animal": """
        dog = der Hund Hundes Hunde
        cat = die Katze Katzen
        bird = der Vogel Vogels Vögel
        horse = das Pferd Pferdes Pferde
        cow = die Kuh Kühe
        pig = das Schwein Schweins Schweine
        mouse/mice = die Maus Mäuse
        rabbit = das Kaninchen Kaninchens Kaninchen
        wolf/wolves = der Wolf Wolfes Wölfe
        bear = der Bär Bären Bären
        lion = der Löwe Löwen Löwen
        elephant = der Elefant Elefanten Elefanten
        snake = die Schlange Schlangen
    """,
    "fruit": """
        apple = der Apfel Apfels Äpfel
        pear = die Birne Birnen
        orange = die Orange Orangen
        tomato = die Tomate Tomaten
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
        meat = das Fleisch Fleisches -
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
        poem = das Gedicht Gedichtes Gedichte
    """,
    "art": """
        song = das Lied Liedes Lieder
        film = der Film Filmes Filme
    """,
    "clothing": """
        coat = der Mantel Mantels Mäntel
        hat = der Hut Hutes Hüte
        shirt = das Hemd Hemdes Hemden
        dress = das Kleid Kleides Kleider
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
        suitcase = der Koffer Koffers Koffer
        box = die Kiste Kisten
        umbrella = der Regenschirm Regenschirms Regenschirme
        knife/knives = das Messer Messers Messer
        ball = der Ball Balles Bälle
        ring = der Ring Ringes Ringe
        present = das Geschenk Geschenkes Geschenke
        flower = die Blume Blumen
        picture = das Bild Bildes Bilder
        map = die Karte Karten
    """,
    "device": """
        lamp = die Lampe Lampen
        radio = das Radio Radios Radios
        television = der Fernseher Fernsehers Fernseher
        computer = der Computer Computers Computer
    """,
    "light": """
        light = das Licht Lichtes Lichter
    """,
    "furniture": """
        table = der Tisch Tisches Tische
        chair = der Stuhl Stuhles Stühle
        bed = das Bett Bettes Betten
        cupboard = der Schrank Schrankes Schränke
    """,
    "opening": """
        door = die Tür Türen
        window = das Fenster Fensters Fenster
        gate = das Tor Tores Tore
    """,
    "vehicle": """
        car = das Auto Autos Autos
        bicycle = das Fahrrad Fahrrades Fahrräder
        boat = das Boot Bootes Boote
        bus = der Bus Busses Busse
        train = der Zug Zuges Züge
        ship = das Schiff Schiffes Schiffe
    """,
    "building": """
        house = das Haus Hauses Häuser
        school = die Schule Schulen
        church = die Kirche Kirchen
        museum = das Museum Museums Museen
        hotel = das Hotel Hotels Hotels
        restaurant = das Restaurant Restaurants Restaurants
        hospital = das Krankenhaus Krankenhauses Krankenhäuser
        shop = das Geschäft Geschäftes Geschäfte
        castle = das Schloss Schlosses Schlösser
        station = der Bahnhof Bahnhofs Bahnhöfe
    """,
    "room": """
        room = das Zimmer Zimmers Zimmer
        kitchen = die Küche Küchen
        office = das Büro Büros Büros
    """,
    "area": """
        garden = der Garten Gartens Gärten
        park = der Park Parks Parks
        forest = der Wald Waldes Wälder
        city = die Stadt Städte
        village = das Dorf Dorfes Dörfer
        street = die Straße Straßen
        bridge = die Brücke Brücken
        beach = der Strand Strandes Strände
        lake = der See Sees Seen
        river = der Fluss Flusses Flüsse
        mountain = der Berg Berges Berge
        tree = der Baum Baumes Bäume
    """,
    "idea": """
        question = die Frage Fragen
        answer = die Antwort Antworten
        problem = das Problem Problems Probleme
        word = das Wort Wortes Wörter
        plan = der Plan Planes Pläne
        secret = das Geheimnis Geheimnisses Geheimnisse
    """,
}
"""What kinds of things there are, and their names. Verbs, adjectives and prepositions choose by
kind (`@person`) or by name."""

RELATIONS: Final = """
    mother father brother sister son daughter uncle aunt grandmother friend neighbour
"""
"""Who is someone's: said with an owner more often than with `a`."""

NOT_OWNED: Final = """
    man woman boy girl judge policeman thief farmer baker singer king queen wolf bear lion
    elephant snake mouse bus train ship church museum hospital castle station forest bridge
    beach lake river mountain park
"""
"""What nobody calls his own."""

PEOPLE: Final = """
    Anna Maria Emma Julia Laura Lena Clara Eva Peter Paul Martin Simon Leon Ben Tom
    Karl Otto
"""
"""First names, alike in both languages; none ends in -s, so the genitive is plain."""

CITIES: Final = """
    Berlin London Paris Munich/München Vienna/Wien Cologne/Köln Rome/Rom
"""

COUNTRIES: Final = """
    Germany/Deutschland France/Frankreich Italy/Italien Austria/Österreich
"""
